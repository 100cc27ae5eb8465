"""Writes the enumerations, the desc classes and the immediate functions from opendml/spec/data."""

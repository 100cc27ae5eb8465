"""Targets run tensor programs. Each has a package of its own; `common` has what they share."""

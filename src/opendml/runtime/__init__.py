"""Devices, compiled operators, bindings: what callers hold."""

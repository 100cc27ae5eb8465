"""Operators that are compiled together.

A graph is a list of steps (`steps`). Module `base` builds it, `graph` adds methods, and `wiring` builds
that of a GraphDesc. Module `stages` lowers steps to programs, which `compiled_work` compiles and `model`
runs.
"""

"""Operators that are compiled together.

A graph is a list of steps (`steps`), which `base` builds. `graph` adds the public methods, `from_desc` builds
the graph of a GraphDesc, and `stages` lowers steps to programs. `compiled_work` compiles these, and `model`
runs them.
"""

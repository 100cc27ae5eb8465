"""PyDirectML: Microsoft's Python binding of DirectMLX (`pydirectml`) and the fork of it (`directml`).

Expressions record operators; building one makes a graph of DirectML, which is compiled as such.
"""

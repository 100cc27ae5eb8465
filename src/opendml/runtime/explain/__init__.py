"""Measure the kernels of a compiled graph, and show them as text, JSON, a page or a trace.

`Model.explain` and `CompiledOperator.explain` import it when they are called.
"""

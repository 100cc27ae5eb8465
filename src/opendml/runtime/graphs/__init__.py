"""Operators that are compiled together: graphs of symbolic tensors, graphs in DirectML's form with their
rules, the work that both become, its compilation for a device, and models. A compiled operator, be it of one
operator or of a graph in DirectML's form, is an object of `objects`; rewriting and fusing of programs is the
compiler's."""

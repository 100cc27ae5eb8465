"""Shared parts of the importers of ONNX models and PyTorch graphs.

`registry` finds converters, and `conversion` is the base of what they receive. `types` has the limits of
DirectML's tensors. `tensors`, `attention` and `pooling` lower what both frameworks have.
"""

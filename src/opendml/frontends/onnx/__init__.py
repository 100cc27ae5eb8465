"""ONNX models on DirectML's operators.

`model_file` reads, `trace` turns a graph into steps, `segment` puts nodes into DirectML graphs through the
converters in `operators`, `evaluate` runs what DirectML cannot say. `opendml.onnx` is what programs import.
"""

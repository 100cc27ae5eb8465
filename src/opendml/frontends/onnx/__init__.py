"""ONNX models on DirectML's operators.

- `model_file` reads a model, and `trace` turns its graph into steps.
- `segment` adds nodes to a DirectML graph through the converters in `operators`.
- `evaluate` runs the nodes that DirectML cannot express.
"""

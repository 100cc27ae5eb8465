"""ONNX Runtime's Python API on top of the importer `frontends.onnx`, which knows nothing of it.

`session` has InferenceSession, `options` its options, and `values` OrtValue and IOBinding. `providers` maps
execution providers to devices. `opendml.onnx` exports the public names.
"""

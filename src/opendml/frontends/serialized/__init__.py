"""Serialized DirectML graphs: the flatbuffers (DmlGraphDesc) that ONNX Runtime writes and DxDispatch runs.

`schema` lists tables and unions. `flatbuffers` converts bytes, `nodes` converts operators, `calls` converts
models, and `graph` reads and writes whole graphs.
"""

"""Serialized DirectML graphs: the flatbuffers (DmlGraphDesc) that ONNX Runtime writes and DxDispatch runs.

`schema` lists tables and unions. `flatbuffer_reader` and `flatbuffer_writer` convert bytes, `nodes` converts
operators, `calls` converts models, and `graph` reads and writes whole graphs.
"""

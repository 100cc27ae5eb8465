"""Serialized DirectML graphs: the flatbuffers (DmlGraphDesc) that ONNX Runtime writes and DxDispatch runs.

`schema` is what they say, `flatbuffer_reader` and `flatbuffer_writer` take and make the bytes, `nodes` makes
descs of what nodes say and the other way round, `graph` is a graph of both.
"""

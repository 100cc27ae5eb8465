"""The importer of PyTorch's graphs, for `torch.compile`.

`backend` is what `torch.compile` calls. `partition` divides a graph. `part` compiles a part of it through the
converters in `operators`. `report` lists what is left to PyTorch. Programs import `opendml.torch`.
"""

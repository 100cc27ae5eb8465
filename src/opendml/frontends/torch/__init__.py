"""PyTorch's graphs on DirectML's operators.

`backend` is what `torch.compile` calls, `partition` divides a graph, `part` compiles what DirectML says of
it through the converters in `operators`, `report` tells what is left to PyTorch. `opendml.torch` is what
programs import.
"""

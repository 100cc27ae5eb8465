"""Converters of ONNX operators to DirectML's operators, by family. Each module registers its converters."""

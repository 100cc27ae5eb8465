"""Converters of PyTorch's operators to DirectML's, by family. Each module registers its converters."""

"""How PyTorch's operators are said with DirectML's, by family. Each module registers its converters."""

"""Memory of the caller: NumPy arrays, arrays of other libraries and buffers, as addresses and layouts; where
they are, what may overlap, and DirectML's packing of elements. Memory of opendml's own is the target's
(`opendml.targets.memory`)."""

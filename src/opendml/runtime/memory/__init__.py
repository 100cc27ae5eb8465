"""Memory of the caller: arrays and buffers as addresses and layouts, what may overlap, and DirectML's
packing.

Memory of opendml's own is the target's (`opendml.targets.memory`).
"""

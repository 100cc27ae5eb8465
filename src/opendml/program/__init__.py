"""The tensor program: what an operator computes, in few primitives and without a word about machines."""

"""From a tensor program to kernels: simplify, fuse, order the loops, place the temporaries. Knows no
target."""

"""What every target that makes code of kernels needs, whatever the code is printed in."""

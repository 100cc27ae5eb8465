"""The CUDA target: kernels printed as CUDA C++, compiled by NVRTC for the device at hand."""

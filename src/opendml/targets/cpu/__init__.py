"""The CPU target: kernels as LLVM IR, machine code for this processor, native threads."""

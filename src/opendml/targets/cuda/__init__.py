"""The CUDA target: kernels printed as CUDA C++, compiled by NVRTC for the device at hand.

Code. Numbers are parameters, as on the CPU. Small steps and distances are constants, so that neighbouring
results of a window share loads. Accesses that move alike share one offset.

Groups. A group that fits registers or shared memory, of one block or of a team of blocks, is read once. Of a
larger group shared memory keeps a part. The rest is read again in each pass, every second time backwards,
because the cache holds what was read last. Groups whose elements lie apart are read in place by as many
threads as their size is worth.

Order. Scatters use atomic maxima of positions and integer sums, so that the order of threads does not matter.
Floats are summed as 62-bit integers. Blocks that share a tile add their sums in one order.

Launches. From compute capability 9.0 on a kernel starts before the previous one has ended (programmatic
dependent launch), and `begin_kernel` waits for its results. That hides about a microsecond. Products by
warpgroups and attention gain more (`EARLY_MODES`). The kernel before them lets them begin as soon as its own
last blocks have begun (`lets_next_begin`, which instances set). They load weights before they wait.
Cooperative launches are not started early, since CUDA does not define the combination.

Products. Tiles are copied to shared memory while the previous ones are multiplied. float32 products are added
128 to one sum and these sums to each other. The error is at most (128 + k / 128) 2^-24 of the sum of the
magnitudes; that costs 4 % of the time and halves the error of one sum. Loaders also compute operands (an
activation, dequantized weights). `stored_operands.py` stores them first if that takes fewer cycles. 8-bit
integers are multiplied as they are, with zero points from row and column sums. On compute capability 9.0,
products of float16 and bfloat16 whose operands the copy engine can load use `wgmma`, others `mma`
(`schedule_warpgroups.py`, `kernels/sm90`). Convolutions are implicit products there (`windows.py`), after a
copy to channels-last order if that is faster (`channels_last.py`). Memory bounds sums of few such
products, as of first convolutions: warps load their rows into the registers of tensor cores
(`schedule_short_sums.py`).

Attention. A block takes 32 or 64 keys and values at a time, and makes weights from scores in registers
(`schedule_chain.py`). In float16, weights are sums of two float16 with 22 bits. `schedule_attention.py` has
the warpgroup form for compute capability 9.0, which skips tiles that a causal mask hides.

Tests compile every kernel of `tools/cuda_cases.py` without a GPU. `tools/cuda_emulator` runs them on the
processor, with tensor cores, the copy engine and clusters.
"""

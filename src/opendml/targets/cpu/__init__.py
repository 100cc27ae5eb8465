"""The CPU target: kernels as LLVM IR, machine code for this processor, native threads.

Code. Machine code depends on the structure of a kernel. Sizes, strides and floating-point numbers are launch
parameters. Only rows of one to four full vectors have code of their own, without a loop. The code keeps 0, 1,
-1, infinities, NaN, integers, and powers of two that scale the argument of a function. The disk cache has one
entry for each content, processor and version of LLVM.

Jobs. A compiled program is one job of a native runtime, whose threads live outside of Python. The
interpreter's lock is released while they work. Launches of a job run one after the other, because most use
all threads. The caller alone runs launches that are too small to wake anybody. Every thread computes in the
default floating-point mode. A long dispatch looks for signals twenty times a second. The child of a fork
starts new workers when it first needs them.

Results do not depend on the number of threads. Only whole groups and chunks of groups are divided among
threads, and schedules may use the number of threads only where all choices give the same bits.

Loads. A vector whose guards all hold, and whose distances are those of neighbours, is loaded like any other.
So padding and mirroring cost time at the rim alone.

Stores. Results larger than half of the last cache are written past the caches, in whole cache lines; results
of transpositions are if they exceed a core's own cache. Elements of less than 32 bits are not if rows lie
apart, since vectors of them are parts of lines. Short rows are gathered in scratch memory until lines are
complete.

Memory. Arrays within kernels lie in the arena, because stacks may be small. Compilation is refused if there
is too little address space for LLVM, which would end the process.
"""

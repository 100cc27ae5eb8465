"""Sums of products: matrix products, convolutions, and a softmax between products.

`schedule.py` chooses the roles of operands, the tile, the blocks and the storage of operands by the least
estimated cost. `launches.py` constructs launches from the choice. `dispatch.py` finds the code of a launch.
The block loop is in `code.py`, and finds operands through `storages.py`. The micro-kernels are in `fma.py`,
`amx.py` and `amx_int8.py`. Ways with other bits may be chosen by sizes, but never by the number of threads.

Vector tiles. A micro-kernel broadcasts elements of A and multiplies vectors of B. It has no other memory
traffic. Operands are packed before, whatever they are computed from. So windows, transposes, conversions and
masks cost a few cycles for each vector. Constant operands are packed once, ahead of all runs. Overlapping
windows are packed once, as an image with margins (`image.py`); a table of distances finds their elements.
With 16 vector registers tiles have six rows, and those of a plain A are read where they lie. If the
registers hold the sums of all rows (up to 30 with 32 registers), B is read where it lies, 32 of its rows at a
time.

Sizes that vary. If sizes are traced, each constant is packed in one layout for all of them, or in two on AMX,
where few rows stay in vectors. Filters of images are A then, and rows of tiles are 1, 2, 4 or 8, or the most
of many rows. So products of 1 to 300 rows run the same six pieces of code, rather than fifteen. Windows of
images stay in vectors. Blocks keep the numbers that were chosen for the hints of a bucket; `launches.py`
guards that they fit scratch memory.

Narrow constants. A constant B of 4, 8 or 16 bits, with scales and zero points per column or block of k, is
packed in its own type (`narrow.py`). A byte has two numbers of 4 bits, one for each vector of a panel. Many
rows widen 256 products of a block of columns into scratch memory, and fetch the next numbers meanwhile. All
rows and instructions read one copy. A 4096x4096 matrix of 4 bits in blocks of 32 takes 11.0 MB rather than
71; 16 rows take 3.0 ms rather than 2.8, and 64 rows 10.7 rather than 10.3 (two cores of Zen 4).

Digits. Up to eight rows multiply packed numbers of 4 and 8 bits as integers (`digits.py`). The processor must
add products of four bytes, and the element must be (number - zero point) * scale. A block of a row becomes
integers of 32 bits times a power of two, in four digits of 8 bits. So 64 numbers take four instructions for
each row, and one or two to unpack them. Digits lose at most 2^-23 of an element, and sums of a block are
exact, so the error bound of many rows holds. GPT-2 in blocks of 32 takes half the processor time of widening
numbers in registers, which others of these rows and constants do.

Order of sums. float32 products are added 256 to one sum, eight sums to the next, and these to each other. So
the error is at most (256 + 8 + k / 2048) 2^-24 of the sum of the magnitudes. Two to eight rows add 64 first
sums to the next instead, as one row of a narrow constant does (128 in blocks of 16). More rows that read B
where it lies continue the sums before, so bits are those of a packed B. If the matrix lies along k, lanes run
along k with 128 products to one sum. A vector times a matrix is a reduction of four rows at a time; its error
is at most (84 + k / 64) 2^-24.

Matrix registers (AMX). Products of more than 16 rows and columns (8 in a recurrence) run there if the
estimate is lower. Each float32 is split into three bfloat16 parts, and six of the nine products are
computed; the others are below 2^-25. Up to 64 rows or columns multiply a constant that no core's cache
holds in vectors. For more, each item splits what it reads of such a constant, since packed parts would
have 1.5 times the bytes. If sizes are open, it reads the panels of vectors. A part with a number outside
of 2^-79 to 2^29 (and not zero) holds float32, and is multiplied in vectors. The error is at most (256 + 8
+ k / 2048) 2^-24 up to k = 250,000, for windows (300 + k / 512) 2^-24. It is a quarter to half of that of
vectors. Small products of about 40 stay in vectors, because packing costs more. Windows are packed as an
image, whose tiles are copied into panels. Whole models take as long on two threads of a Sapphire Rapids
without that, and 1.12 times as long on eight (ResNet-50, VGG-19, Inception, DenseNet, SqueezeNet).

8-bit integers. Four neighbours along k share 32 bits (VNNI, or pairs widened to 16 bits). The instruction
multiplies unsigned by signed bytes, so a sign bit may be flipped, which moves the zero point by 128. Zero
points are not subtracted from elements, which would need a ninth bit. (a - p)(b - q) = ab - aq - p(b - q)
follows from sums along k that are packed behind the elements.

Convolutions of three by three use these sums too, not Winograd's transforms: the tiles are as fast, and the
error bounds hold.

Attention. A softmax between products takes 256 keys at a time, one micro-panel of queries after the other, so
scores never leave the first caches. Weights are relative to the greatest score so far; sums are scaled down
when it grows. If a sum is not finite, the block is computed again with smaller weights. With AMX, weights are
bfloat16 parts. The matrix unit falls asleep after some 1,000 idle cycles and takes as long to wake, so the
vector code issues one product for each row. The choice between both depends on sizes alone, because it
changes bits.
"""

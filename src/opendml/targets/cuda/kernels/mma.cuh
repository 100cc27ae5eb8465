// Tensor cores: FLOAT16 or BFLOAT16, summed in FLOAT32, or integers of 8 bits, whose sums are exact and wrap.

constexpr int PART = 0;  // The rounding of such operands outweighs what the order of sums does.

DEVICE void multiply(Sum (&sums)[SUMS], Shifts& shifts, const A::Element* a_tile, const B::Element* b_tile) {
#pragma unroll
    for (int k = 0; k < DEPTH; k += 32 / (int)sizeof(A::Element)) {
        unsigned a[DOWN][4], b[ACROSS / 2][4];
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            load_fragment<A, false>(a[i], a_tile, warp_row() + 16 * i, k);
            shifts.take_a(i, a[i]);
        }
#pragma unroll
        for (int j = 0; j < ACROSS / 2; j++) {
            load_fragment<B, true>(b[j], b_tile, warp_column() + 16 * j, k);
            shifts.take_b(j, b[j]);
        }
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
                Sum (&piece)[4] = reinterpret_cast<Sum (&)[4]>(sums[(i * ACROSS + j) * 4]);
                multiply_matrices<A::Element, B::Element>(piece, a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
            }
        }
    }
}

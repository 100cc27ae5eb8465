// FLOAT16 on tensor cores, summed in FLOAT32: a warp multiplies WARP_ROWS rows by WARP_COLUMNS columns of a tile, in pieces of
// 16 x 8 x 16.

constexpr int WARPS_ACROSS = COLUMNS_OF_TILE / WARP_COLUMNS, DOWN = WARP_ROWS / 16, ACROSS = WARP_COLUMNS / 8, SUMS = DOWN * ACROSS * 4;
constexpr int PART = 0;  // The rounding of float16 outweighs what the order of sums does.

DEVICE int warp_row() { return threadIdx.x / 32 / WARPS_ACROSS * WARP_ROWS; }
DEVICE int warp_column() { return threadIdx.x / 32 % WARPS_ACROSS * WARP_COLUMNS; }
DEVICE int row_of(int sum) { return warp_row() + sum / (4 * ACROSS) * 16 + sum % 4 / 2 * 8 + threadIdx.x % 32 / 4; }
DEVICE int column_of(int sum) { return warp_column() + sum / 4 % ACROSS * 8 + threadIdx.x % 4 * 2 + sum % 2; }

DEVICE void multiply(Sum (&sums)[SUMS], const A::Element* a_tile, const B::Element* b_tile) {
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        unsigned a[DOWN][4], b[ACROSS / 2][4];
#pragma unroll
        for (int i = 0; i < DOWN; i++) load_fragment<A, false>(a[i], a_tile, warp_row() + 16 * i, k);
#pragma unroll
        for (int j = 0; j < ACROSS / 2; j++) load_fragment<B, true>(b[j], b_tile, warp_column() + 16 * j, k);
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
#pragma unroll
            for (int j = 0; j < ACROSS; j++) {
                float (&piece)[4] = reinterpret_cast<float (&)[4]>(sums[(i * ACROSS + j) * 4]);
                multiply_matrices(piece, a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
            }
        }
    }
}

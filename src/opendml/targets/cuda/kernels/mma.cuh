// FLOAT16 on tensor cores, summed in FLOAT32: a warp multiplies WARP_ROWS rows by WARP_COLUMNS columns of a tile, in pieces of
// 16 x 8 x 16.

constexpr int WARPS_ACROSS = COLUMNS_OF_TILE / WARP_COLUMNS, DOWN = WARP_ROWS / 16, ACROSS = WARP_COLUMNS / 8, SUMS = DOWN * ACROSS * 4;
constexpr int PART = 0;  // The rounding of float16 outweighs what the order of sums does.

DEVICE int warp_row() { return threadIdx.x / 32 / WARPS_ACROSS * WARP_ROWS; }
DEVICE int warp_column() { return threadIdx.x / 32 % WARPS_ACROSS * WARP_COLUMNS; }
DEVICE int row_of(int sum) { return warp_row() + sum / (4 * ACROSS) * 16 + sum % 4 / 2 * 8 + threadIdx.x % 32 / 4; }
DEVICE int column_of(int sum) { return warp_column() + sum / 4 % ACROSS * 8 + threadIdx.x % 4 * 2 + sum % 2; }

// Four matrices of 8 x 8; each lane knows where a row of one begins.
DEVICE void load_matrices(unsigned (&to)[4], const char* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}

DEVICE void load_matrices_transposed(unsigned (&to)[4], const char* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}

DEVICE void multiply_matrices(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// 16 x 16 elements from a row and a k on: as four pieces, of which the second lies below the first (`k_first`: further along k).
template <typename Operand, bool K_FIRST>
DEVICE void load_fragment(unsigned (&to)[4], const half* tile, int row, int k) {
    const int lane = threadIdx.x % 32, piece = lane / 8, inside = lane % 8;
    const int along_k = (K_FIRST ? piece % 2 : piece / 2) * 8, along_rows = (K_FIRST ? piece / 2 : piece % 2) * 8;
    if constexpr (Operand::ALONG_K) {
        load_matrices(to, (const char*)(tile + Operand::slot(row + along_rows + inside, k + along_k)));
    } else {
        load_matrices_transposed(to, (const char*)(tile + Operand::slot(row + along_rows, k + along_k + inside)));
    }
}

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

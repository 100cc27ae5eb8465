// Pieces of matrices as tensor cores take them from shared memory, 16 x 8 sums at a time: of 16 products of FLOAT16, or of 32 of
// integers of 8 bits.

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

template <typename = half, typename = half>
DEVICE void multiply_matrices(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#define MULTIPLY_BYTES(TYPES) \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." TYPES ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]) \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <typename A, typename B>
DEVICE void multiply_matrices(int (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (has_sign<A> && has_sign<B>) MULTIPLY_BYTES("s8.s8");
    else if constexpr (has_sign<A>) MULTIPLY_BYTES("s8.u8");
    else if constexpr (has_sign<B>) MULTIPLY_BYTES("u8.s8");
    else MULTIPLY_BYTES("u8.u8");
}

// 16 rows of 32 bytes from a row and a k on: as four pieces, of which the second lies below the first (`K_FIRST`: further along k).
template <typename Operand, bool K_FIRST>
DEVICE void load_fragment(unsigned (&to)[4], const typename Operand::Element* tile, int row, int k) {
    constexpr int LONG_ROW = 16 / sizeof(typename Operand::Element);
    const int lane = threadIdx.x % 32, piece = lane / 8, inside = lane % 8;
    const int along_k = (K_FIRST ? piece % 2 : piece / 2) * LONG_ROW, along_rows = (K_FIRST ? piece / 2 : piece % 2) * 8;
    if constexpr (Operand::BY_ROW) {
        load_matrices(to, (const char*)(tile + Operand::slot(row + along_rows + inside, k + along_k)));
    } else {
        load_matrices_transposed(to, (const char*)(tile + Operand::slot(row + along_rows, k + along_k + inside)));
    }
}

// Pieces of matrices of FLOAT16, as tensor cores take them from shared memory, 16 x 8 x 16 products at a time.

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

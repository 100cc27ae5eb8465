// Pieces of matrices as tensor cores take them from shared memory, 16 x 8 sums at a time: of 16 products of FLOAT16 or BFLOAT16, or of 32 of
// integers of 8 bits.

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

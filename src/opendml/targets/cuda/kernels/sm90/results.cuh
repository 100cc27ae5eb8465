// Stores results of any type and layout from sums in registers.

// Stores the results of a warpgroup's sums, whose first row is `row`. A thread has sums of pairs of columns in two rows of each block of
// 8 columns. Transposing four blocks gives it all 8 columns of one, so that it loads and stores units.
DEVICE void store_sums(const Sum (&sums)[DOWN][HALF], const Parameters& p, const Offsets& at, Index row, Index column, char*) {
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
#pragma unroll
        for (int lower = 0; lower < 2; lower++) {
            const Index own_row = row + 64 * i + 16 * warp + 8 * lower + lane / 4;
            const bool is_there = own_row < (Index)p.m;
            const Offsets of_row = at_m(p, at, is_there ? own_row : 0);
#pragma unroll
            for (int block = 0; block < OWN_COLUMNS / 8; block += 4) {
                Sum pairs[4][2];
#pragma unroll
                for (int j = 0; j < 8; j++) pairs[j / 2][j % 2] = sums[i][(block + j / 2) * 4 + 2 * lower + j % 2];
                transpose_quad(pairs);
                const Index own_column = column + (block + lane % 4) * 8;
                const Index left = (Index)p.n - own_column;
                if (is_there && left > 0) {
                    store_unit(p, at_n(p, of_row, own_column), reinterpret_cast<Sum (&)[8]>(pairs), left < 8 ? (int)left : 8);
                }
            }
        }
    }
}

// Stores results of FLOAT16, or of the bits of BFLOAT16, that are contiguous along the rows of tiles, through shared memory. `stmatrix` transposes blocks of 8 x 8, so a line
// of shared memory has 64 rows of a column. Each warp of a warpgroup has 16 of them. Residuals, which are read at every result, take the
// opposite way.

constexpr int LINE_BYTES = 128, LINES = STAGED_BYTES * 4 / LINE_BYTES;  // of a warpgroup: columns at a time
constexpr int PIECES = 64 / STAGED_UNIT;  // of a line
static_assert(STAGED_UNIT > 0 && OWN_COLUMNS % 16 == 0);

// Returns the address of a unit of 16 bytes of a line. Units are swizzled, so that neither lines nor columns have bank conflicts.
DEVICE char* unit_of(char* lines, int line, int unit) { return lines + line * LINE_BYTES + (unit ^ line % 8) * 16; }

// Returns the address of a line of one of the four blocks of two neighbouring groups of 8 columns, from a column on.
DEVICE char* block_line(char* lines, int column) {
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    return unit_of(lines, column + lane / 16 * 8 + lane % 8, 2 * warp + lane / 8 % 2);
}

// The piece that a thread moves: its line and its first row.
struct Piece {
    int line, row;

    DEVICE_MEMBER explicit Piece(int number) : line(number / PIECES), row(number % PIECES * STAGED_UNIT) {}
    DEVICE_MEMBER char* in(char* lines) const { return unit_of(lines, line, row / 8) + row % 8 * 2; }
};

DEVICE void store_sums(const Sum (&sums)[DOWN][HALF], const Parameters& p, const Offsets& at, Index row, Index column, char* staging) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32, barrier = OWN_BARRIER + threadIdx.x / 128 - 1;
    char* const lines = staging - warp * STAGED_BYTES;
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
        const Index first = row + 64 * i, count = (Index)p.m - first;
        OfRow rows[2];
#pragma unroll
        for (int lower = 0; lower < 2; lower++) {
            const int own = 16 * warp + 8 * lower + lane / 4;
            rows[lower] = of_row(p, at_m(p, at, own < count ? first + own : 0));
        }
#pragma unroll
        for (int chunk = 0; chunk < OWN_COLUMNS; chunk += LINES) {
            constexpr int REST = OWN_COLUMNS % LINES;
            const int own = chunk + LINES <= OWN_COLUMNS ? LINES : REST;
            const Index begin = column + chunk, width = (Index)p.n - begin;
            unsigned residuals[RESIDUALS + 1][LINES / 4], results[RESULTS][LINES / 4];
#pragma unroll
            for (int number = 0; number < RESIDUALS; number++) {
#pragma unroll
                for (int move = 0; move < own * PIECES; move += 128) {
                    const Piece piece(move + threadIdx.x % 128);
                    Vector<Narrow, STAGED_UNIT> values = {};
                    if (piece.line < own) {
                        if (piece.line < width && piece.row < count) {
                            load(values, residual_at(p, at_n(p, at_m(p, at, first + piece.row), begin + piece.line), number));
                        }
                        store(piece.in(lines), values);
                    }
                }
                synchronize_warpgroups(barrier, 1);
#pragma unroll
                for (int block = 0; block < own / 8; block += 2) {
                    load_matrices_transposed(reinterpret_cast<unsigned (&)[4]>(residuals[number][2 * block]), block_line(lines, 8 * block));
                }
                synchronize_warpgroups(barrier, 1);
            }
#pragma unroll
            for (int block = 0; block < own / 8; block++) {
#pragma unroll
                for (int lower = 0; lower < 2; lower++) {
                    Vector<Narrow, 2> others[RESIDUALS + 1], made[RESULTS];
#pragma unroll
                    for (int number = 0; number < RESIDUALS; number++) others[number] = bits_as<Vector<Narrow, 2>>(residuals[number][2 * block + lower]);
                    const Sum* const from = sums[i] + (chunk / 8 + block) * 4 + 2 * lower;
                    make_pair(p, rows[lower], {}, others, {from[0], from[1]}, made);
#pragma unroll
                    for (int number = 0; number < RESULTS; number++) results[number][2 * block + lower] = bits_as<unsigned>(made[number]);
                }
            }
#pragma unroll
            for (int number = 0; number < RESULTS; number++) {
#pragma unroll
                for (int block = 0; block < own / 8; block += 2) {
                    store_matrices_transposed(block_line(lines, 8 * block), reinterpret_cast<unsigned (&)[4]>(results[number][2 * block]));
                }
                synchronize_warpgroups(barrier, 1);
#pragma unroll
                for (int move = 0; move < own * PIECES; move += 128) {
                    const Piece piece(move + threadIdx.x % 128);
                    Vector<Narrow, STAGED_UNIT> values;
                    if (piece.line < own && piece.line < width && piece.row < count) {
                        load(values, piece.in(lines));
                        store(result_at(p, at_n(p, at_m(p, at, first + piece.row), begin + piece.line), number), values);
                    }
                }
                synchronize_warpgroups(barrier, 1);
            }
        }
    }
}

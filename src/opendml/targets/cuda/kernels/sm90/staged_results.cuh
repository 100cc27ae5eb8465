// Stores contiguous results of FLOAT16, or of the bits of BFLOAT16, through shared memory. A thread has sums of pairs of columns in two rows of each block of 8 columns,
// and makes their results in this layout. `stmatrix` puts them into lines of shared memory; each warp has its own. From there they go to
// memory in pieces of up to 16 bytes, as whole lines of 128 bytes if the tile is wide enough. Residuals, which are read at every result,
// take the opposite way. Transposing the sums in registers takes ten times as many instructions.

constexpr int CHUNK = OWN_COLUMNS % 64 ? 32 : 64;  // columns at a time
constexpr int PIECES = CHUNK / STAGED_UNIT;  // of a line
constexpr int ACROSS = PIECES < 32 ? PIECES : 32, SETS = PIECES / ACROSS, LINES = 32 / ACROSS;  // that a warp moves at once
constexpr int MOVES = 16 / LINES * SETS, BATCH = MOVES < 4 ? MOVES : 4;  // moves of a warp, and those under way together
constexpr int UNITS = CHUNK / 8, LINE_BYTES = 128;
static_assert(STAGED_BYTES == 16 * LINE_BYTES);

// Returns the address of a unit of 16 bytes of a line. Units are swizzled, so that neither lines nor columns have bank conflicts.
DEVICE char* unit_of(char* staging, int line, int unit) { return staging + line * LINE_BYTES + (unit ^ line % 8) * 16; }

// The piece that a lane moves: its line and its first column.
struct Piece {
    int line, column;

    DEVICE_MEMBER explicit Piece(int move) {
        const int lane = threadIdx.x % 32;
        line = move / SETS * LINES + lane / ACROSS;
        column = (lane % ACROSS + move % SETS * ACROSS) * STAGED_UNIT;
    }

    DEVICE_MEMBER char* in(char* staging) const { return unit_of(staging, line, column / 8) + column % 8 * 2; }
};

DEVICE void store_sums(const Sum (&sums)[DOWN][HALF], const Parameters& p, const Offsets& at, Index row, Index column, char* staging) {
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
        const Index first = row + 64 * i + 16 * warp, count = (Index)p.m - first;
        OfRow rows[2];
#pragma unroll
        for (int lower = 0; lower < 2; lower++) {
            const int line = 8 * lower + lane / 4;
            rows[lower] = of_row(p, at_m(p, at, line < count ? first + line : 0));
        }
#pragma unroll
        for (int chunk = 0; chunk < OWN_COLUMNS; chunk += CHUNK) {
            const Index begin = column + chunk, width = (Index)p.n - begin;
            unsigned residuals[RESIDUALS + 1][2 * UNITS], results[RESULTS][2 * UNITS];
#pragma unroll
            for (int number = 0; number < RESIDUALS; number++) {
#pragma unroll
                for (int move = 0; move < MOVES; move++) {
                    const Piece piece(move);
                    Vector<Narrow, STAGED_UNIT> values = {};
                    if (piece.column < width && piece.line < count) {
                        load(values, residual_at(p, at_n(p, at_m(p, at, first + piece.line), begin + piece.column), number));
                    }
                    store(piece.in(staging), values);
                }
                __syncwarp();
#pragma unroll
                for (int block = 0; block < UNITS; block += 2) {
                    load_matrices(reinterpret_cast<unsigned (&)[4]>(residuals[number][2 * block]), unit_of(staging, lane % 16, block + lane / 16));
                }
                __syncwarp();
            }
#pragma unroll
            for (int block = 0; block < UNITS; block++) {
                const int pair = 8 * block + 2 * (lane % 4);
                const OfColumns columns = of_columns(p, at_n(p, at, pair < width ? begin + pair : 0));
#pragma unroll
                for (int lower = 0; lower < 2; lower++) {
                    Vector<Narrow, 2> others[RESIDUALS + 1], made[RESULTS];
#pragma unroll
                    for (int number = 0; number < RESIDUALS; number++) others[number] = bits_as<Vector<Narrow, 2>>(residuals[number][2 * block + lower]);
                    const Sum* const own = sums[i] + (chunk / 8 + block) * 4 + 2 * lower;
                    make_pair(p, rows[lower], columns, others, {own[0], own[1]}, made);
#pragma unroll
                    for (int number = 0; number < RESULTS; number++) results[number][2 * block + lower] = bits_as<unsigned>(made[number]);
                }
            }
#pragma unroll
            for (int number = 0; number < RESULTS; number++) {
#pragma unroll
                for (int block = 0; block < UNITS; block += 2) {
                    store_matrices(unit_of(staging, lane % 16, block + lane / 16), reinterpret_cast<unsigned (&)[4]>(results[number][2 * block]));
                }
                __syncwarp();
#pragma unroll
                for (int move = 0; move < MOVES; move += BATCH) {
                    Vector<Narrow, STAGED_UNIT> values[BATCH];
#pragma unroll
                    for (int j = 0; j < BATCH; j++) load(values[j], Piece(move + j).in(staging));
                    if (move + BATCH == MOVES) __syncwarp();
#pragma unroll
                    for (int j = 0; j < BATCH; j++) {
                        const Piece piece(move + j);
                        if (piece.column < width && piece.line < count) {
                            store(result_at(p, at_n(p, at_m(p, at, first + piece.line), begin + piece.column), number), values[j]);
                        }
                    }
                }
            }
        }
    }
}

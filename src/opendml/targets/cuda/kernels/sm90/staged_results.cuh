// Makes results of FLOAT16 that lie side by side. A thread has the sums of pairs of columns in two rows of each block of 8 columns,
// and makes their results as they lie. The matrix stores of compute capability 9.0 put them into lines of shared memory, of which
// each warp has its own; from there they go to memory in units of 16 bytes, whole lines of 128 where a tile is as wide. What else is
// read at every result (residuals) comes the other way. Transposing the sums in registers took ten times as many instructions.

constexpr int CHUNK = COLUMNS_OF_TILE % 64 ? 32 : 64;  // columns at a time
constexpr int UNITS = CHUNK / 8, LINES = 32 / UNITS, PASSES = 16 / LINES;  // of a line, and lines that a warp moves at once
constexpr int LINE_BYTES = 128;
static_assert(STAGED_BYTES == 16 * LINE_BYTES);

// A unit of a line: swizzled, so that neither units of a line nor those of a column meet in a bank.
DEVICE char* unit_of(char* staging, int line, int unit) { return staging + line * LINE_BYTES + (unit ^ line % 8) * 16; }

DEVICE void store_sums(const float (&sums)[DOWN][HALF], const Parameters& p, const Offsets& at, Index row, Index column, char* staging) {
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32, own_unit = lane % UNITS;
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
        const Index first = row + 64 * i + 16 * warp, count = (Index)p.rows - first;
        OfRow rows[2];
#pragma unroll
        for (int lower = 0; lower < 2; lower++) {
            const int line = 8 * lower + lane / 4;
            rows[lower] = of_row(p, at_m(p, at, line < count ? first + line : 0));
        }
        Offsets lines[PASSES];
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            const int line = pass * LINES + lane / UNITS;
            lines[pass] = at_m(p, at, line < count ? first + line : 0);
        }
#pragma unroll
        for (int chunk = 0; chunk < COLUMNS_OF_TILE; chunk += CHUNK) {
            const Index unit_column = column + chunk + 8 * own_unit;
            const bool is_column = unit_column < (Index)p.columns;
            unsigned residuals[RESIDUALS + 1][2 * UNITS], results[RESULTS][2 * UNITS];
#pragma unroll
            for (int number = 0; number < RESIDUALS; number++) {
#pragma unroll
                for (int pass = 0; pass < PASSES; pass++) {
                    const int line = pass * LINES + lane / UNITS;
                    Vector<half, 8> unit = {};
                    if (is_column && line < count) load(unit, residual_at(p, at_n(p, lines[pass], unit_column), number));
                    store(unit_of(staging, line, own_unit), unit);
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
                const Index pair = column + chunk + 8 * block + 2 * (lane % 4);
                const OfColumns columns = of_columns(p, at_n(p, at, pair < (Index)p.columns ? pair : 0));
#pragma unroll
                for (int lower = 0; lower < 2; lower++) {
                    Vector<half, 2> others[RESIDUALS + 1], made[RESULTS];
#pragma unroll
                    for (int number = 0; number < RESIDUALS; number++) others[number] = bits_as<Vector<half, 2>>(residuals[number][2 * block + lower]);
                    const float* const own = sums[i] + (chunk / 8 + block) * 4 + 2 * lower;
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
                Vector<half, 8> units[PASSES];
#pragma unroll
                for (int pass = 0; pass < PASSES; pass++) load(units[pass], unit_of(staging, pass * LINES + lane / UNITS, own_unit));
                __syncwarp();
#pragma unroll
                for (int pass = 0; pass < PASSES; pass++) {
                    if (is_column && pass * LINES + lane / UNITS < count) {
                        store(result_at(p, at_n(p, lines[pass], unit_column), number), units[pass]);
                    }
                }
            }
        }
    }
}

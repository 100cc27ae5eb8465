// Zero points, which are subtracted from bytes before they are multiplied: (a - p) (b - q) is a b - b p - q (a - p). So beside the products,
// rows of a and columns of b are summed, each by one thread, from the tiles in shared memory. Integers wrap at 32 bits. If an operand has no
// zero point, the other one is not summed.

constexpr int TEAM = 128 * PARTS;  // threads of the warpgroups that multiply a tile
constexpr int SHIFT_BARRIER = TURN_BARRIER + CONSUMERS;  // the first of the barriers of the teams

// Adds the bytes of a line of a tile to a sum. Threads with neighbouring lines begin at different banks.
template <typename Element>
DEVICE int add_line(const char* tile, int line, int sum) {
#pragma unroll
    for (int i = 0; i < DEPTH_BYTES / 16; i++) {
        Vector<unsigned, 4> words;
        load(words, tile + line * DEPTH_BYTES + (i + line) % 8 * 16);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if constexpr (has_sign<Element>) sum = __dp4a((int)words.data[j], 0x01010101, sum);
            else sum = (int)__dp4a(words.data[j], 0x01010101u, (unsigned)sum);
        }
    }
    return sum;
}

struct Shifts {
    // A pair of a column has the sum of its bytes and its zero point. A pair of a row has its zero point, and the sum of its bytes less
    // zero points.
    typedef Vector<int, 2> Pair;
    static constexpr int LINES = COLUMNS_OF_TILE + ROWS, SHARED_BYTES = LINES * (CONSUMERS / PARTS) * (int)sizeof(Pair);
    static constexpr int OWN_COLUMNS = (COLUMNS_OF_TILE + TEAM - 1) / TEAM, OWN_ROWS = (ROWS + TEAM - 1) / TEAM;

    Pair* pairs;
    int member, barrier;
    int of_columns[OWN_COLUMNS] = {}, of_rows[OWN_ROWS] = {};

    DEVICE_MEMBER explicit Shifts(char* memory) {
        const int team = (threadIdx.x - 128) / TEAM;
        pairs = (Pair*)memory + team * LINES;
        member = (threadIdx.x - 128) % TEAM;
        barrier = SHIFT_BARRIER + team;
    }

    // Adds the elements of one step along k.
    DEVICE_MEMBER void take(const char* stage) {
        if constexpr (A::SHIFTED) {
#pragma unroll
            for (int i = 0; i < OWN_COLUMNS; i++) {
                const int line = member + i * TEAM;
                if (line < COLUMNS_OF_TILE) of_columns[i] = add_line<B::Element>(stage + A_BYTES, line, of_columns[i]);
            }
        }
        if constexpr (B::SHIFTED) {
#pragma unroll
            for (int i = 0; i < OWN_ROWS; i++) {
                const int line = member + i * TEAM;
                if (line < ROWS) of_rows[i] = add_line<A::Element>(stage, line, of_rows[i]);
            }
        }
        // Another lane may release the stage for the whole warp, so all lanes must have read it.
        if constexpr (A::SHIFTED || B::SHIFTED) __syncwarp();
    }

    DEVICE_MEMBER void subtract(Sum (&sums)[DOWN][HALF], const Parameters& p, const Work& work, int first_row) {
        if constexpr (!A::SHIFTED && !B::SHIFTED) return;
        const Offsets at = at_group(p, work.batch);
        const unsigned count = elements_before(p, work.end) - elements_before(p, work.first);
        // Wait until all threads have read the pairs of the previous tile.
        synchronize_warpgroups(barrier, PARTS);
#pragma unroll
        for (int i = 0; i < OWN_COLUMNS; i++) {
            const int line = member + i * TEAM;
            const Index own = work.column + line;
            const int shift = B::SHIFTED ? B::shift(p, B::at_row(p, at, own < (Index)p.n ? own : 0)) : 0;
            if (line < COLUMNS_OF_TILE) pairs[line] = {of_columns[i], shift};
            of_columns[i] = 0;
        }
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++) {
            const int line = member + i * TEAM;
            const Index own = work.row + line;
            const int shift = A::SHIFTED ? A::shift(p, A::at_row(p, at, own < (Index)p.m ? own : 0)) : 0;
            if (line < ROWS) pairs[COLUMNS_OF_TILE + line] = {shift, (int)((unsigned)of_rows[i] - (unsigned)shift * count)};
            of_rows[i] = 0;
        }
        synchronize_warpgroups(barrier, PARTS);
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            const Pair* const own = pairs + COLUMNS_OF_TILE + first_row + 64 * i + 16 * warp + lane / 4;
            const Pair rows[2] = {own[0], own[8]};
#pragma unroll
            for (int j = 0; j < HALF; j++) {
                const Pair column = pairs[j / 4 * 8 + lane % 4 * 2 + j % 2], row = rows[j / 2 % 2];
                const unsigned more = (unsigned)row.data[0] * (unsigned)column.data[0] + (unsigned)column.data[1] * (unsigned)row.data[1];
                sums[i][j] = (int)((unsigned)sums[i][j] - more);
            }
        }
    }
};

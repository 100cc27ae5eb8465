// Sums products in tiles of ROWS x COLUMNS_OF_TILE. A block computes a tile in steps of DEPTH: while it multiplies one pair of operand
// tiles, the next are in flight. Then the sums go through shared memory, and each thread makes UNIT neighbouring results. Units lie
// along the direction of neighbouring threads, so that a thread loads and stores a unit at once. With UNIT_ACROSS they lie across it,
// so that several loads of a thread are in flight.
//
// With several blocks for a tile (`p.splits`), each sums a slice of k, and whichever is done last adds their sums up, in the order
// of the slices. The counter of each tile is zero between launches.

constexpr int BAND = 8;  // tiles side by side that are computed at a time, so that operands stay in the L2 cache
constexpr bool COLUMNS_FIRST = !STORED_ALONG_ROWS && !UNIT_ACROSS;  // in shared memory, where units lie together
constexpr int PITCH = (COLUMNS_FIRST ? ROWS : COLUMNS_OF_TILE) + 4;
constexpr int STEPS_OF_PART = PART == 0 ? 1 : PART / DEPTH;

// The sums of the parts of k that are done. They are seldom used, so they lie in local memory, and leave registers to the present part.
// The compiler cannot move them to registers, because forget_memory hides their address.
struct Totals {
    Sum sums[PART == 0 ? 1 : SUMS];

    DEVICE_MEMBER Sum* address() { return forget_memory(sums); }

    // Adds the sums of a part, and sets them to 0.
    DEVICE_MEMBER void take(Sum (&part)[SUMS], bool is_first) {
        Sum* const totals = address();
        constexpr int GROUP = 8;  // loads at a time
#pragma unroll
        for (int i = 0; i < SUMS; i += GROUP) {
            Sum before[GROUP];
#pragma unroll
            for (int j = 0; j < GROUP; j++) before[j] = is_first ? (Sum)0 : totals[i + j];
#pragma unroll
            for (int j = 0; j < GROUP; j++) {
                totals[i + j] = before[j] + part[i + j];
                part[i + j] = 0;
            }
        }
    }

    DEVICE_MEMBER void add_to(Sum (&last)[SUMS]) {
        const Sum* const totals = address();
#pragma unroll
        for (int i = 0; i < SUMS; i++) last[i] += totals[i];
    }
};

// Returns whether this block is the last of those that share its tile. Then the sums become those of all of them.
DEVICE bool gather(Sum (&sums)[SUMS], const Parameters& p, Index tile, int rank) {
    __shared__ bool is_last;
    const int blocks = (int)p.splits;
    Sum* const page = (Sum*)p.scratch + (long long)tile * blocks * (SUMS * THREADS) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < SUMS; i++) page[(long long)rank * (SUMS * THREADS) + i * THREADS] = sums[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicInc((unsigned*)p.counters + tile, blocks - 1) == blocks - 1;
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
#pragma unroll
    for (int i = 0; i < SUMS; i++) sums[i] = 0;
    // Pairs are added up first, which halves how often a sum is rounded.
#pragma unroll 1
    for (int pair = 0; pair < blocks; pair += 2) {
        const Sum* const from = page + (long long)pair * (SUMS * THREADS);
        const bool is_whole = pair + 1 < blocks;
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            const unsigned* const place = (const unsigned*)from + i * THREADS;
            const Sum first = bits_as<Sum>(load_uncached(place));
            sums[i] += is_whole ? first + bits_as<Sum>(load_uncached(place + SUMS * THREADS)) : first;
        }
    }
    return true;
}

DEVICE int place_of_sum(int row, int column) { return COLUMNS_FIRST ? column * PITCH + row : row * PITCH + column; }

// Computes and stores the results of a tile, whose sums are in shared memory.
DEVICE void store_tile(const Sum* found, const Parameters& p, const Offsets& at, Index row, Index column) {
    constexpr int FAST = STORED_ALONG_ROWS ? COLUMNS_OF_TILE : ROWS, SLOW = STORED_ALONG_ROWS ? ROWS : COLUMNS_OF_TILE;
    constexpr int ALONG = UNIT_ACROSS ? 1 : UNIT, ACROSS = UNIT_ACROSS ? UNIT : 1, LINE = FAST / ALONG;
    static_assert(THREADS % LINE == 0 && SLOW % ACROSS == 0);
    const int fast = threadIdx.x % LINE * ALONG;
    const Index along = (STORED_ALONG_ROWS ? column : row) + fast;
    const Index left_along = (Index)(STORED_ALONG_ROWS ? p.n : p.m) - along;
    if (left_along <= 0) return;
    const Offsets here = STORED_ALONG_ROWS ? at_n(p, at, along) : at_m(p, at, along);
#pragma unroll 1
    for (int slow = threadIdx.x / LINE * ACROSS; slow < SLOW; slow += THREADS / LINE * ACROSS) {
        const Index across = (STORED_ALONG_ROWS ? row : column) + slow;
        const Index left_across = (Index)(STORED_ALONG_ROWS ? p.m : p.n) - across;
        if (left_across <= 0) return;
        Sum unit[UNIT];
#pragma unroll
        for (int lane = 0; lane < UNIT; lane++) {
            const int i = fast + (UNIT_ACROSS ? 0 : lane), j = slow + (UNIT_ACROSS ? lane : 0);
            unit[lane] = found[STORED_ALONG_ROWS ? place_of_sum(j, i) : place_of_sum(i, j)];
        }
        const Index left = UNIT_ACROSS ? left_across : left_along;
        store_unit(p, STORED_ALONG_ROWS ? at_m(p, here, across) : at_n(p, here, across), unit, left < UNIT ? (int)left : UNIT);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 memory[];
    const int rank = SPLIT ? blockIdx.x % (int)p.splits : 0;
    const Index tile = SPLIT ? blockIdx.x / (int)p.splits : blockIdx.x;
    const Index batch = divide(tile, p.matrix_tiles), inside = tile - batch * (Index)p.matrix_tiles.count;
    const Index band = inside / ((Index)p.tiles_down.count * BAND), in_band = inside - band * ((Index)p.tiles_down.count * BAND);
    const Index left = (Index)p.tiles_across - band * BAND, width = left < BAND ? left : BAND;
    const Index row = in_band / width * ROWS, column = (band * BAND + in_band % width) * COLUMNS_OF_TILE;
    const Index first = SPLIT ? rank * (Index)p.split_depth : 0;
    const Index end = SPLIT && first + (Index)p.split_depth < (Index)p.k ? first + (Index)p.split_depth : (Index)p.k;
    const Offsets at = at_group(p, batch);

    A::Element* const a_tiles = reinterpret_cast<A::Element*>(memory);
    B::Element* const b_tiles = reinterpret_cast<B::Element*>(a_tiles + STAGES * A::SIZE);
    Loader<A> a;
    Loader<B> b;
    a.start(p, at, row, p.m);
    b.start(p, at, column, p.n);
    Sum sums[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; i++) sums[i] = 0;
    const int steps = (int)((end - first + DEPTH - 1) / DEPTH);
    // If there are several loops along k, the offsets of a tile are computed once for all threads, before the barrier that precedes its load.
    __shared__ Offsets along_k[2][LOOPS_K > 1 ? DEPTH : 1];
    const auto count = [&](int step) {
        if (LOOPS_K > 1 && threadIdx.x < DEPTH) {
            const Index k = first + step * DEPTH + threadIdx.x;
            along_k[step % 2][threadIdx.x] = at_k(p, Offsets(), k < end ? k : 0);
        }
    };
    const auto begin = [&](int step, int slot) {
        if (step < steps) {
            a.begin(p, a_tiles + slot * A::SIZE, first + step * DEPTH, end, LOOPS_K > 1 ? along_k[step % 2] : nullptr);
            b.begin(p, b_tiles + slot * B::SIZE, first + step * DEPTH, end, LOOPS_K > 1 ? along_k[step % 2] : nullptr);
        }
        commit_copies();
    };
    const auto finish = [&](int step, int slot) {
        if (step < steps) {
            a.finish(p, a_tiles + slot * A::SIZE);
            b.finish(p, b_tiles + slot * B::SIZE);
        }
    };
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; step++) {
        count(step);
        if constexpr (LOOPS_K > 1) __syncthreads();
        begin(step, step);
        finish(step, step);
    }
    count(STAGES - 1);
    int slot = 0, next = STAGES - 1;
    Shifts shifts;
    Totals totals;
#pragma unroll 1
    for (int step = 0; step < steps;) {
        const int end_of_part = PART != 0 && step + STEPS_OF_PART < steps ? step + STEPS_OF_PART : steps;
#pragma unroll 1
        for (; step < end_of_part; step++) {
            wait_for_copies<STAGES - 2>();
            __syncthreads();
            begin(step + STAGES - 1, next);
            count(step + STAGES);
            multiply(sums, shifts, a_tiles + slot * A::SIZE, b_tiles + slot * B::SIZE);
            finish(step + STAGES - 1, next);
            slot = slot + 1 == STAGES ? 0 : slot + 1;
            next = next + 1 == STAGES ? 0 : next + 1;
        }
        if (step < steps) totals.take(sums, step == STEPS_OF_PART);
    }
    wait_for_copies<0>();
    if (PART != 0 && steps > STEPS_OF_PART) totals.add_to(sums);
    shifts.subtract(sums, p, at, row, column, end - first);
    if constexpr (SPLIT) {
        if (!gather(sums, p, tile, rank)) return;
    }
    __syncthreads();
    Sum* const found = reinterpret_cast<Sum*>(memory);
#pragma unroll
    for (int i = 0; i < SUMS; i++) found[place_of_sum(row_of(i), column_of(i))] = sums[i];
    __syncthreads();
    store_tile(found, p, at, row, column);
}

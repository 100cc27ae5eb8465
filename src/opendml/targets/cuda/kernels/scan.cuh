// Computes running sums and products. SPAN threads share a line, and go along it one tile after the other. Each has KEEP elements of a tile,
// in chunks of CHUNK neighbours. The next tile is read while one is summed and written.
//
// With TEAM, several blocks share a line, or several lines side by side. Their tiles follow each other in waves, and they publish the sums
// of their tiles to each other. So memory is read once.

constexpr int TOGETHER = THREADS / SPAN;
// Lines side by side in a warp, threads of a line there, and warps that share a line.
constexpr int LINES_OF_WARP = COLUMNS ? TOGETHER < 32 ? TOGETHER : 32 : 1;
constexpr int LANES = SPAN < 32 / LINES_OF_WARP ? SPAN : 32 / LINES_OF_WARP, WARPS = SPAN / LANES;
// Chunks of a thread in a tile (one if no other thread shares the warp's line), elements and units of each, and units of a tile.
constexpr int PARTS = LANES > 1 ? KEEP / CHUNK : 1, EACH = KEEP / PARTS, UNITS = EACH / VECTOR, STEP = SPAN * PARTS * UNITS;
static_assert(SPAN == 1 || !COLUMNS || TOGETHER <= 32);

struct Line {
    Offsets at;
    Kept kept;
    Index units;  // none for threads without a line
};

typedef CollectiveInputs<VECTOR> Tile[PARTS * UNITS];

DEVICE int lane_of(int lane) { return REVERSE ? VECTOR - 1 - lane : lane; }

// Returns the number in the line of a unit of this thread, whose first one is `first`. Chunks of the lanes of a warp follow each other.
DEVICE Index number_of(Index first, int unit) { return first + unit / UNITS * (LANES * UNITS) + unit % UNITS; }

DEVICE Offsets unit_at(const Parameters& p, const Line& line, Index number) {
    return in_group<VECTOR>(p, line.at, REVERSE ? (Index)p.units - 1 - number : number);
}

DEVICE void load_tile(Tile& tile, const Parameters& p, const Line& line, Index first) {
#pragma unroll
    for (int unit = 0; unit < PARTS * UNITS; unit++) {
        const Index number = number_of(first, unit);
        if (number < line.units) load_collective_inputs<VECTOR>(tile[unit], p, unit_at(p, line, number));
    }
}

// Makes the compiler compute values of a unit again, rather than keep them in more registers than the unit takes. `zero` is 0, which the
// compiler does not know.
DEVICE void forget_unit(const Parameters& p, CollectiveInputs<VECTOR>& unit) {
    unsigned words[(sizeof(unit) + 3) / 4];
    memcpy(words, &unit, sizeof(unit));
#pragma unroll
    for (unsigned& word : words) word ^= (unsigned)p.zero;
    memcpy(&unit, words, sizeof(unit));
}

// Sums each chunk of this thread, up to the end of the line.
DEVICE void sum_up(Scanned (&sums)[PARTS], const Parameters& p, const Tile& tile, const Line& line, Index first) {
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        sums[part] = IDENTITY;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int unit = part * UNITS + k / VECTOR;
            const bool there = number_of(first, unit) < line.units;
            const Scanned value = there ? scanned<VECTOR>(p, tile[unit], line.kept, lane_of(k % VECTOR)) : IDENTITY;
            sums[part] = put_together(sums[part], value);
        }
    }
}

// Returns the sum over the threads of a line in this warp, added in the same order by all of them.
DEVICE Scanned over_lanes(Scanned sum) {
#pragma unroll
    for (int distance = LINES_OF_WARP; distance < LANES * LINES_OF_WARP; distance *= 2) {
        sum = put_together(sum, __shfl_xor_sync(~0u, sum, distance));
    }
    return sum;
}

// Replaces the sum of each chunk by that of all chunks before it within the warp. Returns the sum of all.
DEVICE Scanned scan_lanes(Scanned (&sums)[PARTS]) {
    constexpr int WIDTH = LANES * LINES_OF_WARP;
    const int lane = threadIdx.x % WIDTH;
    Scanned all = IDENTITY;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        Scanned sum = sums[part], before = IDENTITY;
        if constexpr (LANES > 1) {
#pragma unroll
            for (int distance = LINES_OF_WARP; distance < WIDTH; distance *= 2) {
                const Scanned other = __shfl_up_sync(~0u, sum, distance, WIDTH);
                if (lane >= distance) sum = put_together(other, sum);
            }
            before = __shfl_up_sync(~0u, sum, LINES_OF_WARP, WIDTH);
            if (lane < LINES_OF_WARP) before = IDENTITY;
            sum = __shfl_sync(~0u, sum, WIDTH - LINES_OF_WARP + lane % LINES_OF_WARP, WIDTH);
        }
        sums[part] = put_together(all, before);
        all = put_together(all, sum);
    }
    return all;
}

typedef Scanned WarpSums[THREADS / 32][LINES_OF_WARP];

// Returns the sum over the warps of the line before this one. `all`, the sum of this warp, becomes that of all warps.
DEVICE Scanned before_warp(WarpSums& sums, Scanned& all) {
    if constexpr (WARPS == 1) return IDENTITY;
    const int warp = threadIdx.x / 32, first = warp / WARPS * WARPS, column = threadIdx.x % LINES_OF_WARP;
    if (threadIdx.x % 32 < LINES_OF_WARP) sums[warp][column] = all;
    __syncthreads();
    Scanned earlier = all = IDENTITY;
#pragma unroll
    for (int other = 0; other < WARPS; other++) {
        if (first + other == warp) earlier = all;
        all = put_together(all, sums[first + other][column]);
    }
    return earlier;
}

// Stores the results of a tile from the sum of all that comes before it, and from those before each chunk.
DEVICE void write_tile(
    const Parameters& p, Tile& tile, const Line& line, Index first, Scanned earlier, const Scanned (&before)[PARTS]) {
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        Scanned sum = put_together(earlier, before[part]);
#pragma unroll
        for (int unit = part * UNITS; unit < (part + 1) * UNITS; unit++) {
            if (number_of(first, unit) >= line.units) continue;
            forget_unit(p, tile[unit]);
            const Offsets at = unit_at(p, line, number_of(first, unit));
            ResultInputs<VECTOR> result_inputs;
            Outputs<VECTOR> result;
            load_result_inputs<VECTOR>(result_inputs, p, at);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                const int lane = lane_of(k);
                const Scanned next = put_together(sum, scanned<VECTOR>(p, tile[unit], line.kept, lane));
                evaluate<VECTOR>(result, p, tile[unit], result_inputs, line.kept, EXCLUSIVE ? sum : next, lane);
                sum = next;
            }
            store_outputs<VECTOR>(p, at, result);
        }
    }
}

// Scans lines that no other block shares.
DEVICE void scan_alone(const Parameters& p, const Line& line, Index first) {
    __shared__ WarpSums sums[2];  // in turn, because a warp may be one tile ahead
    Tile tile, next;
    load_tile(tile, p, line, first);
    Scanned running = IDENTITY;
    int turn = 0;
    for (Index start = 0; start < (Index)p.units; start += STEP, first += STEP, turn ^= 1) {
        if constexpr (AHEAD) load_tile(next, p, line, first + STEP);
        Scanned before[PARTS];
        sum_up(before, p, tile, line, first);
        Scanned all = scan_lanes(before);
        const Scanned earlier = put_together(running, before_warp(sums[turn], all));
        running = put_together(running, all);
        write_tile(p, tile, line, first, earlier, before);
        if constexpr (AHEAD) memcpy(tile, next, sizeof(tile));
    }
}

// The sums over the blocks of a team in a wave: those before this one, and all.
struct Wave {
    Scanned before, all;
};

template <typename Team>
DEVICE Wave over_blocks(Team& team, int member) {
    __shared__ Wave waves[THREADS / 32][LINES_OF_WARP];
    const int warp = threadIdx.x / 32, column = threadIdx.x % LINES_OF_WARP;
    Wave wave = {IDENTITY, IDENTITY};
    for (int block = member; block < team.blocks; block += SPAN) {
        wave.all = put_together(wave.all, team.find(block));
        if (block < team.rank) wave.before = wave.all;
    }
    team.next();
    wave = {over_lanes(wave.before), over_lanes(wave.all)};
    if (threadIdx.x % 32 < LINES_OF_WARP) waves[warp][column] = wave;
    __syncthreads();
    wave = {IDENTITY, IDENTITY};
    const int warps = team.blocks < SPAN ? (team.blocks + LANES - 1) / LANES : WARPS;
    for (int other = 0; other < warps; other++) {
        const Wave found = waves[other][column];
        wave = {put_together(wave.before, found.before), put_together(wave.all, found.all)};
    }
    return wave;
}

// Scans lines that several blocks share.
template <typename Team>
DEVICE void scan_together(const Parameters& p, const Line& line, int member, Index first, Team& team) {
    __shared__ WarpSums sums;
    const Index wide = team.blocks * STEP;
    Tile tile, next;
    first += team.rank * STEP;
    load_tile(tile, p, line, first);
    Scanned running = IDENTITY;
    for (Index start = 0; start < (Index)p.units; start += wide, first += wide) {
        if constexpr (AHEAD) load_tile(next, p, line, first + wide);
        Scanned before[PARTS];
        sum_up(before, p, tile, line, first);
        Scanned all = before[0];
#pragma unroll
        for (int part = 1; part < PARTS; part++) all = put_together(all, before[part]);
        all = over_lanes(all);
        const Scanned earlier = before_warp(sums, all);
        if (member == 0) team.publish(all);
        scan_lanes(before);  // while other blocks publish theirs
        const Wave wave = over_blocks(team, member);
        write_tile(p, tile, line, first, put_together(put_together(running, wave.before), earlier), before);
        running = put_together(running, wave.all);
        if constexpr (AHEAD) memcpy(tile, next, sizeof(tile));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    const int place = COLUMNS ? threadIdx.x % TOGETHER : threadIdx.x / SPAN;
    const int member = COLUMNS ? threadIdx.x / TOGETHER : threadIdx.x % SPAN;
    const Index item = (Index)(TEAM ? blockIdx.x / (int)p.team : blockIdx.x) * TOGETHER + place;
    const bool there = item < (Index)p.items;
    Line line;
    line.at = at_item(p, there ? item : 0);
    load_kept(line.kept, p, line.at);
    line.units = there ? (Index)p.units : 0;
    const Index first = (member / LANES * (PARTS * LANES) + member % LANES) * UNITS;
    if constexpr (TEAM) {
        PublishedValues<Scanned, TOGETHER> team(p, place);
        scan_together(p, line, member, first, team);
    } else {
        scan_alone(p, line, first);
    }
}

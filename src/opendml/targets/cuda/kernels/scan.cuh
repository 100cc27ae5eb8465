// Running sums and products: SPAN threads share a line, KEEP neighbouring elements each, and go along it together.
//
// With TEAM, several blocks share a line, a slice each: they sum their slices up, meet, and each goes along its own from the sum
// of those before it. Slices are summed up backwards, since the cache holds what was read last.

constexpr int PARTS = KEEP / VECTOR, TOGETHER = THREADS / SPAN, STEP = SPAN * PARTS;

// The sum of a slice, as blocks leave it to each other.
struct alignas(8) Found {
    Scanned sum;
};

// The part of a line that the threads of a block share, in units of VECTOR elements.
struct Slice {
    Offsets at;
    Kept kept;
    Index begin, end;  // `end` is `begin` for threads without a line
    Index stop;        // the end for all threads
};

DEVICE int lane_of(int lane) { return REVERSE ? VECTOR - 1 - lane : lane; }

DEVICE Offsets unit_at(const Parameters& p, const Slice& slice, Index number) {
    return in_group<VECTOR>(p, slice.at, REVERSE ? (Index)p.units - 1 - number : number);
}

// The elements of the units from `first` on, in their order; past the end, what changes nothing.
DEVICE void load_elements(
    Held<VECTOR> (&held)[PARTS], Scanned (&values)[KEEP], const Parameters& p, const Slice& slice, Index first) {
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        if (first + part < slice.end) load_held<VECTOR>(held[part], p, unit_at(p, slice, first + part));
    }
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int part = k / VECTOR, lane = lane_of(k % VECTOR);
        values[k] = first + part < slice.end ? scanned<VECTOR>(p, held[part], slice.kept, lane) : IDENTITY;
    }
}

// What the threads of the line before this one have found together; `all` becomes what all of them have.
DEVICE Scanned before_thread(Scanned mine, Scanned& all) {
    constexpr int LANES = SPAN < 32 ? SPAN : 32, WARPS = SPAN / LANES;
    Scanned sum = mine;
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
        const Scanned other = __shfl_up_sync(~0u, sum, distance, LANES);
        if (threadIdx.x % LANES >= distance) sum = put_together(other, sum);
    }
    Scanned before = __shfl_up_sync(~0u, sum, 1, LANES);
    if (threadIdx.x % LANES == 0) before = IDENTITY;
    all = __shfl_sync(~0u, sum, LANES - 1, LANES);
    if constexpr (WARPS > 1) {
        __shared__ Scanned room[THREADS / 32];
        const int warp = threadIdx.x / 32, first = warp / WARPS * WARPS;
        if (threadIdx.x % 32 == 0) room[warp] = all;
        __syncthreads();
        Scanned earlier = all = IDENTITY;
#pragma unroll
        for (int other = 0; other < WARPS; other++) {
            if (first + other == warp) earlier = all;
            all = put_together(all, room[first + other]);
        }
        before = put_together(earlier, before);
        __syncthreads();
    }
    return before;
}

// What the slices before that of this block come to.
template <typename Team>
DEVICE Scanned before_slice(Team& team, const Parameters& p, const Slice& slice) {
    Scanned sum = IDENTITY, all;
    const Index steps = (slice.stop - slice.begin + STEP - 1) / STEP;
    for (Index step = steps - 1; step >= 0; step--) {
        Held<VECTOR> held[PARTS];
        Scanned values[KEEP];
        load_elements(held, values, p, slice, slice.begin + step * STEP + (int)threadIdx.x * PARTS);
#pragma unroll
        for (int k = 0; k < KEEP; k++) sum = put_together(sum, values[k]);
    }
    before_thread(sum, all);
    char* const page = team.page(p, sizeof(Found));
    if (threadIdx.x == 0) *(Found*)(page + team.rank * sizeof(Found)) = {all};
    team.meet(p);
    sum = IDENTITY;
    for (int other = threadIdx.x; other < team.rank; other += THREADS) {
        sum = put_together(sum, load_uncached<Found>(page + other * sizeof(Found)).sum);
    }
    before_thread(sum, all);
    return all;
}

DEVICE void scan_slice(const Parameters& p, const Slice& slice, int member, Scanned running) {
    for (Index step = slice.begin; step < slice.stop; step += STEP) {
        const Index first = step + member * PARTS;
        Held<VECTOR> held[PARTS];
        Scanned values[KEEP];
        load_elements(held, values, p, slice, first);
        Scanned total = IDENTITY, all;
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const Scanned sum = put_together(total, values[k]);
            values[k] = EXCLUSIVE ? total : sum;
            total = sum;
        }
        const Scanned before = put_together(running, before_thread(total, all));
        running = put_together(running, all);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            if (first + part >= slice.end) continue;
            const Offsets at = unit_at(p, slice, first + part);
            Late<VECTOR> late;
            Outputs<VECTOR> result;
            load_late<VECTOR>(late, p, at);
#pragma unroll
            for (int lane = 0; lane < VECTOR; lane++) {
                const Scanned value = put_together(before, values[part * VECTOR + lane]);
                evaluate<VECTOR>(result, p, held[part], late, slice.kept, value, lane_of(lane));
            }
            store_outputs<VECTOR>(p, at, result);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    const int member = threadIdx.x % SPAN, place = threadIdx.x / SPAN;
    Slice slice;
    if constexpr (TEAM) {
        Meeting team(p);
        slice.begin = team.rank * (Index)p.slice;
        slice.end = slice.begin + (Index)p.slice < (Index)p.units ? slice.begin + (Index)p.slice : (Index)p.units;
        slice.stop = slice.end;
        for (Index item = team.team; item < (Index)p.items; item += team.teams) {
            slice.at = at_item(p, item);
            load_kept(slice.kept, p, slice.at);
            scan_slice(p, slice, member, before_slice(team, p, slice));
        }
        team.end(p);
    } else {
        const Index item = (Index)blockIdx.x * TOGETHER + place;
        const bool there = item < (Index)p.items;
        slice.at = at_item(p, there ? item : 0);
        load_kept(slice.kept, p, slice.at);
        slice.begin = 0;
        slice.stop = (Index)p.units;
        slice.end = there ? slice.stop : 0;
        scan_slice(p, slice, member, IDENTITY);
    }
}

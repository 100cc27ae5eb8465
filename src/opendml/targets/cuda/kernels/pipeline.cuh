// Groups that several blocks share, each a part that its registers hold: read once, written once. All blocks are resident and
// take one tile after another; while one is worked on, the next ones are copied to shared memory. Each thread copies what it will
// use itself, so that it waits for nobody.

template <int REST>
DEVICE void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(REST) : "memory");
}

DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

DEVICE char* slot_of(char* ring, int stage, int k) {
    return ring + ((stage * KEEP + k) * THREADS + threadIdx.x) * UNIT_BYTES;
}

DEVICE void copy_units(char* ring, int stage, const Parameters& p, Index item, Index first) {
    if (item < (Index)p.items) {
        const Tile tile = tile_of(p, item);
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const Index unit = first + k * TY + tile.ty;
            if (tile.there && unit < (Index)p.units) {
                copy_held(slot_of(ring, stage, k), p, in_group<VECTOR>(p, tile.column, unit));
            }
        }
    }
    commit_copies();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    __shared__ Shared shared;
    extern __shared__ uint4 memory[];
    char* ring = reinterpret_cast<char*>(memory);
    const Exchange exchange(p);
    const Index first = exchange.rank * (KEEP * TY);
    Index item = exchange.team;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) {
        copy_units(ring, stage, p, item + stage * exchange.teams, first);
    }
    int stage = 0, round = 0;
    for (; item < (Index)p.items; item += exchange.teams, round++) {
        Tile tile = tile_of(p, item);
        Held<VECTOR> held[KEEP], origin;
        bool inside[KEEP];
        load_held<VECTOR>(origin, p, in_group<VECTOR>(p, tile.column, 0));
        if (tile.finishes) load_given(tile.given, p, tile.group);
        wait_for_copies<STAGES - 2>();
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            inside[k] = tile.there && first + k * TY + tile.ty < (Index)p.units;
            if (inside[k]) take_held<VECTOR>(held[k], slot_of(ring, stage, k));
        }
        const int free_stage = stage == 0 ? STAGES - 1 : stage - 1;
        copy_units(ring, free_stage, p, item + (STAGES - 1) * exchange.teams, first);
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        share_units(shared, p, tile, held, inside, origin);
        __syncthreads();
        Moments sums[REDUCED];
        if (takes_sums()) each<REDUCED>([&](auto j) { sums[j] = sum_of_parts(shared, j); });
        exchange.add(sums, shared, p, round);
        if (takes_sums()) finish_tile(shared, p, tile, sums, exchange.rank == 0);
        __syncthreads();
        store_units(shared, p, tile, first, held, inside);
        exchange.leave();
    }
    exchange.end(p);
}

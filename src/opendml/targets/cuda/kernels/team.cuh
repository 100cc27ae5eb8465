// Groups too large for the device's registers and shared memory: a team of blocks sums one up, and reads it again for the results.
// A part of it stays in the shared memory, ROOM units of each thread, and some of the rest in the L2 cache.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel();
    __shared__ Shared shared;
    extern __shared__ uint4 memory[];
    char* const room = reinterpret_cast<char*>(memory);
    constexpr int STRIDE = KEEP * TY;
    Exchange exchange(p);
    const Index begin = exchange.rank * (Index)p.slice_units, first = begin + ROOM * TY;
    const Index end = begin + (Index)p.slice_units < (Index)p.units ? begin + (Index)p.slice_units : (Index)p.units;
    const Index last = end > first ? first + (end - first - 1) / STRIDE * STRIDE : first - 1;
    for (Index item = exchange.team; item < (Index)p.items; item += exchange.teams) {
        Tile tile = tile_of(p, item);
#pragma unroll 1
        for (int k = 0; k < ROOM; k += KEEP) copy_units<KEEP>(room, p, tile, begin, end, k, ROOM);
        commit_copies();
        if (tile.finishes) load_given(tile.given, p, tile.group);
        Origin origin;
        Given given[LANES];
        load_origin(origin, p, tile);
        load_columns(given, p, tile);
        for (int attempt = FIRST_ATTEMPT;; attempt++) {
            share_units(shared, p, tile, given, origin, attempt, [&](auto add, auto) {
                Held<VECTOR> held[KEEP];
                for (Index at = first; at < end; at += STRIDE) {
                    load_units(held, p, tile, at, end);
                    add(held, [&](int k) { return is_inside(tile, at, end, k); });
                }
                wait_for_copies<0>();
#pragma unroll 1
                for (int from = 0; from < ROOM; from += KEEP) {
                    take_units(held, room, tile, begin, end, from, ROOM);
                    add(held, [&](int k) { return is_inside(tile, begin, end, from + k); });
                }
            });
            if (!end_attempt(shared, p, tile, exchange, attempt)) break;
        }
        Kept kept[LANES];
        load_kept(kept, shared, tile);
        Held<VECTOR> held[KEEP];
        // Backwards: what was read last is most likely in the cache.
        for (Index at = last; at >= first; at -= STRIDE) {
            load_units(held, p, tile, at, end);
            store_units(shared, kept, p, tile, at, end, held);
        }
#pragma unroll 1
        for (int from = 0; from < ROOM; from += KEEP) {
            take_units(held, room, tile, begin, end, from, ROOM);
            store_units(shared, kept, p, tile, begin + from * TY, end, held);
        }
    }
    exchange.end(p);
}

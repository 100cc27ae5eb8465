// Groups too large for the device's registers: a team of blocks sums one up, and reads it again for the results, some of it from
// the L2 cache.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    __shared__ Shared shared;
    constexpr int STRIDE = KEEP * TY;
    Exchange exchange(p);
    const Index begin = exchange.rank * (Index)p.slice;
    const Index end = begin + (Index)p.slice < (Index)p.units ? begin + (Index)p.slice : (Index)p.units;
    const Index last = end > begin ? begin + (end - begin - 1) / STRIDE * STRIDE : begin - 1;
    for (Index item = exchange.team; item < (Index)p.items; item += exchange.teams) {
        Tile tile = tile_of(p, item);
        if (tile.finishes) load_given(tile.given, p, tile.group);
        Origin origin;
        Given given[LANES];
        load_origin(origin, p, tile);
        load_columns(given, p, tile);
        for (int attempt = FIRST_ATTEMPT;; attempt++) {
            share_units(shared, p, tile, given, origin, attempt, [&](auto add, auto) {
                for (Index at = begin; at < end; at += STRIDE) {
                    Held<VECTOR> held[KEEP];
                    load_units(held, p, tile, at, end);
                    add(held, [&](int k) { return is_inside(tile, at, end, k); });
                }
            });
            if (!end_attempt(shared, p, tile, exchange, attempt)) break;
        }
        Kept kept[LANES];
        load_kept(kept, shared, tile);
        // Backwards: what was read last is most likely in the cache.
        for (Index at = last; at >= begin; at -= STRIDE) {
            Held<VECTOR> held[KEEP];
            load_units(held, p, tile, at, end);
            store_units(shared, kept, p, tile, at, end, held);
        }
    }
    exchange.end(p);
}

// Groups too large for the device's registers: a team of blocks sums one up, and reads it again for the results, some of it from
// the L2 cache.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    __shared__ Shared shared;
    constexpr int STRIDE = KEEP * TY;
    const Exchange exchange(p);
    const Index begin = exchange.rank * (Index)p.slice;
    const Index end = begin + (Index)p.slice < (Index)p.units ? begin + (Index)p.slice : (Index)p.units;
    const Index last = end > begin ? begin + (end - begin - 1) / STRIDE * STRIDE : begin - 1;
    int round = 0;
    for (Index item = exchange.team; item < (Index)p.items; item += exchange.teams, round++) {
        Tile tile = tile_of(p, item);
        if (tile.finishes) load_given(tile.given, p, tile.group);
        Held<VECTOR> held[KEEP];
        Given given[LANES];
        bool inside[KEEP];
        double shift[REDUCED][LANES];
        Moments moments[REDUCED][LANES] = {};
        load_held<VECTOR>(held[0], p, in_group<VECTOR>(p, tile.column, 0));
        load_columns(given, p, tile);
        each<REDUCED>([&](auto j) {
            each<LANES>([&](auto lane) { shift[j][lane] = shift_of(j, lane, held[0], given); });
        });
        for (Index first = begin; first < end; first += STRIDE) {
            load_units(held, inside, p, tile, first, end);
            each<REDUCED>([&](auto j) {
                each<LANES>([&](auto lane) {
                    add_units(moments[j][lane], j, lane, held, inside, given, shift[j][lane]);
                });
            });
        }
        each<REDUCED>([&](auto j) {
            each<LANES>([&](auto lane) {
                share_moments(shared, j, lane, tile, moments[j][lane], shift[j][lane]);
            });
        });
        __syncthreads();
        Moments sums[REDUCED];
        if (takes_sums()) each<REDUCED>([&](auto j) { sums[j] = sum_of_parts(shared, j); });
        exchange.add(sums, shared, p, round);
        if (takes_sums()) finish_tile(shared, p, tile, sums, exchange.rank == 0);
        __syncthreads();
        // Backwards: what was read last is still in registers, and what was read before that most likely in the cache.
        for (Index at = last; at >= begin; at -= STRIDE) {
            if (at != last) load_units(held, inside, p, tile, at, end);
            store_units(shared, p, tile, at, held, inside);
        }
    }
    exchange.end(p);
}

// Groups that fit the registers of a block: read once, written once. Many blocks at a time overlap their loads and stores.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    __shared__ Shared shared;
    Tile tile = tile_of(p, blockIdx.x);
    Held<VECTOR> held[KEEP], origin;
    bool inside[KEEP];
    load_held<VECTOR>(origin, p, in_group<VECTOR>(p, tile.column, 0));
    load_units(held, inside, p, tile, 0, (Index)p.units);
    if (tile.finishes) load_given(tile.given, p, tile.group);
    share_units(shared, p, tile, held, inside, origin);
    __syncthreads();
    if (takes_sums()) {
        Moments sums[REDUCED];
        each<REDUCED>([&](auto j) { sums[j] = sum_of_parts(shared, j); });
        finish_tile(shared, p, tile, sums, true);
    }
    __syncthreads();
    store_units(shared, p, tile, 0, held, inside);
}

// Groups that fit the registers of a block: read once, written once. Many blocks at a time overlap their loads and stores.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel();
    __shared__ Shared shared;
    Exchange exchange(p);
    Tile tile = tile_of(p, blockIdx.x);
    Held<VECTOR> held[KEEP];
    Origin origin;
    Given given[LANES];
    const Index units = all_units(p);
    load_origin(origin, p, tile);
    load_units(held, p, tile, 0, units);
    load_columns(given, p, tile);
    if (tile.finishes) load_given(tile.given, p, tile.group);
    for (int attempt = FIRST_ATTEMPT;; attempt++) {
        share_units(shared, p, tile, given, origin, attempt, [&](auto add, auto) {
            add(held, [&](int k) { return is_inside(tile, 0, units, k); });
        });
        if (!end_attempt(shared, p, tile, exchange, attempt)) break;
    }
    Kept kept[LANES];
    load_kept(kept, shared, tile);
    store_units(shared, kept, p, tile, 0, units, held);
}

// Groups that fit the registers of a block, or of a cluster of blocks: read once, written once.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    __shared__ Shared shared;
    const int rank = blockIdx.x % CLUSTER;
    const Index item = blockIdx.x / CLUSTER;
    Tile tile = tile_of(p, item);
    const Index first = rank * (KEEP * TY);
    Held<VECTOR> held[KEEP], origin;
    Given given[LANES];
    bool inside[KEEP];
    load_held<VECTOR>(origin, p, in_group<VECTOR>(p, tile.column, 0));
    load_units(held, inside, p, tile, first, (Index)p.units);
    load_columns(given, p, tile);
    if (tile.finishes) load_given(tile.given, p, tile.group);
    if constexpr (AHEAD > 0) prefetch_units(p, item + AHEAD, first, (Index)p.units);
    double column_shift[REDUCED][LANES];
    each<REDUCED>([&](auto j) {
        Moments moments[LANES] = {};
        find_shifts(column_shift[j], j, origin, given);
        add_units(moments, j, held, inside, given, column_shift[j]);
        share_moments(shared, j, tile, moments);
    });
    share_shifts(shared, tile, column_shift);
    __syncthreads();
    Moments sums[REDUCED];
    each<REDUCED>([&](auto j) {
        if (!takes_sums()) return;
        sums[j] = sum_of_parts(shared, j);
        if constexpr (CLUSTER > 1) {
            shared.total[j][finished_column()][0] = sums[j].sum;
            shared.total[j][finished_column()][1] = sums[j].squares;
        }
    });
    if constexpr (CLUSTER > 1) {
        cluster_arrive();
        cluster_wait();
        each<REDUCED>([&](auto j) {
            if (!takes_sums()) return;
            sums[j] = sum_of(CLUSTER, [&](int block, int which) {
                return load_from_block(&shared.total[j][finished_column()][which], block);
            });
        });
        cluster_arrive();
    }
    if (takes_sums()) finish_tile(shared, p, tile, sums, rank == 0);
    __syncthreads();
    store_units(shared, p, tile, first, held, inside);
    // No block may end while another reads its sums.
    if constexpr (CLUSTER > 1) cluster_wait();
}

// Groups that fit the registers of a block, or of a cluster of blocks: read once, written once. All clusters are resident, and
// take one tile after another.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    __shared__ Shared shared;
    const int rank = blockIdx.x % CLUSTER;
    const Index clusters = gridDim.x / CLUSTER, first = rank * (KEEP * TY);
    for (Index item = blockIdx.x / CLUSTER; item < (Index)p.items; item += clusters) {
        Tile tile = tile_of(p, item);
        Held<VECTOR> held[KEEP], origin;
        Given given[LANES];
        bool inside[KEEP];
        load_held<VECTOR>(origin, p, in_group<VECTOR>(p, tile.column, 0));
        load_units(held, inside, p, tile, first, (Index)p.units);
        load_columns(given, p, tile);
        if (tile.finishes) load_given(tile.given, p, tile.group);
        if constexpr (PREFETCH) prefetch_units(p, item + clusters, first, (Index)p.units);
        each<REDUCED>([&](auto j) {
            each<LANES>([&](auto lane) {
                const double shift = shift_of(j, lane, origin, given);
                Moments moments = {0, 0};
                add_units(moments, j, lane, held, inside, given, shift);
                share_moments(shared, j, lane, tile, moments, shift);
            });
        });
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
        // No block may go on, or end, while another reads its sums.
        if constexpr (CLUSTER > 1) cluster_wait();
    }
}

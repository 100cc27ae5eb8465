// Larger groups: a team of blocks shares one, sums it up, meets at a barrier in global memory, and reads it again for the
// results, most of it from the L2 cache. All blocks are resident (a cooperative launch), each team takes one tile after another.

// The counter of each team is followed by the number of blocks that are done; both are zero between launches.
DEVICE void meet(unsigned* counter, unsigned goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(counter, 1u);
        unsigned arrived;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
        } while (arrived < goal);
    }
    __syncthreads();
}

DEVICE double load_uncached(const double* from) {
    double value;
    asm volatile("ld.global.cg.f64 %0, [%1];" : "=d"(value) : "l"(from) : "memory");
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    __shared__ Shared shared;
    const int size = (int)p.team, team = blockIdx.x / size, rank = blockIdx.x % size, teams = gridDim.x / size;
    unsigned* counters = (unsigned*)p.counters + 2 * team;
    const Index begin = rank * (Index)p.slice;
    const Index end = begin + (Index)p.slice < (Index)p.units ? begin + (Index)p.slice : (Index)p.units;
    constexpr int STRIDE = KEEP * TY, PAGE = REDUCED * WIDTH * 2;
    const Index last = end > begin ? begin + (end - begin - 1) / STRIDE * STRIDE : begin - 1;
    unsigned round = 0;
    for (Index item = team; item < (Index)p.items; item += teams, round++) {
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
        prefetch_units(p, item + teams, begin, end);
        each<REDUCED>([&](auto j) {
            each<LANES>([&](auto lane) {
                share_moments(shared, j, lane, tile, moments[j][lane], shift[j][lane]);
            });
        });
        __syncthreads();
        double* page = (double*)p.scratch + ((long long)(round % 2) * gridDim.x + blockIdx.x - rank) * PAGE;
        each<REDUCED>([&](auto j) {
            if (!takes_sums()) return;
            const Moments own = sum_of_parts(shared, j);
            double* slot = page + rank * PAGE + (j * WIDTH + finished_column()) * 2;
            slot[0] = own.sum;
            slot[1] = own.squares;
        });
        meet(counters, (round + 1) * size);
        Moments sums[REDUCED];
        each<REDUCED>([&](auto j) {
            if (!takes_sums()) return;
            sums[j] = sum_of(size, [&](int block, int which) {
                return load_uncached(page + block * PAGE + (j * WIDTH + finished_column()) * 2 + which);
            });
        });
        if (takes_sums()) finish_tile(shared, p, tile, sums, rank == 0);
        __syncthreads();
        // Backwards: what was read last is still in registers, and what was read before that most likely in the cache.
        for (Index at = last; at >= begin; at -= STRIDE) {
            if (at != last) load_units(held, inside, p, tile, at, end);
            store_units(shared, p, tile, at, held, inside);
        }
    }
    if (threadIdx.x == 0 && atomicInc(counters + 1, size - 1) == size - 1) atomicExch(counters, 0u);
}

// How the blocks that share a tile add up their moments: as a team of any size, through global memory. All blocks are resident
// (a cooperative launch). The counter of each team is followed by the number of its blocks that are done; both are zero between
// launches.

struct Exchange {
    int rank, blocks, teams, team, round;

    DEVICE_MEMBER Exchange(const Parameters& p)
        : rank(blockIdx.x % (int)p.team), blocks((int)p.team), teams(gridDim.x / (int)p.team),
          team(blockIdx.x / (int)p.team), round(0) {}

    // The sums of all blocks, for the threads that take them. Every second round has a page of its own, as a block may be one
    // ahead.
    DEVICE_MEMBER void add(Moments (&sums)[REDUCED], const Parameters& p) {
        constexpr int page = REDUCED * WIDTH * 2;
        double* pages = (double*)p.scratch + ((long long)(round % 2) * gridDim.x + team * blocks) * page;
        if (takes_sums()) {
            each<REDUCED>([&](auto j) {
                double* slot = pages + rank * page + (j * WIDTH + finished_group()) * 2;
                slot[0] = sums[j].sum;
                slot[1] = sums[j].squares;
            });
        }
        meet((unsigned*)p.counters + 2 * team, (unsigned)(round + 1) * blocks);
        if (takes_sums()) {
            each<REDUCED>([&](auto j) {
                sums[j] = sum_of<32>(blocks, [&](int block, int which) {
                    return load_uncached(pages + block * page + (j * WIDTH + finished_group()) * 2 + which);
                });
            });
        }
        round++;
    }

    DEVICE_MEMBER void end(const Parameters& p) const {
        unsigned* counters = (unsigned*)p.counters + 2 * team;
        if (threadIdx.x == 0 && atomicInc(counters + 1, blocks - 1) == blocks - 1) atomicExch(counters, 0u);
    }

    DEVICE_MEMBER static void meet(unsigned* counter, unsigned goal) {
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
            unsigned arrived;
            // Acquiring empties the L1 cache: that is done once, when all are there.
            do {
                asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
            } while (arrived < goal);
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
        }
        __syncthreads();
    }

    DEVICE_MEMBER static double load_uncached(const double* from) {
        double value;
        asm volatile("ld.global.cg.f64 %0, [%1];" : "=d"(value) : "l"(from) : "memory");
        return value;
    }
};

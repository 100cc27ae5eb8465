// How the blocks that share a tile add up their moments: as a thread-block cluster, through each other's shared memory.

struct Exchange {
    int rank, blocks, teams, team;

    DEVICE_MEMBER Exchange(const Parameters&)
        : rank(blockIdx.x % CLUSTER), blocks(CLUSTER), teams(gridDim.x / CLUSTER), team(blockIdx.x / CLUSTER) {}

    // The sums of all blocks, for the threads that take them; no block may go on to its next tile before `leave`.
    DEVICE_MEMBER void add(Moments (&sums)[REDUCED], Shared& shared, const Parameters&, int) const {
        if constexpr (CLUSTER == 1) return;
        if (takes_sums()) {
            each<REDUCED>([&](auto j) {
                shared.total[j][finished_column()][0] = sums[j].sum;
                shared.total[j][finished_column()][1] = sums[j].squares;
            });
        }
        arrive();
        wait();
        if (takes_sums()) {
            each<REDUCED>([&](auto j) {
                sums[j] = sum_of(CLUSTER, [&](int block, int which) {
                    return load_from_block(&shared.total[j][finished_column()][which], block);
                });
            });
        }
        arrive();
    }

    DEVICE_MEMBER void leave() const {
        if constexpr (CLUSTER > 1) wait();
    }

    DEVICE_MEMBER void end(const Parameters&) const {}

    DEVICE_MEMBER static void arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
    DEVICE_MEMBER static void wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

    // A double at the same place in the shared memory of block `rank`.
    DEVICE_MEMBER static double load_from_block(const double* address, int rank) {
        unsigned local = (unsigned)__cvta_generic_to_shared(address), remote;
        double value;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
        asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(value) : "r"(remote) : "memory");
        return value;
    }
};

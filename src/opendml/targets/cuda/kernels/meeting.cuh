// How the blocks that share a group meet: as a team of any size, in global memory. All blocks are resident (a cooperative
// launch). The counter of each team is followed by the number of its blocks that are done; both are zero between launches.

struct Meeting {
    int rank, blocks, teams, team, round;

    DEVICE_MEMBER Meeting(const Parameters& p)
        : rank(blockIdx.x % (int)p.team), blocks((int)p.team), teams(gridDim.x / (int)p.team),
          team(blockIdx.x / (int)p.team), round(0) {}

    // Where the first block of the team leaves what it has found, `bytes` before the next. Every second round has a page of its
    // own, as a block may be one ahead.
    DEVICE_MEMBER char* page(const Parameters& p, int bytes) const {
        return (char*)p.scratch + ((long long)(round % 2) * gridDim.x + team * blocks) * bytes;
    }

    // Ends a round: what the blocks of the team wrote before it, all of them see after it.
    DEVICE_MEMBER void meet(const Parameters& p) {
        round++;
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned* const counter = (unsigned*)p.counters + 2 * team;
            const unsigned goal = (unsigned)round * blocks;
            arrive(counter);
            // Acquiring empties the L1 cache: that is done once, when all are there.
            while (look_at(counter) < goal) {}
            acquire(counter);
        }
        __syncthreads();
    }

    DEVICE_MEMBER void end(const Parameters& p) const {
        unsigned* const counters = (unsigned*)p.counters + 2 * team;
        if (threadIdx.x == 0 && atomicInc(counters + 1, blocks - 1) == blocks - 1) atomicExch(counters, 0u);
    }
};

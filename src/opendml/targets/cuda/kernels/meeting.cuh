// How the blocks that share a group meet: as a team of any size, in global memory. All blocks are resident (a cooperative
// launch). The counter of each team is followed by the number of its blocks that are done; both are zero between launches.

struct Meeting {
    int rank, blocks, teams, team, round;

    DEVICE_MEMBER Meeting(const Parameters& p) : Meeting(p, (int)p.team) {}

    DEVICE_MEMBER Meeting(const Parameters& p, int blocks)
        : rank(blockIdx.x % blocks), blocks(blocks), teams(gridDim.x / blocks), team(blockIdx.x / blocks), round(0) {}

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

    // Arrives without waiting. Returns whether all other blocks of the team have arrived, for one that then sees what they wrote.
    // Blocks need not be resident.
    DEVICE_MEMBER bool arrives_last(const Parameters& p) const {
        __shared__ bool is_last;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) is_last = atomicInc((unsigned*)p.counters + 2 * team, blocks - 1) == blocks - 1;
        __syncthreads();
        if (is_last) __threadfence();
        return is_last;
    }

    DEVICE_MEMBER void end(const Parameters& p) const {
        unsigned* const counters = (unsigned*)p.counters + 2 * team;
        if (threadIdx.x == 0 && atomicInc(counters + 1, blocks - 1) == blocks - 1) atomicExch(counters, 0u);
    }
};

// A barrier in global memory of the blocks that share a group (a team of any size). All blocks are resident (a cooperative launch). Behind
// the counter of a team is the number of its blocks that are done. Both are zero between launches.

struct Meeting {
    int rank, blocks, teams, team, round;

    DEVICE_MEMBER Meeting(const Parameters& p) : Meeting(p, (int)p.team) {}

    DEVICE_MEMBER Meeting(const Parameters& p, int blocks)
        : rank(blockIdx.x % blocks), blocks(blocks), teams(gridDim.x / blocks), team(blockIdx.x / blocks), round(0) {}

    // Returns the memory for the states of the team's blocks, `bytes` for each. Rounds use two pages in turn, because a block may be one
    // round ahead.
    DEVICE_MEMBER char* page(const Parameters& p, int bytes) const {
        return (char*)p.scratch + ((long long)(round % 2) * gridDim.x + team * blocks) * bytes;
    }

    // Ends a round. Afterwards all blocks of the team see what each of them wrote before.
    DEVICE_MEMBER void meet(const Parameters& p) {
        round++;
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned* const counter = (unsigned*)p.counters + 2 * team;
            const unsigned goal = (unsigned)round * blocks;
            arrive(counter);
            // Acquiring empties the L1 cache, so it is done once, when all blocks have arrived.
            while (load_relaxed(counter) < goal) {}
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

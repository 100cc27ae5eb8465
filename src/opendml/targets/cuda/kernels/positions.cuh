// Stores what a kernel computes of the positions of the elements that hold along each line, in their order, and of their number. Behind them
// it stores what is computed of -1. Blocks of a team share a line, and go along it in waves. Each reads its part, keeps a bit for each
// element, and finds how many elements before it hold. Elements that do not hold fill the places at the end of the line, from the last
// one on. So all elements are read once, and all results written once.

constexpr int WARPS = THREADS / 32;

// The number of elements that hold before this part, and of all.
struct Share {
    Index before, all;

    DEVICE_MEMBER void add(const Share& other) { before += other.before, all += other.all; }
};

DEVICE Index over_lanes(Index sum) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    return sum;
}

DEVICE Share over_warps(Index mine) {
    __shared__ Index of_warps[WARPS];
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) of_warps[warp] = mine;
    __syncthreads();
    Share share = {0, 0};
#pragma unroll
    for (int other = 0; other < WARPS; other++) share.add({other < warp ? of_warps[other] : 0, of_warps[other]});
    return share;
}

template <typename Team>
DEVICE Share over_blocks(Team& team, Index mine) {
    __shared__ Share of_warps[WARPS];
    if (threadIdx.x == 0) team.publish(mine);
    Share share = {0, 0};
    for (int block = threadIdx.x; block < team.blocks; block += THREADS) {
        const Index found = team.find(block);
        share.add({block < team.rank ? found : 0, found});
    }
    team.next();
    share = {over_lanes(share.before), over_lanes(share.all)};
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = share;
    __syncthreads();
    share = {0, 0};
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) share.add(of_warps[warp]);
    return share;
}

// Sets the bits of the elements that hold, from `first` on; a word has those of 32 neighbours. Returns their number.
DEVICE Index find(unsigned* words, const Parameters& p, const Offsets& start, Index first) {
    const int lane = threadIdx.x % 32, slice = (int)p.warp_words;
    for (int word = 0; word < slice; word += BATCH) {
        const Index from = first + word * 32, units = (Index)p.units;
        bool there[BATCH];
        auto look = [&](auto is_whole) {
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                const Index unit = from + k * 32 + lane;
                there[k] = (decltype(is_whole)::value || unit < units) && holds(p, in_group<1>(p, start, unit));
            }
        };
        if (from + BATCH * 32 <= units) look(Number<1>());
        else look(Number<0>());
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const unsigned bits = __ballot_sync(~0u, there[k]);
            if (lane == 0) words[word + k] = bits;
        }
    }
    __syncwarp();
    Index found = 0;
    for (int word = lane; word < slice; word += 32) found += __popc(words[word]);
    return over_lanes(found);
}

// Stores the results of the positions of the elements that hold, from `first` on. `before` elements that hold come earlier.
DEVICE void put_found(const unsigned* words, const Parameters& p, const Offsets& start, Index first, Index before) {
    const int lane = threadIdx.x % 32, slice = (int)p.warp_words;
    for (int word = 0; word < slice; word += 32, first += 32 * 32) {
        const unsigned own = word + lane < slice ? words[word + lane] : 0;
        for (unsigned left = __ballot_sync(~0u, own != 0); left; left &= left - 1) {
            const int next = __ffs(left) - 1;
            const unsigned bits = __shfl_sync(~0u, own, next);
            const Index place = before + __popc(bits & ((1u << lane) - 1));
            if (bits >> lane & 1) put(p, in_group<1>(p, start, place), (Position)(first + next * 32 + lane));
            before += __popc(bits);
        }
    }
}

// Stores the results of -1 for the elements from `first` on that do not hold. `found` of these elements hold, and `before` earlier ones.
DEVICE void put_rest(const Parameters& p, const Offsets& start, Index first, Index before, Index found) {
    const Index units = (Index)p.units, own = (Index)p.warp_words * 32, last = units - first < own ? units - first : own;
    const Index end = units - first + before;
#pragma unroll 4
    for (Index place = end - (last - found) + threadIdx.x % 32; place < end; place += 32) {
        put(p, in_group<1>(p, start, place), (Position)-1);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 memory[];
    const int warp = threadIdx.x / 32, slice = (int)p.warp_words, blocks = TEAM ? (int)p.team : 1;
    unsigned* const words = reinterpret_cast<unsigned*>(memory) + warp * slice;
    const Offsets start = at_group(p, (Index)(blockIdx.x / blocks));
    const Index own = slice * 32;
    Index running = 0;
    auto go_along = [&](int rank, auto meet) {
        for (Index wave = 0; wave < (Index)p.units; wave += own * WARPS * blocks) {
            const Index first = wave + (rank * WARPS + warp) * own;
            const Index found = find(words, p, start, first);
            const Share here = over_warps(found), team = meet(here.all);
            const Index before = running + team.before + here.before;
            put_found(words, p, start, first, before);
            put_rest(p, start, first, before, found);
            running += team.all;
            __syncthreads();
        }
        if (rank == 0 && threadIdx.x == 0) put_number(p, start, running);
    };
    if constexpr (TEAM) {
        PublishedValues<Index, 1> team(p, 0);
        go_along(team.rank, [&](Index mine) { return over_blocks(team, mine); });
    } else {
        go_along(0, [](Index mine) { return Share{0, mine}; });
    }
}

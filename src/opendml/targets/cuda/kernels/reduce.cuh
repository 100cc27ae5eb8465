// Reductions of any kind, in passes over the elements: SPAN threads share a group, and put their states together in
// shared memory after each pass. Where groups lie side by side, so do the threads that work on different ones.
//
// With TEAM, several blocks share the groups of one, a slice each, and whichever of them is done last puts their states
// together, in the order of the slices. The counter of each team is zero between launches.

template <typename Stage, typename States>
DEVICE void combine(Stage stage, States& mine, int member, int place) {
    __shared__ States room[THREADS];
    States* const states = room + place * SPAN;
    states[member] = mine;
#pragma unroll
    for (int distance = SPAN / 2; distance > 0; distance /= 2) {
        __syncthreads();
        if (member < distance) merge(stage, states[member], states[member + distance]);
    }
    __syncthreads();
    mine = states[0];
    __syncthreads();
}

// Whether this block is the last of its team; then `mine`, which is started anew, becomes the state of the team.
template <typename Stage, typename States>
DEVICE bool gather(Stage stage, States& mine, const States& fresh, const Parameters& p, int member, int place) {
    constexpr int TOGETHER = THREADS / SPAN;
    __shared__ bool is_last;
    const int blocks = (int)p.team, team = blockIdx.x / blocks, rank = blockIdx.x % blocks;
    States* const page = (States*)p.scratch + (long long)team * blocks * TOGETHER;
    if (member == 0) page[rank * TOGETHER + place] = mine;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicInc((unsigned*)p.counters + team, blocks - 1) == blocks - 1;
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
    mine = fresh;
    for (int other = member; other < blocks; other += SPAN) {
        merge(stage, mine, load_uncached<States>((const char*)(page + other * TOGETHER + place)));
    }
    if constexpr (SPAN > 1) combine(stage, mine, member, place);
    return true;
}

// Takes in every SPAN-th element from `first` on. A batch of them is read before any is taken in.
template <typename Stage, typename States>
DEVICE void take_in_all(Stage stage, States& mine, const Parameters& p, const Offsets& at, Index first, Index last, const Found& found) {
    typedef decltype(read(stage, p, at, found)) Element;
    constexpr int BATCH = THREADS * sizeof(Element) > 8192 ? 4 : 8;  // that registers hold
    Element elements[BATCH];
    auto each_of_batch = [&](auto step) {
#pragma unroll
        for (int k = 0; k < BATCH; k++) step(k, first + k * SPAN);
    };
    auto read_one = [&](int k, Index unit) { elements[k] = read(stage, p, in_group<1>(p, at, unit), found); };
    auto take_one = [&](int k, Index) { take_in(stage, mine, elements[k]); };
#pragma unroll 1
    for (; first + (BATCH - 1) * SPAN < last; first += BATCH * SPAN) {
        each_of_batch(read_one);
        each_of_batch(take_one);
    }
    each_of_batch([&](int k, Index unit) {
        if (unit < last) read_one(k, unit);
    });
    each_of_batch([&](int k, Index unit) {
        if (unit < last) take_one(k, unit);
    });
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel();
    constexpr int TOGETHER = THREADS / SPAN;
    const int member = COLUMNS ? threadIdx.x / TOGETHER : threadIdx.x % SPAN;
    const int place = COLUMNS ? threadIdx.x % TOGETHER : threadIdx.x / SPAN;
    const int block = TEAM ? blockIdx.x / (int)p.team : blockIdx.x;
    const Index item = (Index)block * TOGETHER + place;
    const bool there = item < (Index)p.items;
    const Index first = TEAM ? (Index)(blockIdx.x - block * (int)p.team) * (Index)p.slice_units : 0;
    const Index units = there ? (Index)p.units : 0;
    const Index last = TEAM && first + (Index)p.slice_units < units ? first + (Index)p.slice_units : units;
    const Offsets at = at_item(p, there ? item : 0);
    Found found;
    bool is_last = true;
    each<STAGES>([&](auto stage) {
        auto mine = nothing(stage);
        start(stage, mine, p, in_group<1>(p, at, 0), found);
        const auto fresh = mine;
        take_in_all(stage, mine, p, at, first + member, last, found);
        if constexpr (SPAN > 1) combine(stage, mine, member, place);
        if constexpr (TEAM) is_last = gather(stage, mine, fresh, p, member, place);
        if (is_last) conclude(stage, found, mine, p);
    });
    if (!is_last) return;
    if (there && member == 0) store_groups(p, at, found);
    if constexpr (HAS_ELEMENTS) {
        for (Index unit = member; unit < units; unit += SPAN) {
            store_elements(p, in_group<1>(p, at, unit), found);
        }
    }
}

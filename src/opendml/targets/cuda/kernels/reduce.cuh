// Reductions of any kind, in passes over the elements: SPAN threads share a group, and put their states together in
// shared memory after each pass. Where groups lie side by side, so do the threads that work on different ones.

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

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    constexpr int TOGETHER = THREADS / SPAN;
    const int member = COLUMNS ? threadIdx.x / TOGETHER : threadIdx.x % SPAN;
    const int place = COLUMNS ? threadIdx.x % TOGETHER : threadIdx.x / SPAN;
    const Index item = (Index)blockIdx.x * TOGETHER + place;
    const bool there = item < (Index)p.items;
    const Index units = there ? (Index)p.units : 0;
    const Offsets at = at_item(p, there ? item : 0);
    Found found;
    each<STAGES>([&](auto stage) {
        auto mine = nothing(stage);
        start(stage, mine, p, in_group<1>(p, at, 0), found);
#pragma unroll 4
        for (Index unit = member; unit < units; unit += SPAN) {
            take_in(stage, mine, p, in_group<1>(p, at, unit), found);
        }
        if constexpr (SPAN > 1) combine(stage, mine, member, place);
        conclude(stage, found, mine, p);
    });
    if (there && member == 0) store_groups(p, at, found);
    if constexpr (HAS_ELEMENTS) {
        for (Index unit = member; unit < units; unit += SPAN) {
            store_elements(p, in_group<1>(p, at, unit), found);
        }
    }
}

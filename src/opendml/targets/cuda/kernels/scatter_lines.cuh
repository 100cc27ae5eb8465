// Scatters positions of elements, of which the greatest holds. A block has the places of TOGETHER neighbouring lines in shared memory, and
// stores all of them at the end.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 memory[];
    constexpr int STEP = THREADS / TOGETHER, BATCH = 4;
    const int count = (int)p.places, line = threadIdx.x % TOGETHER, member = threadIdx.x / TOGETHER;
    Placed* const places = reinterpret_cast<Placed*>(memory);
    auto at_place = [&](int place) -> Placed& { return places[place * TOGETHER + line]; };
    for (int place = member; place < count; place += STEP) at_place(place) = -1;
    __syncthreads();
    const Index item = (Index)blockIdx.x * TOGETHER + line;
    if (item < (Index)p.items) {
        const Offsets start = at_group(p, item);
        const Index units = (Index)p.units;
        for (Index first = member; first < units; first += BATCH * STEP) {
            long long found[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                const Index unit = first + k * STEP;
                Placed number = (Placed)unit;
                found[k] = unit < units ? (long long)element(p, in_group<1>(p, start, unit), number) : -1;
            }
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                if ((unsigned long long)found[k] < (unsigned long long)count) {
                    atomicMax(&at_place((int)found[k]), (Placed)(first + k * STEP));
                }
            }
        }
    }
    __syncthreads();
    if (item < (Index)p.items) {
        const Offsets start = at_group(p, item);
        for (int place = member; place < count; place += STEP) put(p, start, place, at_place(place));
    }
}

// Small groups that follow each other in memory without being aligned: a block copies BATCH of them to shared memory in units of
// 16 bytes, gives each to SPAN neighbouring lanes, puts the results in their place, and copies those out.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel();
    extern __shared__ uint4 memory[];
    char* staged = reinterpret_cast<char*>(memory);
    const Index first = (Index)blockIdx.x * BATCH;
    const int groups = (Index)p.items - first < BATCH ? (int)((Index)p.items - first) : BATCH;
    constexpr int group_bytes = UNITS * ELEMENT;
    const int bytes = groups * group_bytes;
    const char* source = held_address(p, at_group(p, first));
    char* target = stored_address(p, at_group(p, first));
    for (int at = threadIdx.x * 16; at + 16 <= bytes; at += THREADS * 16) copy_async<16>(staged + at, source + at);
    for (int at = bytes / 16 * 16 + threadIdx.x; at < bytes; at += THREADS) staged[at] = source[at];
    wait_for_all_copies();
    __syncthreads();
    const int lane = threadIdx.x % SPAN;
    for (int slot = threadIdx.x / SPAN; slot < BATCH; slot += THREADS / SPAN) {
        const bool there = slot < groups;
        const Offsets at = at_group(p, first + (there ? slot : 0));
        char* group = staged + slot * group_bytes;
        Given given;
        load_given(given, p, at);
        Statistics found[REDUCED];
        each<REDUCED>([&](auto j) {
            auto value = [&](int unit) {
                Held<1> held;
                take_held<1>(held, group + unit * ELEMENT);
                return reduced<1>(j, p, held, given, 0);
            };
            constexpr int few = UNITS >= 8 ? 8 : UNITS >= 4 ? 4 : 1;
            const Quick shift = there ? shift_from<few>(value) : Quick(0);
            auto inside = [&](int k) { return there && k * SPAN + lane < UNITS; };
            found[j] = warp_statistics<KEEP, 1, SPAN>(
                inside, shift, p.share, [&](int k, int) { return value(k * SPAN + lane); });
        });
        __syncwarp();
        Kept kept;
        finish(kept, p, given, found);
        if (!there) continue;
        if (lane == 0) store_groups(p, at, kept);
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const int unit = k * SPAN + lane;
            if (unit >= UNITS) continue;
            Held<1> held;
            Late<1> late;
            Outputs<1> result;
            take_held<1>(held, group + unit * ELEMENT);
            load_late<1>(late, p, in_group<1>(p, at, unit));
            evaluate<1>(result, p, held, late, kept, 0);
            put_outputs<1>(group + unit * ELEMENT, result);
        }
    }
    __syncthreads();
    for (int at = threadIdx.x * 16; at + 16 <= bytes; at += THREADS * 16) {
        *reinterpret_cast<uint4*>(target + at) = *reinterpret_cast<const uint4*>(staged + at);
    }
    for (int at = bytes / 16 * 16 + threadIdx.x; at < bytes; at += THREADS) target[at] = staged[at];
}

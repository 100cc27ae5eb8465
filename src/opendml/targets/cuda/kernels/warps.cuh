// Small groups: each is held by SPAN neighbouring lanes of a warp, KEEP units a lane. Nothing is shared between warps.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel();
    const Index group = (Index)blockIdx.x * (THREADS / SPAN) + threadIdx.x / SPAN;
    const bool there = group < (Index)p.items;
    const Offsets at = at_group(p, there ? group : 0);
    const int lane_of_group = threadIdx.x % SPAN;
    Held<VECTOR> held[KEEP];
    const Index units = there ? (Index)p.units : 0;
    auto inside = [&](int k) { return k * SPAN + lane_of_group < units; };
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (inside(k)) load_held<VECTOR>(held[k], p, in_group<VECTOR>(p, at, k * SPAN + lane_of_group));
    }
    Given given;
    load_given(given, p, at);
    Statistics found[REDUCED];
    each<REDUCED>([&](auto j) {
        auto value = [&](int k, int lane) { return reduced<VECTOR>(j, p, held[k], given, lane); };
        const Quick first = inside(0) ? shift_from<VECTOR>([&](int lane) { return value(0, lane); }) : Quick(0);
        const Quick shift = __shfl_sync(~0u, first, 0, SPAN);
        found[j] = warp_statistics<KEEP, VECTOR, SPAN>(inside, shift, p.share, value);
    });
    Kept kept;
    finish(kept, p, given, found);
    if (there && lane_of_group == 0) store_groups(p, at, kept);
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (!inside(k)) continue;
        const Offsets here = in_group<VECTOR>(p, at, k * SPAN + lane_of_group);
        Late<VECTOR> late;
        Outputs<VECTOR> result;
        load_late<VECTOR>(late, p, here);
#pragma unroll
        for (int lane = 0; lane < VECTOR; lane++) evaluate<VECTOR>(result, p, held[k], late, kept, lane);
        store_outputs<VECTOR>(p, here, result);
    }
}

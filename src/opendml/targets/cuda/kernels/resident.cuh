// Groups that are reduced in any way, in registers: each by SPAN threads, KEEP units each, which are read once and serve all
// passes. SPAN lanes of a warp share a group, or a whole block does. Where groups lie side by side, so do TX threads of a block,
// and the lanes of a unit are groups of their own.

constexpr int LANES = COLUMNS ? VECTOR : 1;                      // groups of a thread
static_assert((SPAN & (SPAN - 1)) == 0);
constexpr int NEAR = COLUMNS ? 32 / TX : SPAN < 32 ? SPAN : 32;  // threads of a warp that share a group

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel();
    const int member = COLUMNS ? threadIdx.x / TX : threadIdx.x % SPAN;
    const int place = COLUMNS ? threadIdx.x % TX : threadIdx.x / SPAN;
    const Index item = (Index)blockIdx.x * (THREADS / SPAN) + place;
    const bool there = item < (Index)p.items;
    const Index units = there ? (Index)p.units : 0;
    const Offsets at = at_item(p, there ? item : 0);
    auto inside = [&](int k) { return (Index)(k * SPAN + member) < units; };
    auto unit_at = [&](int k) { return in_group<VECTOR>(p, at, (Index)(k * SPAN + member)); };
    auto group_at = [&](int lane) { return COLUMNS ? in_row<1>(p, at, (Index)lane) : at; };
    Held<VECTOR> held[KEEP];
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (inside(k)) load_held<VECTOR>(held[k], p, unit_at(k));
    }
    Held<LANES> origin;
    load_held<LANES>(origin, p, in_group<LANES>(p, at, 0));
    Found found[LANES];
    each<STAGES>([&](auto stage) {
        decltype(nothing(stage)) mine[LANES];
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) start<LANES>(stage, mine[lane], p, origin, group_at(lane), found[lane], lane);
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            if (!inside(k)) continue;
#pragma unroll
            for (int lane = 0; lane < VECTOR; lane++) {
                const int group = lane % LANES;
                take_in<VECTOR>(stage, mine[group], p, held[k], group_at(group), found[group], lane);
            }
        }
        combine<NEAR, TX, SPAN / NEAR>(stage, mine);
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) conclude(stage, found[lane], mine[lane], p);
    });
    if (there && member == 0) {
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) store_groups(p, group_at(lane), found[lane]);
    }
    if constexpr (HAS_ELEMENTS) {
        Kept kept[LANES];
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) finish(kept[lane], p, group_at(lane), found[lane]);
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            if (!inside(k)) continue;
            Late<VECTOR> late;
            Outputs<VECTOR> result;
            load_late<VECTOR>(late, p, unit_at(k));
#pragma unroll
            for (int lane = 0; lane < VECTOR; lane++) {
                evaluate<VECTOR>(result, p, held[k], late, kept[lane % LANES], lane);
            }
            store_outputs<VECTOR>(p, unit_at(k), result);
        }
    }
}

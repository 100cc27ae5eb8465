// Groups that are reduced in any way, in passes over their units: each by one block, or by a team of blocks that meet after each
// pass, a share each.
//
// HELD: blocks keep their shares in shared memory, where each thread copies what it will use itself, and memory is read once.
// Else shares are read in each pass, every second time backwards, since the cache holds what was read last.

constexpr int WARPS = THREADS / 32, BATCH = HELD ? 1 : 4;  // units whose loads are under way together

// Puts the states of a block's threads together, as often as need be.
template <typename Stage, typename States>
DEVICE void combine_block(Stage stage, States& mine) {
    States one[1] = {mine};
    combine<32, 1, WARPS>(stage, one);
    mine = one[0];
    __syncthreads();
}

// The same with the states of a team's blocks; `fresh` is a state before any element.
template <typename Stage, typename States>
DEVICE void exchange(Stage stage, States& mine, const States& fresh, Meeting& team, const Parameters& p) {
    static_assert(sizeof(States) <= STATE_BYTES);
    char* const page = team.page(p, STATE_BYTES);
    if (threadIdx.x == 0) *(States*)(page + team.rank * STATE_BYTES) = mine;
    team.meet(p);
    mine = fresh;
    for (int other = threadIdx.x; other < team.blocks; other += THREADS) {
        merge(stage, mine, load_uncached<States>(page + other * STATE_BYTES));
    }
    combine_block(stage, mine);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel();
    extern __shared__ uint4 memory[];
    char* const room = reinterpret_cast<char*>(memory) + threadIdx.x * UNIT_BYTES;
    Meeting team(p);
    const Index begin = team.rank * (Index)p.slice_units, first = begin + threadIdx.x;
    const Index end = begin + (Index)p.slice_units < (Index)p.units ? begin + (Index)p.slice_units : (Index)p.units;
    const Index count = first < end ? (end - first + THREADS - 1) / THREADS : 0;
    for (Index item = team.team; item < (Index)p.items; item += team.teams) {
        const Offsets at = at_group(p, item);
        auto unit_at = [&](Index i) { return in_group<VECTOR>(p, at, first + i * THREADS); };
        auto load_unit = [&](Held<VECTOR>& held, Index i) {
            if constexpr (HELD) take_held<VECTOR>(held, room + i * (THREADS * UNIT_BYTES));
            else load_held<VECTOR>(held, p, unit_at(i));
        };
        if constexpr (HELD) {
            for (Index i = 0; i < count; i++) copy_held(room + i * (THREADS * UNIT_BYTES), p, unit_at(i));
            commit_copies();
            wait_for_copies<0>();
        }
        Held<1> origin;
        load_held<1>(origin, p, in_group<1>(p, at, 0));
        Found found;
        each<STAGES>([&](auto stage) {
            constexpr bool BACKWARDS = decltype(stage)::value % 2;
            auto mine = nothing(stage);
            start<1>(stage, mine, p, origin, at, found, 0);
            const auto fresh = mine;
#pragma unroll BATCH
            for (Index i = 0; i < count; i++) {
                Held<VECTOR> held;
                load_unit(held, BACKWARDS ? count - 1 - i : i);
#pragma unroll
                for (int lane = 0; lane < VECTOR; lane++) take_in<VECTOR>(stage, mine, p, held, at, found, lane);
            }
            combine_block(stage, mine);
            if constexpr (TEAM) exchange(stage, mine, fresh, team, p);
            conclude(stage, found, mine, p);
        });
        if (team.rank == 0 && threadIdx.x == 0) store_groups(p, at, found);
        if constexpr (HAS_ELEMENTS) {
            constexpr bool BACKWARDS = STAGES % 2;
            Kept kept;
            finish(kept, p, at, found);
#pragma unroll BATCH
            for (Index i = 0; i < count; i++) {
                const Index number = BACKWARDS ? count - 1 - i : i;
                Held<VECTOR> held;
                Late<VECTOR> late;
                Outputs<VECTOR> result;
                const Offsets here = unit_at(number);
                load_unit(held, number);
                load_late<VECTOR>(late, p, here);
#pragma unroll
                for (int lane = 0; lane < VECTOR; lane++) evaluate<VECTOR>(result, p, held, late, kept, lane);
                store_outputs<VECTOR>(p, here, result);
            }
        }
    }
    if constexpr (TEAM) team.end(p);
}

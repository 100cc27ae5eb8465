// Reductions of any kind, in one pass over the elements of each group or in several.
//
// SPAN threads of a block reduce a group: neighbouring lanes of a warp, or all threads of the block. If groups lie side by side
// (COLUMNS), TX threads beside each other have groups of their own, one for each lane of a unit. With TEAM, several blocks have a
// slice of each group.
//
// A thread has every SPAN-th unit of its group. It keeps REGISTER_UNITS of them in registers, or else SHARED_UNITS of them in shared memory, and reads
// the others from memory in each pass (REREADS), every second time backwards, since the cache holds what was read last.

constexpr int TX = COLUMNS ? THREADS / SPAN : 1;
constexpr int LANES = COLUMNS ? VECTOR : 1;                                         // groups of a thread
constexpr int NEAR = COLUMNS ? (TX < 32 ? 32 / TX : 1) : (SPAN < 32 ? SPAN : 32);   // threads of a warp that share a group
constexpr int TOGETHER = THREADS / SPAN;                                            // threads of a block that begin a group
constexpr int PARTS = SPAN / NEAR;                                                  // warps, or rows of threads, of a group
constexpr bool OWNS = TX * LANES <= THREADS && (PARTS > 16 || (PARTS > 1 && LANES > 1));  // a thread finishes each group for all
constexpr bool ENDS = STAGES == 1 && !HAS_ELEMENTS;                                 // nothing follows the only pass

// Units that a thread loads before it takes the first of them in. A block of 1,024 threads has 64 registers for each.
constexpr int BATCH = VECTOR == 1 ? (THREADS * UNIT_BYTES > 8192 ? 4 : 8) : VECTOR < 16 ? 16 / VECTOR : 1;
// Units whose inputs of results are loaded together: the compiler moves no load before the stores of another unit. Normalizations with a
// scale for each row of (8, 1280, 27, 27) take 0.8 of the time with 4, and 0.95 of that with 8 if they keep units in shared memory (H100).
constexpr int AHEAD = VECTOR == 1 ? (COLUMNS && SHARED_UNITS > 0 && UNIT_BYTES <= 4 ? BATCH : 4) : VECTOR < 16 ? 2 : 1;
static_assert(BATCH % AHEAD == 0);
// Units that a thread loads before it stores them to shared memory, if they cannot be copied: 8 took 1.02 of the time, 32 took 1.1 (H100).
constexpr int KEPT_TOGETHER = 16;

static_assert(SPAN == THREADS || (COLUMNS && NEAR == 1) || (SPAN & (SPAN - 1)) == 0);

template <typename States, typename Move>
DEVICE States moved(const States& mine, Move move) {
    unsigned long long words[sizeof(States) / 8];
    memcpy(words, &mine, sizeof(States));
#pragma unroll
    for (int i = 0; i < States::MERGED_BYTES / 8; i++) words[i] = move(words[i]);
    States theirs;
    memcpy(&theirs, words, sizeof(States));
    return theirs;
}

// Merges the states of the threads of each group, always in the same order: within warps by shuffles, then those of warps through
// shared memory, which each stage has for itself. Afterwards `mine` holds the states of the thread's groups or, if a thread OWNS a
// group, the state of that one.
template <typename Stage, typename States>
DEVICE void combine(Stage stage, States (&mine)[LANES]) {
    constexpr int WIDTH = NEAR * TX < 32 ? NEAR * TX : 32;
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) {
#pragma unroll
        for (int distance = NEAR / 2; distance > 0; distance /= 2) {
            const States theirs = moved(mine[lane], [&](unsigned long long word) {
                return __shfl_down_sync(~0u, word, distance * TX, WIDTH);
            });
            merge(stage, mine[lane], theirs);
        }
        if constexpr (PARTS == 1 && NEAR > 1) {
            mine[lane] = moved(mine[lane], [](unsigned long long word) {
                return __shfl_sync(~0u, word, threadIdx.x % TX, WIDTH);
            });
        }
    }
    if constexpr (PARTS > 1) {
        __shared__ States parts[PARTS][TX * LANES];
        if constexpr (TEAM) __syncthreads();  // all threads have read what it held before
        if (threadIdx.x % (NEAR * TX) < TX) {
#pragma unroll
            for (int lane = 0; lane < LANES; lane++) {
                parts[threadIdx.x / (NEAR * TX)][threadIdx.x % TX * LANES + lane] = mine[lane];
            }
        }
        __syncthreads();
        if (OWNS && threadIdx.x >= TX * LANES) return;
#pragma unroll
        for (int lane = 0; lane < (OWNS ? 1 : LANES); lane++) {
            const int group = OWNS ? threadIdx.x : threadIdx.x % TX * LANES + lane;
            mine[lane] = parts[0][group];
#pragma unroll
            for (int part = 1; part < PARTS; part++) merge(stage, mine[lane], parts[part][group]);
        }
    }
}

// Merges the states of the blocks of a team. `mine` becomes the state of the group, from `fresh`, which holds no element. If nothing
// follows, blocks need not wait: the last to arrive merges, and the result is false in all others.
template <typename Stage, typename States>
DEVICE bool exchange(
    Stage stage, States (&mine)[LANES], const States (&fresh)[LANES], Meeting& team, const Parameters& p, int member, int place) {
    static_assert(sizeof(States) <= STATE_BYTES);
    constexpr int bytes = TOGETHER * LANES * STATE_BYTES;
    char* const page = team.page(p, bytes);
    if (OWNS ? threadIdx.x < TX * LANES : member == 0) {
        char* const own = page + team.rank * bytes + (OWNS ? (int)threadIdx.x : place * LANES) * STATE_BYTES;
#pragma unroll
        for (int lane = 0; lane < (OWNS ? 1 : LANES); lane++) *(States*)(own + lane * STATE_BYTES) = mine[lane];
    }
    if constexpr (ENDS) {
        if (!team.arrives_last(p)) return false;
    } else {
        team.meet(p);
    }
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) mine[lane] = fresh[lane];
    // States that are loaded together, as far as registers allow: each load takes 0.4 us, and few threads merge many blocks (H100).
    constexpr int MOST = 128 / (LANES * (int)sizeof(States)), LOADED = REGISTER_UNITS > 0 || MOST < 1 ? 1 : MOST < 4 ? MOST : 4;
    for (int other = member; other < team.blocks; other += LOADED * SPAN) {
        States theirs[LOADED][LANES];
#pragma unroll
        for (int i = 0; i < LOADED * LANES; i++) {
            const int block = other + i / LANES * SPAN;
            const char* const from = page + (block < team.blocks ? block : other) * bytes + (place * LANES + i % LANES) * STATE_BYTES;
            theirs[i / LANES][i % LANES] = load_uncached<States>(from);
        }
#pragma unroll
        for (int i = 0; i < LOADED * LANES; i++) {
            if (other + i / LANES * SPAN < team.blocks) merge(stage, mine[i % LANES], theirs[i / LANES][i % LANES]);
        }
    }
    combine(stage, mine);
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 memory[];
    char* const own_units = reinterpret_cast<char*>(memory) + threadIdx.x * UNIT_BYTES;
    const int member = COLUMNS ? threadIdx.x / TX : threadIdx.x % SPAN;
    const int place = COLUMNS ? threadIdx.x % TX : threadIdx.x / SPAN;
    __shared__ Found found_of[OWNS ? TX * LANES : 1];
    Meeting team(p, TEAM ? (int)p.team : 1);
    for (Index tile = team.team; !TEAM || ENDS || tile * TOGETHER < (Index)p.items; tile += team.teams) {
        const Index item = tile * TOGETHER + place, begin = TEAM ? team.rank * (Index)p.slice_units : 0;
        const bool there = item < (Index)p.items;
        const Index units = there ? (Index)p.units : 0;
        const Index end = TEAM && begin + (Index)p.slice_units < units ? begin + (Index)p.slice_units : units;
        const Index first = begin + member, count = first < end ? (Index)((end - first + SPAN - 1) / SPAN) : 0;
        const Index in_shared = count < SHARED_UNITS ? count : SHARED_UNITS;
        const Offsets at = at_item(p, there ? item : 0);
        auto unit_at = [&](Index i) { return in_group<VECTOR>(p, at, first + i * SPAN); };
        auto group_at = [&](int lane) { return COLUMNS ? in_row<1>(p, at, (Index)lane) : at; };
        CollectiveInputs<VECTOR> collective[REGISTER_UNITS > 0 ? REGISTER_UNITS : BATCH];
        // Calls `visit` with each unit of the thread, its number, and its number among AHEAD units. Calls `begin` before, with these numbers.
        auto each_unit = [&](auto backwards, auto begin, auto visit) {
            // Visits up to AHEAD units, of which `has` tells which are there.
            auto visit_together = [&](CollectiveInputs<VECTOR>* units, auto number, auto has) {
#pragma unroll
                for (int k = 0; k < AHEAD; k++) {
                    if (has(k)) begin(number(k), k);
                }
#pragma unroll
                for (int k = 0; k < AHEAD; k++) {
                    if (has(k)) visit(units[k], number(k), k);
                }
            };
            if constexpr (REGISTER_UNITS > 0) {
#pragma unroll
                for (int from = 0; from < REGISTER_UNITS; from += AHEAD) {
                    auto has = [&](int k) { return from + k < REGISTER_UNITS && from + k < count; };
                    visit_together(collective + from, [&](int k) { return (Index)(from + k); }, has);
                }
                return;
            }
            if constexpr (REREADS) {
                auto number = [&](Index i) { return decltype(backwards)::value ? in_shared + count - 1 - i : i; };
                auto visit_batch = [&](Index from, auto whole) {
#pragma unroll
                    for (int k = 0; k < BATCH; k++) {
                        if (whole || from + k < count) load_collective_inputs<VECTOR>(collective[k], p, unit_at(number(from + k)));
                    }
#pragma unroll
                    for (int part = 0; part < BATCH; part += AHEAD) {
                        auto has = [&](int k) { return whole || from + part + k < count; };
                        visit_together(collective + part, [&](int k) { return number(from + part + k); }, has);
                    }
                };
                Index i = in_shared;
#pragma unroll 1
                for (; i + BATCH <= count; i += BATCH) visit_batch(i, Number<1>());
                if (i < count) visit_batch(i, Number<0>());
            }
            if constexpr (SHARED_UNITS > 0) {
                if constexpr (COPIES) wait_for_copies<0>();
                auto visit_kept = [&](Index from, auto whole) {
#pragma unroll
                    for (int k = 0; k < AHEAD; k++) {
                        if (whole || from + k < in_shared) take_collective_inputs<VECTOR>(collective[k], own_units + (from + k) * (THREADS * UNIT_BYTES));
                    }
                    visit_together(collective, [&](int k) { return from + k; }, [&](int k) { return whole || from + k < in_shared; });
                };
                Index i = 0;
#pragma unroll 1
                for (; i + AHEAD <= in_shared; i += AHEAD) visit_kept(i, Number<1>());
                if (AHEAD > 1 && i < in_shared) visit_kept(i, Number<0>());
            }
        };
        if constexpr (REGISTER_UNITS > 0) {
#pragma unroll
            for (int k = 0; k < REGISTER_UNITS; k++) {
                if (k < count) load_collective_inputs<VECTOR>(collective[k], p, unit_at(k));
            }
        }
        if constexpr (SHARED_UNITS > 0 && !COPIES) {
            CollectiveInputs<VECTOR> loaded[KEPT_TOGETHER];
            auto keep = [&](Index from, auto whole) {
#pragma unroll
                for (int k = 0; k < KEPT_TOGETHER; k++) {
                    if (whole || from + k < in_shared) load_collective_inputs<VECTOR>(loaded[k], p, unit_at(from + k));
                }
#pragma unroll
                for (int k = 0; k < KEPT_TOGETHER; k++) {
                    if (whole || from + k < in_shared) keep_collective_inputs<VECTOR>(own_units + (from + k) * (THREADS * UNIT_BYTES), loaded[k]);
                }
            };
            Index i = 0;
#pragma unroll 1
            for (; i + KEPT_TOGETHER <= in_shared; i += KEPT_TOGETHER) keep(i, Number<1>());
            if (i < in_shared) keep(i, Number<0>());
        }
        if constexpr (SHARED_UNITS > 0 && COPIES) {
            for (Index i = 0; i < in_shared; i++) copy_collective_inputs(own_units + i * (THREADS * UNIT_BYTES), p, unit_at(i));
            commit_copies();
        }
        CollectiveInputs<LANES> origin;
        load_collective_inputs<LANES>(origin, p, in_group<LANES>(p, at, 0));
        Found found[LANES];
        bool goes_on = true;
        each<STAGES>([&](auto stage) {
            decltype(nothing(stage)) mine[LANES], fresh[LANES];
#pragma unroll
            for (int lane = 0; lane < LANES; lane++) {
                start<LANES>(stage, mine[lane], p, origin, group_at(lane), found[lane], lane);
                fresh[lane] = mine[lane];
            }
            each_unit(Number<decltype(stage)::value % 2>(), [](Index, int) {}, [&](const CollectiveInputs<VECTOR>& unit, Index i, int) {
#pragma unroll
                for (int lane = 0; lane < VECTOR; lane++) {
                    const int group = lane % LANES;
                    take_in<VECTOR>(stage, mine[group], p, unit, INLINE ? unit_at(i) : group_at(group), found[group], lane);
                }
            });
            combine(stage, mine);
            if constexpr (TEAM) goes_on = exchange(stage, mine, fresh, team, p, member, place);
            if (!goes_on) return;
            if constexpr (!OWNS) {
#pragma unroll
                for (int lane = 0; lane < LANES; lane++) conclude(stage, found[lane], mine[lane], p);
            } else {
                if (threadIdx.x < TX * LANES) conclude(stage, found_of[threadIdx.x], mine[0], p);
                __syncthreads();
#pragma unroll
                for (int lane = 0; lane < LANES; lane++) found[lane] = found_of[place * LANES + lane];
            }
        });
        if (!goes_on) return;
        if (there && member == 0 && (ENDS || team.rank == 0)) {
#pragma unroll
            for (int lane = 0; lane < LANES; lane++) store_groups(p, group_at(lane), found[lane]);
        }
        if constexpr (HAS_ELEMENTS) {
            Kept kept[LANES];
            if constexpr (!OWNS) {
#pragma unroll
                for (int lane = 0; lane < LANES; lane++) finish(kept[lane], p, group_at(lane), found[lane]);
            } else {
                __shared__ Kept kept_of[TX * LANES];
                const Index own = tile * TOGETHER + threadIdx.x / LANES;
                if (threadIdx.x < TX * LANES) {
                    const Offsets begin_of = in_row<1>(p, at_item(p, own < (Index)p.items ? own : 0), threadIdx.x % LANES);
                    finish(kept_of[threadIdx.x], p, begin_of, found_of[threadIdx.x]);
                }
                __syncthreads();
#pragma unroll
                for (int lane = 0; lane < LANES; lane++) kept[lane] = kept_of[place * LANES + lane];
            }
            ResultInputs<VECTOR> result_inputs[AHEAD];
            auto load_ahead = [&](Index i, int k) { load_result_inputs<VECTOR>(result_inputs[k], p, unit_at(i)); };
            each_unit(Number<STAGES % 2>(), load_ahead, [&](const CollectiveInputs<VECTOR>& unit, Index i, int k) {
                const Offsets here = unit_at(i);
                Outputs<VECTOR> result;
#pragma unroll
                for (int lane = 0; lane < VECTOR; lane++) {
                    evaluate<VECTOR>(result, p, unit, result_inputs[k], kept[lane % LANES], here, lane);
                }
                store_outputs<VECTOR>(p, here, result);
            });
        }
        if (!TEAM || ENDS) return;
    }
    if constexpr (TEAM) team.end(p);
}

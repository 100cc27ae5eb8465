// A block over one tile: WIDTH groups side by side (one, where the innermost dimension is reduced), TX threads wide, TY deep.
//
// A thread adds up each of its LANES columns. A column is a group, or (FOLDED) one of its MEMBERS: those of a group follow each
// other where groups are ABREAST, RUN of them; where units run over the ends of rows (FLAT), they are RUN apart.
//
// Where a block holds all rows of a group side by side, each has ROW_THREADS threads, whose units are those of that row, FULL of
// them or one more: so they need not find out in which row each is, nor whether it is there.

constexpr int FLAT = 1, ABREAST = 2;  // as in pattern.py
constexpr bool FOLDED = FORM != 0;
constexpr int LANES = COLUMNS ? VECTOR : 1, TY = ROW_THREADS > 0 ? ROW_THREADS : THREADS / TX, WARPS = THREADS / 32;
constexpr int ALL_COLUMNS = TX * LANES;
constexpr int WIDTH = FORM == FLAT ? RUN : ALL_COLUMNS / RUN, MEMBERS = ALL_COLUMNS / WIDTH;
constexpr int PARTS = FORM == FLAT ? MEMBERS : FORM == ABREAST || TX <= 32 ? WARPS : TY;  // that make the sum of a group
constexpr int SPAN = COLUMNS && FORM != ABREAST ? 1 : 32;                                 // threads that add them up

// Lanes of a warp that are this far apart share a column, or all of a tile's groups.
constexpr int NEAR = FORM == ABREAST ? 1 : TX <= 32 ? TX : 32;

struct Shared {
    double partial[REDUCED][PARTS * WIDTH][2];
    double shift[REDUCED][WIDTH];
    Kept kept[WIDTH];
    Row rows[ROWS + 1];
};

struct Tile {
    Offsets group, column;  // the first element of the group (of its row of groups), and of the thread's own column or row
    int tx, ty;
    Index first;    // number of the tile's first group, where groups are ABREAST
    bool there;     // the thread has a column or a row
    bool finishes;  // the thread computes what belongs to a group, `finished_group`
    bool finished;  // and has done so
    Given given;    // of that group
};

// Threads that take part in adding up what the parts of the block, and the blocks, have found.
DEVICE bool takes_sums() { return threadIdx.x < WIDTH * SPAN; }

DEVICE int finished_group() { return COLUMNS ? threadIdx.x / SPAN : 0; }

// The group in the tile to which a lane of a thread's units belongs.
DEVICE int group_of(const Tile& tile, int lane) {
    if constexpr (!COLUMNS) return 0;
    const int column = tile.tx * LANES + lane;
    return FORM == FLAT ? column % WIDTH : column / RUN;
}

// Where the sums of a part of a group lie. Neighbouring threads write those of columns that are LANES apart.
DEVICE int partial_of(int part, int group) {
    if constexpr (FORM != FLAT) return part * WIDTH + group;
    const int column = part * RUN + group;
    return column % LANES * TX + column / LANES;
}

DEVICE Tile tile_of(const Parameters& p, Index item) {
    Tile tile;
    tile.tx = threadIdx.x % TX;
    tile.ty = threadIdx.x / TX;
    tile.there = !FOLDED || tile.ty < TY;
    tile.finishes = takes_sums();
    Index group = item, first = 0;
    if constexpr (COLUMNS) {
        group = divide(item, p.column_tiles);
        first = (item - group * (Index)p.column_tiles.count) * TX;
        tile.there = tile.there && first + tile.tx < (Index)p.columns;
    }
    tile.finished = false;
    if constexpr (FORM == ABREAST) {
        const Index abreast = (Index)p.columns * VECTOR / RUN, own = first * VECTOR / RUN + finished_group();
        group *= abreast;
        tile.first = group + first * VECTOR / RUN;
        tile.column = in_row<VECTOR>(p, at_group(p, group), tile.there ? first + tile.tx : 0);
        tile.finishes = tile.finishes && own < abreast;
        tile.group = at_group(p, group + (tile.finishes ? own : 0));
    } else if constexpr (COLUMNS) {
        const Index own = first * VECTOR + finished_group();
        tile.group = tile.column = at_group(p, group);
        if constexpr (!FOLDED) {
            tile.column = in_row<VECTOR>(p, tile.group, tile.there ? first + tile.tx : 0);
            tile.finishes = tile.finishes && own < (Index)p.columns * VECTOR;
        }
        tile.group = in_row<1>(p, tile.group, tile.finishes ? own : 0);
    } else {
        tile.group = tile.column = at_group(p, group);
        if constexpr (ROW_THREADS > 0) {
            const Index row = tile.ty / TY;
            tile.there = row < (Index)p.rows;
            tile.column = at_row(p, tile.group, tile.there ? row : 0);
            tile.ty %= TY;
        }
    }
    return tile;
}

// How many units a thread's columns or row have.
DEVICE Index all_units(const Parameters& p) { return ROW_THREADS > 0 ? (Index)p.row_length.count : (Index)p.units; }

// A unit of the thread's columns or row.
DEVICE Offsets unit_at(const Parameters& p, const Tile& tile, Index unit) {
    if constexpr (ROW_THREADS > 0) return in_row<VECTOR>(p, tile.column, unit);
    return in_group<VECTOR>(p, tile.column, FOLDED && FORM == FLAT ? unit * TX + tile.tx : unit);
}

// What lies in the first element of each group, as threads need it to begin.
constexpr int ORIGIN = FOLDED ? 1 : VECTOR;
typedef Held<ORIGIN> Origin;

DEVICE void load_origin(Origin& origin, const Parameters& p, const Tile& tile) {
    if (!FOLDED) load_held<ORIGIN>(origin, p, in_group<ORIGIN>(p, COLUMNS ? tile.column : tile.group, 0));
    else if (tile.finishes) load_held<ORIGIN>(origin, p, tile.group);
}

// Makes what was derived from the thread's place be derived again, rather than kept in registers from phase to phase.
DEVICE void forget_place(Tile& tile) {
    forget(tile.tx);
    forget(tile.ty);
}

// Whether the thread has the unit that is the k-th of its own from `first` on, where the units end at `end`.
DEVICE bool is_inside(const Tile& tile, Index first, Index end, int k) {
    return tile.there && ((ROW_THREADS > 0 && k < FULL) || first + k * TY + tile.ty < end);
}

DEVICE void load_units(Held<VECTOR> (&held)[KEEP], const Parameters& p, const Tile& tile, Index first, Index end) {
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (is_inside(tile, first, end, k)) load_held<VECTOR>(held[k], p, unit_at(p, tile, first + k * TY + tile.ty));
    }
}

// What the reduced values need of the group, per column of the thread.
DEVICE void load_columns(Given (&given)[LANES], const Parameters& p, const Tile& tile) {
    if constexpr (REDUCED_NEEDS_GIVEN) {
        if (FOLDED && !tile.there) return;
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) {
            const int group = group_of(tile, lane);
            if constexpr (FORM == ABREAST) load_given(given[lane], p, at_group(p, tile.first + group));
            else load_given(given[lane], p, in_row<1>(p, tile.column, FOLDED ? group : lane));
        }
    }
}

// The first shift of a column's group, from its first unit (if FOLDED, element): the same for all threads of all blocks.
template <typename J, int V>
DEVICE Quick shift_of(J j, int lane, const Parameters& p, const Held<V>& origin, const Given& given) {
    return shift_from<COLUMNS ? 1 : V>([&](int i) { return reduced<V>(j, p, origin, given, COLUMNS ? lane : i); });
}

// Leaves the shifts of all groups to all threads, where a column does not begin with its group's first element.
DEVICE void share_shifts(Shared& shared, const Parameters& p, const Tile& tile, const Origin& origin) {
    if (tile.finishes) {
        each<REDUCED>([&](auto j) { shared.shift[j][finished_group()] = shift_of(j, 0, p, origin, tile.given); });
    }
    __syncthreads();
}

// Adds each of COUNT values over the lanes of a warp that share columns, those up to DISTANCE apart, and calls `take` with its
// number and sum, in one lane or more. Half of the values change hands at every step, so that few do.
template <int DISTANCE, int COUNT, typename T, typename Take>
DEVICE void add_over_lanes(const T (&values)[COUNT], int first, Take take) {
    if constexpr (DISTANCE < NEAR) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) take(first + i, values[i]);
    } else if constexpr (COUNT == 1) {
        const T sums[1] = {values[0] + __shfl_xor_sync(~0u, values[0], DISTANCE)};
        add_over_lanes<DISTANCE / 2>(sums, first, take);
    } else {
        constexpr int HALF = COUNT / 2;
        const bool upper = threadIdx.x & DISTANCE;
        T sums[HALF];
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            const T given = upper ? values[i] : values[HALF + i], kept = upper ? values[HALF + i] : values[i];
            sums[i] = kept + __shfl_xor_sync(~0u, given, DISTANCE);
        }
        add_over_lanes<DISTANCE / 2>(sums, first + (upper ? HALF : 0), take);
    }
}

// What a thread's units are added up in: FLOAT64, where they are many.
template <typename T, bool WIDE = LONG>
struct Total {
    typedef T Type;
};

template <typename T>
struct Total<T, true> {
    typedef double Type;
};

// Leaves the sums of a thread's columns to `sum_of_parts`, where the columns of a group follow each other.
template <typename T>
DEVICE void share_abreast(Shared& shared, const Tile& tile, const T (&sums)[REDUCED][2 * LANES]) {
    each<REDUCED>([&](auto j) {
        T of_groups[2 * WIDTH] = {};
#pragma unroll
        for (int group = 0; group < WIDTH; group++) {
#pragma unroll
            for (int lane = 0; lane < LANES; lane++) {
                const bool own = group_of(tile, lane) == group;
                of_groups[group] += own ? sums[j][lane] : T(0);
                of_groups[WIDTH + group] += own ? sums[j][LANES + lane] : T(0);
            }
        }
        add_over_lanes<16>(of_groups, 0, [&](int number, T sum) {
            shared.partial[j][partial_of(threadIdx.x / 32, number % WIDTH)][number / WIDTH] = sum;
        });
    });
}

// The same where they are RUN apart: one row of threads after the other.
template <typename T>
DEVICE void share_flat(Shared& shared, const Tile& tile, const T (&sums)[REDUCED][2 * LANES]) {
    for (int row = 0; row < TY; row++) {
        if (row > 0) __syncthreads();
        if (tile.ty != row) continue;
        each<REDUCED>([&](auto j) {
#pragma unroll
            for (int lane = 0; lane < LANES; lane++) {
                double(&to)[2] = shared.partial[j][lane * TX + tile.tx];
                to[0] = row > 0 ? to[0] + sums[j][lane] : sums[j][lane];
                to[1] = row > 0 ? to[1] + sums[j][LANES + lane] : sums[j][LANES + lane];
            }
        });
    }
}

// Sums up the thread's units, in each of its columns, to where `sum_of_parts` finds the sums after the next barrier. `visit`
// calls its first argument with some units at a time, and with what tells which of them are inside; its second one tells whether
// this is the attempt in FLOAT64.
template <typename T, typename Visit>
DEVICE void share_visited(
    Shared& shared, const Parameters& p, const Tile& tile, const Given (&given)[LANES], const Origin& origin, int attempt,
    Visit visit) {
    if (FOLDED && attempt == FIRST_ATTEMPT) share_shifts(shared, p, tile, origin);
    typedef typename Total<T>::Type S;
    S sums[REDUCED][2 * LANES] = {};  // the sums of all columns, then those of the squares
    T shift[REDUCED][LANES];
    each<REDUCED>([&](auto j) {
        each<LANES>([&](auto lane) {
            double& common = shared.shift[j][group_of(tile, lane)];
            if (!FOLDED && attempt == FIRST_ATTEMPT) {
                shift[j][lane] = T(shift_of(j, lane, p, origin, given[lane]));
                if (threadIdx.x < TX) common = shift[j][lane];
            } else {
                shift[j][lane] = T(common);
            }
        });
    });
    visit([&](const auto& held, auto inside) {
        constexpr int units = sizeof(held) / sizeof(held[0]);
        each<REDUCED>([&](auto j) {
            each<LANES>([&](auto lane) {
                constexpr int from = COLUMNS ? decltype(lane)::value : 0, to = COLUMNS ? decltype(lane)::value + 1 : VECTOR;
                T sum = sums[j][lane], squares = sums[j][LANES + lane];
                if constexpr (LONG) sum = squares = 0;
                add_units<units, from, to>(sum, squares, inside, shift[j][lane], [&](int k, int at) {
                    return reduced<VECTOR>(j, p, held[k], given[COLUMNS ? at : 0], at);
                });
                sums[j][lane] = LONG ? sums[j][lane] + sum : S(sum);
                sums[j][LANES + lane] = LONG ? sums[j][LANES + lane] + squares : S(squares);
            });
        });
    }, Number<sizeof(T) == 8>());
    if constexpr (FORM == ABREAST) return share_abreast(shared, tile, sums);
    if constexpr (FORM == FLAT) return share_flat(shared, tile, sums);
    const int part = TX <= 32 ? threadIdx.x / 32 : tile.ty;
    each<REDUCED>([&](auto j) {
        add_over_lanes<16>(sums[j], 0, [&](int number, S sum) {
            shared.partial[j][partial_of(part, tile.tx * LANES + number % LANES)][number / LANES] = sum;
        });
    });
}

// The same in the type of the attempt: about the first shift, later about what the last attempt left.
template <typename Visit>
DEVICE void share_units(
    Shared& shared, const Parameters& p, const Tile& tile, const Given (&given)[LANES], const Origin& origin, int attempt,
    Visit visit) {
    if (attempt < EXACT) share_visited<Quick>(shared, p, tile, given, origin, attempt, visit);
    else share_visited<double>(shared, p, tile, given, origin, attempt, visit);
}

constexpr int lanes_for(int count) { return count <= 1 ? 1 : 2 * lanes_for((count + 1) / 2); }

// The sum of COUNT moments, or of `count` where that is known only now (COUNT is 32), for a thread that takes sums.
template <int COUNT, typename Read>
DEVICE Moments sum_of(int count, Read read) {
    Moments moments = {0, 0};
    if constexpr (SPAN == 1) {
        constexpr int FEW = COUNT < 8 ? COUNT : 8;  // that are under way at a time
        for (int from = 0; from < count; from += FEW) {
            Moments few[FEW];
#pragma unroll
            for (int i = 0; i < FEW; i++) few[i] = from + i < count ? Moments{read(from + i, 0), read(from + i, 1)} : Moments{0, 0};
#pragma unroll
            for (int i = 0; i < FEW; i++) add(moments, few[i].sum, few[i].squares);
        }
    } else {
        constexpr int lanes = lanes_for(COUNT < 32 ? COUNT : 32);
        for (int i = threadIdx.x % lanes; i < count; i += lanes) add(moments, read(i, 0), read(i, 1));
        moments = {add_lanes<1, lanes>(moments.sum), add_lanes<1, lanes>(moments.squares)};
    }
    return moments;
}

DEVICE Moments sum_of_parts(const Shared& shared, int j) {
    return sum_of<PARTS>(PARTS, [&](int i, int which) { return shared.partial[j][partial_of(i, finished_group())][which]; });
}

// Computes what belongs to a group, for the threads that take sums. Returns whether the sums must be taken again, about a better
// shift. Needs a barrier before `share_units` and `store_units`.
DEVICE bool finish_tile(
    Shared& shared, const Parameters& p, Tile& tile, const Moments (&sums)[REDUCED], int attempt, bool stores) {
    if (!tile.finishes || tile.finished) return false;
    bool again = false;
    Statistics found[REDUCED];
#pragma unroll
    for (int j = 0; j < REDUCED; j++) {
        double& shift = shared.shift[j][finished_group()];
        found[j] = statistics(sums[j], shift, p.share);
        again = again || (attempt < EXACT && !trusted(sums[j], p.share));
    }
    if (again) {
        if constexpr (SPAN > 1) __syncwarp();  // all lanes have read the shift
#pragma unroll
        for (int j = 0; j < REDUCED; j++) {
            shared.shift[j][finished_group()] = finite_or_zero(double(Quick(found[j].mean)));
        }
        return true;
    }
    Kept kept;
    finish(kept, p, tile.given, found);
    shared.kept[finished_group()] = kept;
    tile.finished = true;
    if (stores && threadIdx.x % SPAN == 0) store_groups(p, tile.group, kept);
    return false;
}

// Ends an attempt for all threads: adds up what they, and the blocks that share the tile, have found, and computes what belongs to
// the groups. Returns whether another attempt is needed.
template <typename Exchange>
DEVICE bool end_attempt(Shared& shared, const Parameters& p, Tile& tile, Exchange& exchange, int attempt) {
    __syncthreads();
    Moments sums[REDUCED];
    if (takes_sums()) each<REDUCED>([&](auto j) { sums[j] = sum_of_parts(shared, j); });
    exchange.add(sums, p);
    const bool again = takes_sums() && finish_tile(shared, p, tile, sums, attempt, exchange.rank == 0);
    return __syncthreads_or(again);
}

// What the results of the thread's columns need of their groups.
DEVICE void load_kept(Kept (&kept)[LANES], const Shared& shared, const Tile& tile) {
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) kept[lane] = shared.kept[group_of(tile, lane)];
}

// Stores the results of units, a few at a time, so that the loads for several are under way.
template <int UNITS>
DEVICE void store_units(
    const Shared& shared, const Kept (&kept)[LANES], const Parameters& p, const Tile& tile, Index first, Index end,
    const Held<VECTOR> (&held)[UNITS], Index first_row = 0) {
    constexpr int FEW = sizeof(Late<VECTOR>) <= 16 && sizeof(Row) < 4 ? 4 : 2;
#pragma unroll
    for (int from = 0; from < UNITS; from += FEW) {
        Offsets at[FEW];
        Late<VECTOR> late[FEW];
#pragma unroll
        for (int k = from; k < from + FEW && k < UNITS; k++) {
            if (!is_inside(tile, first, end, k)) continue;
            at[k - from] = unit_at(p, tile, first + k * TY + tile.ty);
            load_late<VECTOR>(late[k - from], p, at[k - from], shared.rows, first_row);
        }
#pragma unroll
        for (int k = from; k < from + FEW && k < UNITS; k++) {
            if (!is_inside(tile, first, end, k)) continue;
            Outputs<VECTOR> result;
#pragma unroll
            for (int lane = 0; lane < VECTOR; lane++) {
                evaluate<VECTOR>(result, p, held[k], late[k - from], kept[COLUMNS ? lane : 0], lane);
            }
            store_outputs<VECTOR>(p, at[k - from], result);
        }
    }
}

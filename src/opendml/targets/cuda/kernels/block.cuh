// A block over one tile: WIDTH groups side by side (one, where the innermost dimension is reduced), TX threads wide, TY deep.

constexpr int LANES = COLUMNS ? VECTOR : 1, TY = THREADS / TX, WARPS = THREADS / 32, WIDTH = TX * LANES;
constexpr int PARTS = TX <= 32 ? WARPS : TY;

constexpr int NEAR = TX <= 32 ? TX : 32;  // lanes of a warp that are this far apart share a column

struct Shared {
    double partial[REDUCED][PARTS][WIDTH][2];
    double shift[REDUCED][WIDTH];
    Kept kept[WIDTH];
};

struct Tile {
    Offsets group, column;  // the first element of the group (of its row of groups), and of the thread's own column
    int tx, ty;
    bool there;     // the thread has a column
    bool finishes;  // the thread computes what belongs to a group: to column threadIdx.x, or, without columns, to the only one
    bool finished;  // and has done so
    Given given;    // of that group
};

// Threads that take part in adding up what the parts of the block, and the blocks, have found.
DEVICE bool takes_sums() { return threadIdx.x < (COLUMNS ? WIDTH : 32); }

DEVICE int finished_column() { return COLUMNS ? (int)threadIdx.x : 0; }

DEVICE Tile tile_of(const Parameters& p, Index item) {
    Tile tile;
    tile.tx = threadIdx.x % TX;
    tile.ty = threadIdx.x / TX;
    Index group = item, first = 0;
    if constexpr (COLUMNS) {
        group = divide(item, p.tiles);
        first = (item - group * (Index)p.tiles.count) * TX;
    }
    tile.group = tile.column = at_group(p, group);
    tile.there = true;
    tile.finishes = takes_sums();
    tile.finished = false;
    if constexpr (COLUMNS) {
        tile.there = first + tile.tx < (Index)p.columns;
        tile.column = in_row<VECTOR>(p, tile.group, tile.there ? first + tile.tx : 0);
        const Index own = first * VECTOR + finished_column();
        tile.finishes = tile.finishes && own < (Index)p.columns * VECTOR;
        tile.group = in_row<1>(p, tile.group, tile.finishes ? own : 0);
    }
    return tile;
}

// Whether the thread has the unit that is the k-th of its own from `first` on, where the units end at `end`.
DEVICE bool is_inside(const Tile& tile, Index first, Index end, int k) { return tile.there && first + k * TY + tile.ty < end; }

DEVICE void load_units(Held<VECTOR> (&held)[KEEP], const Parameters& p, const Tile& tile, Index first, Index end) {
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (is_inside(tile, first, end, k)) load_held<VECTOR>(held[k], p, in_group<VECTOR>(p, tile.column, first + k * TY + tile.ty));
    }
}

// What the reduced values need of the group, per column of the thread.
DEVICE void load_columns(Given (&given)[LANES], const Parameters& p, const Tile& tile) {
    if constexpr (REDUCED_NEEDS_GIVEN) {
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) load_given(given[lane], p, in_row<1>(p, tile.column, lane));
    }
}

// The first shift of a column's group, from its first unit: the same for all threads of all blocks.
template <typename J>
DEVICE Quick shift_of(J j, int lane, const Held<VECTOR>& origin, const Given (&given)[LANES]) {
    return shift_from<COLUMNS ? 1 : VECTOR>([&](int i) {
        return reduced<VECTOR>(j, origin, given[lane], COLUMNS ? lane : i);
    });
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

// Sums up the thread's units, in each of its columns, to where `sum_of_parts` finds the sums after the next barrier; `visit` calls its argument with some units at a time, and with what tells
// which of them are inside.
template <typename T, typename Visit>
DEVICE void share_visited(
    Shared& shared, const Tile& tile, const Given (&given)[LANES], const Held<VECTOR>& origin, int attempt, Visit visit) {
    typedef typename Total<T>::Type S;
    S sums[REDUCED][2 * LANES] = {};  // the sums of all columns, then those of the squares
    T shift[REDUCED][LANES];
    each<REDUCED>([&](auto j) {
        each<LANES>([&](auto lane) {
            double& common = shared.shift[j][tile.tx * LANES + lane];
            if (attempt == FIRST_ATTEMPT) {
                shift[j][lane] = T(shift_of(j, lane, origin, given));
                if (tile.ty == 0) common = shift[j][lane];
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
                    return reduced<VECTOR>(j, held[k], given[COLUMNS ? at : 0], at);
                });
                sums[j][lane] = LONG ? sums[j][lane] + sum : S(sum);
                sums[j][LANES + lane] = LONG ? sums[j][LANES + lane] + squares : S(squares);
            });
        });
    });
    const int part = TX <= 32 ? threadIdx.x / 32 : tile.ty;
    each<REDUCED>([&](auto j) {
        add_over_lanes<16>(sums[j], 0, [&](int number, S sum) {
            shared.partial[j][part][tile.tx * LANES + number % LANES][number / LANES] = sum;
        });
    });
}

// The same in the type of the attempt: about the first shift, later about what the last attempt left.
template <typename Visit>
DEVICE void share_units(
    Shared& shared, const Tile& tile, const Given (&given)[LANES], const Held<VECTOR>& origin, int attempt, Visit visit) {
    if (attempt < EXACT) share_visited<Quick>(shared, tile, given, origin, attempt, visit);
    else share_visited<double>(shared, tile, given, origin, attempt, visit);
}

constexpr int lanes_for(int count) { return count <= 1 ? 1 : 2 * lanes_for((count + 1) / 2); }

// The sum of COUNT moments, or of `count` where that is known only now (COUNT is 32), for a thread that takes sums.
template <int COUNT, typename Read>
DEVICE Moments sum_of(int count, Read read) {
    Moments moments = {0, 0};
    if constexpr (COLUMNS) {
        for (int i = 0; i < count; i++) add(moments, read(i, 0), read(i, 1));
    } else {
        constexpr int lanes = lanes_for(COUNT);
        for (int i = threadIdx.x % lanes; i < count; i += lanes) add(moments, read(i, 0), read(i, 1));
        moments = {add_lanes<1, lanes>(moments.sum), add_lanes<1, lanes>(moments.squares)};
    }
    return moments;
}

DEVICE Moments sum_of_parts(const Shared& shared, int j) {
    return sum_of<PARTS>(PARTS, [&](int i, int which) { return shared.partial[j][i][finished_column()][which]; });
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
        double& shift = shared.shift[j][finished_column()];
        found[j] = statistics(sums[j], shift, p.share);
        again = again || (attempt < EXACT && !trusted(sums[j], p.share));
    }
    if (again) {
        if constexpr (!COLUMNS) __syncwarp();  // all lanes have read the shift
#pragma unroll
        for (int j = 0; j < REDUCED; j++) {
            shared.shift[j][finished_column()] = finite_or_zero(double(Quick(found[j].mean)));
        }
        return true;
    }
    Kept kept;
    finish(kept, tile.given, found);
    shared.kept[finished_column()] = kept;
    tile.finished = true;
    if (stores && (COLUMNS || threadIdx.x == 0)) store_groups(p, tile.group, kept);
    return false;
}

// What the results of the thread's columns need of their groups.
DEVICE void load_kept(Kept (&kept)[LANES], const Shared& shared, const Tile& tile) {
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) kept[lane] = shared.kept[tile.tx * LANES + lane];
}

// Stores the results of units, a few at a time, so that the loads for several are under way.
template <int UNITS>
DEVICE void store_units(
    const Kept (&kept)[LANES], const Parameters& p, const Tile& tile, Index first, Index end, const Held<VECTOR> (&held)[UNITS]) {
    constexpr int FEW = sizeof(Late<VECTOR>) <= 16 ? 4 : 2;
#pragma unroll
    for (int from = 0; from < UNITS; from += FEW) {
        Offsets at[FEW];
        Late<VECTOR> late[FEW];
#pragma unroll
        for (int k = from; k < from + FEW && k < UNITS; k++) {
            if (!is_inside(tile, first, end, k)) continue;
            at[k - from] = in_group<VECTOR>(p, tile.column, first + k * TY + tile.ty);
            load_late<VECTOR>(late[k - from], p, at[k - from]);
        }
#pragma unroll
        for (int k = from; k < from + FEW && k < UNITS; k++) {
            if (!is_inside(tile, first, end, k)) continue;
            Outputs<VECTOR> result;
#pragma unroll
            for (int lane = 0; lane < VECTOR; lane++) {
                evaluate<VECTOR>(result, held[k], late[k - from], kept[COLUMNS ? lane : 0], lane);
            }
            store_outputs<VECTOR>(p, at[k - from], result);
        }
    }
}

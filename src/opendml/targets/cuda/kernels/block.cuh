// A block over one tile: WIDTH groups side by side (one, where the innermost dimension is reduced), TX threads wide, TY deep.

constexpr int LANES = COLUMNS ? VECTOR : 1, TY = THREADS / TX, WARPS = THREADS / 32, WIDTH = TX * LANES;
constexpr int PARTS = TX <= 32 ? WARPS : TY;

struct Shared {
    double partial[REDUCED][PARTS][WIDTH][2];
    double total[REDUCED][WIDTH][2];
    double shift[REDUCED][WIDTH];
    Kept kept[WIDTH];
};

struct Tile {
    Offsets group, column;  // the first element of the group (of its row of groups), and of the thread's own column
    int tx, ty;
    bool there;     // the thread has a column
    bool finishes;  // the thread computes what belongs to a group: to column threadIdx.x, or, without columns, to the only one
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
    if constexpr (COLUMNS) {
        tile.there = first + tile.tx < (Index)p.columns;
        tile.column = in_row<VECTOR>(p, tile.group, tile.there ? first + tile.tx : 0);
        const Index own = first * VECTOR + finished_column();
        tile.finishes = tile.finishes && own < (Index)p.columns * VECTOR;
        tile.group = in_row<1>(p, tile.group, tile.finishes ? own : 0);
    }
    return tile;
}

// Asks for units of a later tile: they are in the L2 cache when their turn comes, and the memory never rests.
DEVICE void prefetch_units(const Parameters& p, Index item, Index first, Index end) {
    if (item >= (Index)p.items) return;
    const Tile tile = tile_of(p, item);
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const Index unit = first + k * TY + tile.ty;
        if (tile.there && unit < end) prefetch_held(p, in_group<VECTOR>(p, tile.column, unit));
    }
}

DEVICE void load_units(
    Held<VECTOR> (&held)[KEEP], bool (&inside)[KEEP], const Parameters& p, const Tile& tile, Index first, Index end) {
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const Index unit = first + k * TY + tile.ty;
        inside[k] = tile.there && unit < end;
        if (inside[k]) load_held<VECTOR>(held[k], p, in_group<VECTOR>(p, tile.column, unit));
    }
}

// What the reduced values need of the group, per column of the thread.
DEVICE void load_columns(Given (&given)[LANES], const Parameters& p, const Tile& tile) {
    if constexpr (REDUCED_NEEDS_GIVEN) {
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) load_given(given[lane], p, in_row<1>(p, tile.column, lane));
    }
}

// The value at the group's first element, to which all threads of all blocks refer.
template <typename J>
DEVICE void find_shifts(
    double (&shift)[LANES], J j, const Held<VECTOR>& first, const Given (&given)[LANES]) {
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) {
        shift[lane] = finite_or_zero(double(reduced<VECTOR>(j, first, given[lane], lane)));
    }
}

template <typename J>
DEVICE void add_units(
    Moments (&moments)[LANES], J j, const Held<VECTOR> (&held)[KEEP], const bool (&inside)[KEEP],
    const Given (&given)[LANES], const double (&shift)[LANES]) {
    auto value = [&](int k, int lane) { return reduced<VECTOR>(j, held[k], given[COLUMNS ? lane : 0], lane); };
    using T = decltype(value(0, 0));
    if constexpr (COLUMNS) {
        each<LANES>([&](auto number) {
            constexpr int lane = decltype(number)::value;
            accumulate<T, lane, lane + 1>(moments[lane], inside, shift[lane], value);
        });
    } else {
        accumulate<T, 0, VECTOR>(moments[0], inside, shift[0], value);
    }
}

// Adds the moments of the block's threads; after the next barrier `sum_of_parts` gives them to the threads that finish.
DEVICE void share_moments(Shared& shared, int j, const Tile& tile, Moments (&moments)[LANES]) {
    const int part = TX <= 32 ? threadIdx.x / 32 : tile.ty;
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) {
        if constexpr (TX < 32) add_lanes<TX, 32>(moments[lane]);
        if (TX > 32 || threadIdx.x % 32 < TX) {
            double* slot = shared.partial[j][part][tile.tx * LANES + lane];
            slot[0] = moments[lane].sum;
            slot[1] = moments[lane].squares;
        }
    }
}

// The sum of `count` moments that are `step` doubles apart, read by `read`, for a thread that finishes.
template <typename Read>
DEVICE Moments sum_of(int count, Read read) {
    Moments moments = {0, 0};
    if constexpr (COLUMNS) {
        for (int i = 0; i < count; i++) add(moments, read(i, 0), read(i, 1));
    } else {
        for (int i = threadIdx.x; i < count; i += 32) add(moments, read(i, 0), read(i, 1));
        add_lanes<1, 32>(moments);
    }
    return moments;
}

DEVICE Moments sum_of_parts(const Shared& shared, int j) {
    return sum_of(PARTS, [&](int i, int which) { return shared.partial[j][i][finished_column()][which]; });
}

// For the threads that finish; needs a barrier before.
DEVICE void share_shifts(Shared& shared, const Tile& tile, const double (&shift)[REDUCED][LANES]) {
    if (tile.ty != 0) return;
#pragma unroll
    for (int j = 0; j < REDUCED; j++) {
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) shared.shift[j][tile.tx * LANES + lane] = shift[j][lane];
    }
}

// Needs a barrier before `store_units`.
DEVICE void finish_tile(
    Shared& shared, const Parameters& p, const Tile& tile, const Moments (&sums)[REDUCED], bool stores) {
    if (!tile.finishes) return;
    Statistics found[REDUCED];
#pragma unroll
    for (int j = 0; j < REDUCED; j++) found[j] = statistics(sums[j], shared.shift[j][finished_column()], p.share);
    Kept kept;
    finish(kept, tile.given, found);
    shared.kept[finished_column()] = kept;
    if (stores && (COLUMNS || threadIdx.x == 0)) store_groups(p, tile.group, kept);
}

DEVICE void store_units(
    const Shared& shared, const Parameters& p, const Tile& tile, Index first, const Held<VECTOR> (&held)[KEEP],
    const bool (&inside)[KEEP]) {
    Kept kept[LANES];
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) kept[lane] = shared.kept[tile.tx * LANES + lane];
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (!inside[k]) continue;
        const Offsets here = in_group<VECTOR>(p, tile.column, first + k * TY + tile.ty);
        Late<VECTOR> late;
        Outputs<VECTOR> result;
        load_late<VECTOR>(late, p, here);
#pragma unroll
        for (int lane = 0; lane < VECTOR; lane++) {
            evaluate<VECTOR>(result, held[k], late, kept[COLUMNS ? lane : 0], lane);
        }
        store_outputs<VECTOR>(p, here, result);
    }
}

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

// The value at the first element of a column's group, to which all threads of all blocks refer.
template <typename J>
DEVICE double shift_of(J j, int lane, const Held<VECTOR>& first, const Given (&given)[LANES]) {
    return finite_or_zero(double(reduced<VECTOR>(j, first, given[lane], lane)));
}

// Adds a thread's units to the moments of one of its columns.
template <typename J, typename Lane>
DEVICE void add_units(
    Moments& moments, J j, Lane, const Held<VECTOR> (&held)[KEEP], const bool (&inside)[KEEP],
    const Given (&given)[LANES], double shift) {
    constexpr int from = COLUMNS ? Lane::value : 0, to = COLUMNS ? Lane::value + 1 : VECTOR;
    auto value = [&](int k, int lane) { return reduced<VECTOR>(j, held[k], given[COLUMNS ? lane : 0], lane); };
    accumulate<decltype(value(0, 0)), from, to>(moments, inside, shift, value);
}

// Adds the moments of a column over the block's threads; after the next barrier `sum_of_parts` gives them to those that finish.
DEVICE void share_moments(Shared& shared, int j, int lane, const Tile& tile, Moments& moments, double shift) {
    const int part = TX <= 32 ? threadIdx.x / 32 : tile.ty, column = tile.tx * LANES + lane;
    if constexpr (TX < 32) add_lanes<TX, 32>(moments);
    if (TX > 32 || threadIdx.x % 32 < TX) {
        shared.partial[j][part][column][0] = moments.sum;
        shared.partial[j][part][column][1] = moments.squares;
    }
    if (tile.ty == 0) shared.shift[j][column] = shift;
}

// The moments of units that are held, for all columns of the thread.
DEVICE void share_units(
    Shared& shared, const Parameters& p, const Tile& tile, const Held<VECTOR> (&held)[KEEP],
    const bool (&inside)[KEEP], const Held<VECTOR>& origin) {
    Given given[LANES];
    load_columns(given, p, tile);
    each<REDUCED>([&](auto j) {
        each<LANES>([&](auto lane) {
            const double shift = shift_of(j, lane, origin, given);
            Moments moments = {0, 0};
            add_units(moments, j, lane, held, inside, given, shift);
            share_moments(shared, j, lane, tile, moments, shift);
        });
    });
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

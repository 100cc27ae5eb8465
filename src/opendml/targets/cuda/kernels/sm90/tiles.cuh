// Sizes of tiles, and the order in which blocks compute tiles.

constexpr int BAND = 8;  // Tiles side by side that are computed at a time, so that operands stay in the L2 cache.
constexpr int DEPTH_BYTES = 128, ELEMENTS = DEPTH_BYTES / (int)sizeof(A::Element);  // of a row of a box, whose units of 16 bytes are swizzled
constexpr int A_BYTES = ROWS * DEPTH_BYTES, B_BYTES = COLUMNS_OF_TILE * DEPTH_BYTES, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int PARTS = TURNS ? 1 : CONSUMERS;  // warpgroups that multiply a tile
constexpr int DOWN = ROWS / PARTS / 64, HALF = COLUMNS_OF_TILE / 2, SUMS = DOWN * HALF;
constexpr int ARRIVALS = PARTS * 4 * CLUSTER;  // one of each warp that multiplies
constexpr int OWN_BARRIER = 1, TURN_BARRIER = OWN_BARRIER + CONSUMERS;  // the first of the barriers of the warpgroups
constexpr unsigned long long SWIZZLED = 1ull << 62;  // by 128 bytes

// Returns how many blocks of a cluster store results of a tile that they share along k: each a part of `blocks` blocks of 32 columns.
DEVICE constexpr int owners_of(int blocks) {
    int owners = SLICES;
    while (blocks % owners != 0) owners--;
    return owners;
}

constexpr int OWNERS = owners_of(COLUMNS_OF_TILE / 32), OWN_COLUMNS = COLUMNS_OF_TILE / OWNERS;  // that a block stores
static_assert(SLICES == 1 || (CLUSTER == 1 && !SPLIT && !TURNS));
static_assert(ELEMENTS == DEPTH && ROWS % (64 * PARTS) == 0 && COLUMNS_OF_TILE % (B::ALONG_K ? 32 : ELEMENTS) == 0 && COLUMNS_OF_TILE / CLUSTER % 8 == 0);

// The position of a tile, or of a slice of it along k.
struct Work {
    Index batch, row, column, first, end, tile;
    int rank;

    DEVICE_MEMBER Work(const Parameters& p, Index item, int block) {
        const Index super = SPLIT ? item / (Index)p.splits : item;
        rank = SLICES > 1 ? block_of_cluster() : SPLIT ? (int)(item - super * (Index)p.splits) : 0;
        tile = super * CLUSTER + block;
        batch = divide(super, p.matrix_tiles);
        const Index inside = super - batch * (Index)p.matrix_tiles.count, of_band = (Index)p.tiles_down.count * BAND;
        const Index band = inside / of_band, in_band = inside - band * of_band;
        const Index left = (Index)p.tiles_across - band * BAND, width = left < BAND ? left : BAND;
        const Index down = in_band / width;
        row = (down * CLUSTER + block) * ROWS;
        column = (band * BAND + in_band - down * width) * COLUMNS_OF_TILE;
        first = rank * (Index)p.split_depth;
        end = (SPLIT || SLICES > 1) && first + (Index)p.split_depth < (Index)p.k ? first + (Index)p.split_depth : (Index)p.k;
    }

    DEVICE_MEMBER int steps() const { return (int)((end - first + DEPTH - 1) / DEPTH); }
};

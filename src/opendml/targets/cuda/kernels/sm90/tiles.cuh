// Sizes of tiles, and the order in which blocks compute tiles.

constexpr int BAND = 8 / CLUSTER_ACROSS;  // Clusters side by side that are computed at a time, so that operands stay in the L2 cache.
constexpr int DEPTH_BYTES = 128, ELEMENTS = DEPTH_BYTES / (int)sizeof(A::Element);  // of a row of a box, whose units of 16 bytes are swizzled
constexpr int A_BYTES = ROWS * DEPTH_BYTES, B_BYTES = COLUMNS_OF_TILE * DEPTH_BYTES, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int PARTS = TURNS ? 1 : CONSUMERS;  // warpgroups that multiply a tile
constexpr int DOWN = ROWS / PARTS / 64, HALF = COLUMNS_OF_TILE / 2, SUMS = DOWN * HALF;
constexpr int BLOCKS_OF_CLUSTER = CLUSTER * CLUSTER_ACROSS, PEERS = CLUSTER + CLUSTER_ACROSS - 1;  // blocks with the same rows or columns as one, and itself
constexpr int ARRIVALS = PARTS * 4 * PEERS;  // one of each warp that multiplies
constexpr int OWN_BARRIER = 1, TURN_BARRIER = OWN_BARRIER + CONSUMERS;  // the first of the barriers of the warpgroups
constexpr unsigned long long SWIZZLED = 1ull << 62;  // by 128 bytes

// Returns how many blocks of a cluster store results of a tile that they share along k: each a part of `blocks` blocks of 32 columns.
DEVICE constexpr int owners_of(int blocks) {
    int owners = SLICES;
    while (blocks % owners != 0) owners--;
    return owners;
}

constexpr int OWNERS = owners_of(COLUMNS_OF_TILE / 32), OWN_COLUMNS = COLUMNS_OF_TILE / OWNERS;  // that a block stores
static_assert(SLICES == 1 || (BLOCKS_OF_CLUSTER == 1 && !SPLIT && !TURNS));
static_assert(ELEMENTS == DEPTH && ROWS % (64 * PARTS) == 0 && COLUMNS_OF_TILE % (!B::ALONG_K ? ELEMENTS : EXCHANGED ? 16 : 32) == 0 && COLUMNS_OF_TILE / CLUSTER % 8 == 0 && ROWS / CLUSTER_ACROSS % 8 == 0);

// The blocks of a cluster to which one sends its part of an operand, as bits of their ranks; 0 if it keeps it. Blocks are numbered along the
// columns first. Those with the same rows share the rows' operand, and those with the same columns share the columns'.
DEVICE constexpr unsigned short sharing_rows(int block) {
    return CLUSTER_ACROSS == 1 ? 0 : (unsigned short)(((1 << CLUSTER_ACROSS) - 1) << (block / CLUSTER_ACROSS * CLUSTER_ACROSS));
}

DEVICE constexpr unsigned short sharing_columns(int block) {
    unsigned short blocks = 0;
    for (int down = 0; down < CLUSTER; down++) blocks |= 1 << (down * CLUSTER_ACROSS + block % CLUSTER_ACROSS);
    return CLUSTER == 1 ? 0 : blocks;
}

// The position of a tile, or of a slice of it along k.
struct Work {
    Index batch, row, column, first, end, tile;
    int rank;

    DEVICE_MEMBER Work(const Parameters& p, Index item, int block) {
        const Index super = SPLIT ? item / (Index)p.splits : item;
        rank = SLICES > 1 ? block_of_cluster() : SPLIT ? (int)(item - super * (Index)p.splits) : 0;
        tile = super * BLOCKS_OF_CLUSTER + block;
        batch = divide(super, p.matrix_tiles);
        const Index inside = super - batch * (Index)p.matrix_tiles.count, of_band = (Index)p.tiles_down.count * BAND;
        const Index band = inside / of_band, in_band = inside - band * of_band;
        const Index left = (Index)p.tiles_across - band * BAND, width = left < BAND ? left : BAND;
        const Index down = in_band / width;
        row = (down * CLUSTER + block / CLUSTER_ACROSS) * ROWS;
        column = ((band * BAND + in_band - down * width) * CLUSTER_ACROSS + block % CLUSTER_ACROSS) * COLUMNS_OF_TILE;
        first = rank * (Index)p.split_depth;
        end = (SPLIT || SLICES > 1) && first + (Index)p.split_depth < (Index)p.k ? first + (Index)p.split_depth : (Index)p.k;
    }

    DEVICE_MEMBER int steps() const { return (int)((end - first + DEPTH - 1) / DEPTH); }
};

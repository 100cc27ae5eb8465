// A warp multiplies WARP_ROWS rows by WARP_COLUMNS columns of a tile, in pieces of 16 x 8 sums.

constexpr int WARPS_ACROSS = COLUMNS_OF_TILE / WARP_COLUMNS, DOWN = WARP_ROWS / 16, ACROSS = WARP_COLUMNS / 8, SUMS = DOWN * ACROSS * 4;

DEVICE int warp_row() { return threadIdx.x / 32 / WARPS_ACROSS * WARP_ROWS; }
DEVICE int warp_column() { return threadIdx.x / 32 % WARPS_ACROSS * WARP_COLUMNS; }
DEVICE int row_of(int sum) { return warp_row() + sum / (4 * ACROSS) * 16 + sum % 4 / 2 * 8 + threadIdx.x % 32 / 4; }
DEVICE int column_of(int sum) { return warp_column() + sum / 4 % ACROSS * 8 + threadIdx.x % 4 * 2 + sum % 2; }

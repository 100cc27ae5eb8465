// Loads the operands of a convolution as a matrix product (implicit GEMM). Rows or columns are pixels of the result. Along k are the taps
// of the window, each with `p.channels`, a multiple of DEPTH. The copy engine walks over the pixels of an image (im2col): along a row of
// the result, then to the next row, then to the next image. Outside the image it fills with zeros, which implements padding.
//
// The images are the rows' operand if the channels of results are contiguous, and the columns' operand if pixels are.

constexpr Shared IMAGES = IMAGES_ARE_B ? A_BYTES : 0, WEIGHTS = IMAGES_ARE_B ? 0 : A_BYTES;  // in a stage
constexpr int ROWS_OF_BLOCK = ROWS / CLUSTER_ACROSS, COLUMNS_OF_BLOCK = COLUMNS_OF_TILE / CLUSTER;  // that a block loads for those that share them

// Returns how many elements that exist come before a position along k.
DEVICE unsigned elements_before(const Parameters& p, Index k) {
    const unsigned taps = (unsigned)divide(k, p.channels), rest = (unsigned)k - taps * (unsigned)p.channels.count, own = (unsigned)p.own_channels;
    return taps * own + (rest < own ? rest : own);
}

// Loads the tiles of both operands, one step along k after the other.
struct Loader {
    int channel, tap, line;  // the position along k: the channel, and the tap along both axes of the window
    int x, y, image, filter;

    DEVICE_MEMBER Loader(const Parameters& p, const Work& work, int block) {
        const Index taps = divide(work.first, p.channels), lines = divide(taps, p.taps0);
        channel = (int)(work.first - taps * (Index)p.channels.count);
        tap = (int)(taps - lines * (Index)p.taps0.count);
        line = (int)lines;
        const Index own_row = work.row + block % CLUSTER_ACROSS * ROWS_OF_BLOCK, own_column = work.column + block / CLUSTER_ACROSS * COLUMNS_OF_BLOCK;
        filter = (int)(IMAGES_ARE_B ? own_row : own_column);
        const Index pixel = IMAGES_ARE_B ? work.batch * (Index)p.n + own_column : own_row;
        const Index row = divide(pixel, p.pixels0), number = divide(row, p.pixels1);
        x = (int)(pixel - row * (Index)p.pixels0.count) * (int)p.stride0 + (int)p.begin0;
        y = (int)(row - number * (Index)p.pixels1.count) * (int)p.stride1 + (int)p.begin1;
        image = (int)number;
    }

    // Begins to load the tile of either operand, or of both.
    DEVICE_MEMBER void load(const Parameters& p, Shared stage, Shared barrier, int block, bool of_a, bool of_b) {
        const Shared a_part = block % CLUSTER_ACROSS * ROWS_OF_BLOCK * DEPTH_BYTES, b_part = block / CLUSTER_ACROSS * COLUMNS_OF_BLOCK * DEPTH_BYTES;
        const unsigned short of_rows = sharing_rows(block), of_columns = sharing_columns(block);
        const int pixel[4] = {channel, x, y, image}, weights[4] = {channel, tap, line, filter};
        if (IMAGES_ARE_B ? of_b : of_a) load_windows(
            stage + IMAGES + (IMAGES_ARE_B ? b_part : a_part), IMAGES_ARE_B ? p.b_map : p.a_map, barrier, pixel, tap * (int)p.dilation0,
            line * (int)p.dilation1, IMAGES_ARE_B ? of_columns : of_rows
        );
        if (IMAGES_ARE_B ? of_a : of_b) load_box(
            stage + WEIGHTS + (IMAGES_ARE_B ? a_part : b_part), IMAGES_ARE_B ? p.a_map : p.b_map, barrier, weights,
            IMAGES_ARE_B ? of_rows : of_columns
        );
    }

    DEVICE_MEMBER void next(const Parameters& p) {
        channel += DEPTH;
        if (channel < (int)p.channels.count) return;
        channel = 0;
        if (++tap < (int)p.taps0.count) return;
        tap = 0, line++;
    }
};

// Loads the operands of a convolution as those of a product: rows are pixels of the result, and k runs over the taps of the
// window, `p.channels` for each of them, a multiple of DEPTH. The copy engine walks over the pixels of an image (im2col): along a
// row of the result, then down, then to the next image. It finds zeros outside of the image, which is what padding means.

// Loads the tiles of both operands, one step along k after the other.
struct Loader {
    int channel, tap, line;  // the position along k: in a line of the window and among its lines
    int x, y, image, filter;

    DEVICE_MEMBER Loader(const Parameters& p, const Work& work) : filter((int)work.column) {
        const Index taps = divide(work.first, p.channels), lines = divide(taps, p.taps0);
        channel = (int)(work.first - taps * (Index)p.channels.count);
        tap = (int)(taps - lines * (Index)p.taps0.count);
        line = (int)lines;
        const Index row = divide(work.row, p.pixels0), number = divide(row, p.pixels1);
        x = (int)(work.row - row * (Index)p.pixels0.count) * (int)p.stride0 + (int)p.begin0;
        y = (int)(row - number * (Index)p.pixels1.count) * (int)p.stride1 + (int)p.begin1;
        image = (int)number;
    }

    DEVICE_MEMBER void load(const Parameters& p, Shared a_tile, Shared barrier, int block) {
        const int pixel[4] = {channel, x, y, image};
        load_windows(a_tile, p.a_map, barrier, pixel, tap * (int)p.dilation0, line * (int)p.dilation1);
        // Each block of a cluster loads its part of the filters for all of them.
        const int first = CLUSTER == 1 ? 0 : block * (COLUMNS_OF_TILE / CLUSTER);
        const int weights[4] = {channel, tap, line, filter + first};
        load_box(a_tile + A_BYTES + first * DEPTH_BYTES, p.b_map, barrier, weights, CLUSTER == 1 ? 0 : (1 << CLUSTER) - 1);
        channel += DEPTH;
        if (channel < (int)p.channels.count) return;
        channel = 0;
        if (++tap < (int)p.taps0.count) return;
        tap = 0, line++;
    }
};

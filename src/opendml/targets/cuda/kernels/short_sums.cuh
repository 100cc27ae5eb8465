// Sums of few products of FLOAT16 or BFLOAT16 on tensor cores: products with a short k, and convolutions of few channels. A warp loads 16 rows at a time from
// global memory into the registers that tensor cores read, and stores results from registers. The second operand (filters) lies in shared
// memory, as tensor cores read it.
//
// Products may be added up in any order, so each lane of a quad loads neighbours along k: 4 of each 16, or 8 of each 32 (UNIT). And columns may have any
// order, so it has 8 neighbouring results of each 32.

constexpr int ROWS = 16, COLUMNS_OF_CHUNK = 32, WARPS = THREADS / 32;
constexpr int PIECES = STEPS * 4 / UNIT;            // loads of a lane for each row: STEPS are of 16 products
constexpr int OWN = UNIT == 8 ? 8 : 4;              // neighbours along k that a lane has
constexpr int LOADED = 4;                           // fragments of the filters that a thread loads at a time
constexpr int FRAGMENTS = STEPS * 4 * 32;           // of a chunk: of 4 products by each lane

// Returns the first of 4 neighbours along k that a lane multiplies in a step.
DEVICE int first_of_step(int step, int quad) { return UNIT == 8 ? step / 2 * 32 + quad * 8 + step % 2 * 4 : step * 16 + quad * 4; }

// Returns the first of UNIT neighbours along k that a lane loads.
DEVICE int first_of_piece(int piece, int quad) {
    constexpr int PER_STEP = OWN / UNIT;
    return piece / PER_STEP * (4 * OWN) + quad * OWN + piece % PER_STEP * UNIT;
}

// Where the piece of a lane lies in a window: bytes from the first tap, and the pixels to it along both axes.
struct Tap {
    int offset, line, pixel;
    bool there;

    DEVICE_MEMBER Tap() {}
    DEVICE_MEMBER Tap(const Parameters& p, int k) : there(k < (int)p.k) {
        const int taps = (int)divide((Index)k, p.own_channels), lines = (int)divide((Index)taps, p.taps0);
        line = lines * (int)p.dilation1, pixel = (taps - lines * (int)p.taps0.count) * (int)p.dilation0;
        offset = line * (int)p.line_bytes + pixel * (int)p.pixel_bytes + (k - taps * (int)p.own_channels.count) * (int)sizeof(Element);
    }
};

// A row of the product: where its window begins, and where its results lie.
struct Row {
    const char* from;
    int top, left;
    bool there, is_inside;
    Offsets at;

    DEVICE_MEMBER Row(const Parameters& p, const Offsets& begin, Index row, int lines, int pixels) {
        there = row < (Index)p.m;
        row = there ? row : (Index)p.m - 1;
        const Index line = divide(row, p.pixels0), image = divide(line, p.pixels1);
        const Index x = row - line * (Index)p.pixels0.count, y = line - image * (Index)p.pixels1.count;
        at = at_images(p, begin, image);
        top = (int)(y * (Index)p.stride1 + (Index)p.begin1), left = (int)(x * (Index)p.stride0 + (Index)p.begin0);
        from = image_at(p, at) + top * p.line_bytes + left * p.pixel_bytes;
        is_inside = top >= 0 && top + lines <= (int)p.size1 && left >= 0 && left + pixels <= (int)p.size0;
        at = at_pixels(p, at_lines(p, at, y), x);
    }
};

// Loads a lane's part of a row. GUARDED: pixels outside the image are zeros.
template <bool IS_GUARDED>
DEVICE void load_pieces(unsigned (&to)[2 * STEPS], const Parameters& p, const Row& row, const Tap (&taps)[PIECES]) {
    Vector<Element, UNIT> pieces[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        // Only the last step may have fewer products.
        bool there = !PADDED || (i + 1) * 4 * UNIT <= (STEPS - OWN / 4) * 16 || taps[i].there;
        if (IS_GUARDED) {
            there = there && (unsigned)(row.top + taps[i].line) < (unsigned)p.size1 && (unsigned)(row.left + taps[i].pixel) < (unsigned)p.size0;
        }
        pieces[i] = {};
        if (there) load(pieces[i], row.from + taps[i].offset);
    }
    memcpy(to, pieces, sizeof(to));
}

// Loads the filters of all chunks of a block's columns.
DEVICE void load_filters(char* filters, const Parameters& p, Index first, int count) {
    for (int begin = threadIdx.x; begin < count; begin += LOADED * THREADS) {
        Vector<Element, 4> found[LOADED];
#pragma unroll
        for (int i = 0; i < LOADED; i++) {
            const int number = begin + i * THREADS, lane = number / 2 % 32, part = number / 64 % 2 * 2 + number % 2;
            const int step = number / 128 % STEPS, chunk = number / FRAGMENTS, n = lane / 4;
            const Index column = first + chunk * COLUMNS_OF_CHUNK + n / 2 * 8 + part * 2 + n % 2;
            const int k = first_of_step(step, lane % 4);
            found[i] = {};
            if (number >= count || column >= (Index)p.n) continue;
            const Offsets at = at_columns(p, {}, column);
            if (FILTERS_TOGETHER) {
                if (k < (int)p.k) load(found[i], filters_at(p, at_k(p, at, k)));
            } else {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    if (k + j < (int)p.k) load(found[i].data[j], filters_at(p, at_k(p, at, k + j)));
                }
            }
        }
#pragma unroll
        for (int i = 0; i < LOADED; i++) {
            const int number = begin + i * THREADS;
            if (number < count) store(filters + number * 8, found[i]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 shared[];
    const Index group = divide((Index)blockIdx.x, p.column_tiles);
    const Index first = ((Index)blockIdx.x - group * (Index)p.column_tiles.count) * (Index)p.block_columns;
    const int columns = (int)((Index)p.n - first < (Index)p.block_columns ? (Index)p.n - first : (Index)p.block_columns);
    const int chunks = (columns + COLUMNS_OF_CHUNK - 1) / COLUMNS_OF_CHUNK;
    load_filters((char*)shared, p, first, chunks * FRAGMENTS);
    const int lane = threadIdx.x % 32, quad = lane % 4;
    Tap taps[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) taps[i] = Tap(p, first_of_piece(i, quad));
    const int all_taps = (int)divide((Index)p.k, p.own_channels), lines = (int)divide((Index)all_taps, p.taps0);
    const int lines_reached = (lines - 1) * (int)p.dilation1 + 1, pixels_reached = ((int)p.taps0.count - 1) * (int)p.dilation0 + 1;
    __syncthreads();
    for (Index item = group * WARPS + threadIdx.x / 32; item < (Index)p.items; item += (Index)p.step) {
        unsigned pairs[2][2 * STEPS];
        Row rows[2] = {
            Row(p, {}, item * ROWS + lane / 4, lines_reached, pixels_reached), Row(p, {}, item * ROWS + 8 + lane / 4, lines_reached, pixels_reached)};
        if (!GUARDED || (rows[0].is_inside && rows[1].is_inside)) {
#pragma unroll
            for (int lower = 0; lower < 2; lower++) load_pieces<false>(pairs[lower], p, rows[lower], taps);
        } else {
#pragma unroll
            for (int lower = 0; lower < 2; lower++) load_pieces<true>(pairs[lower], p, rows[lower], taps);
        }
        __syncwarp();
        const uint4* fragments = shared + lane;
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; chunk++) {
            float sums[4][4] = {};
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                const unsigned a[4] = {pairs[0][2 * step], pairs[1][2 * step], pairs[0][2 * step + 1], pairs[1][2 * step + 1]};
#pragma unroll
                for (int half_of_chunk = 0; half_of_chunk < 2; half_of_chunk++, fragments += 32) {
                    const uint4 b = *fragments;
                    multiply_matrices<Element>(sums[2 * half_of_chunk], a, {b.x, b.y});
                    multiply_matrices<Element>(sums[2 * half_of_chunk + 1], a, {b.z, b.w});
                }
            }
            const Index column = first + chunk * COLUMNS_OF_CHUNK + quad * 8;
            if (column >= (Index)p.n) continue;
#pragma unroll
            for (int lower = 0; lower < 2; lower++) {
                float own[8];
#pragma unroll
                for (int i = 0; i < 8; i++) own[i] = sums[i / 2][2 * lower + i % 2];
                if (rows[lower].there) store_unit(p, at_columns(p, rows[lower].at, column), own, 8);
            }
        }
        __syncwarp();
    }
}

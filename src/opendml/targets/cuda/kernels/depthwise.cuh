// Convolutions of each channel alone, with channels last. A thread makes HEIGHT x WIDTH neighbouring results of VECTOR channels, so that it
// reads a pixel once for all their windows. What threads beside it in its block read too, it finds in the L1 cache. The filters of a
// block's channels lie in shared memory.

constexpr int TAPS = TAPS1 * TAPS0, FILTERS = TAPS * UNITS * VECTOR;
constexpr int SPAN = (WIDTH - 1) * STRIDE0 + (TAPS0 - 1) * DILATION0 + 1;
constexpr int LINES = (HEIGHT - 1) * STRIDE1 + (TAPS1 - 1) * DILATION1 + 1;
constexpr int UNROLLED = TAPS1 <= 3 ? LINES : 1;  // loads of so many lines are in flight together
constexpr int LOADED = 8;                         // taps that a thread loads at a time

DEVICE float widened(half value) { return to_float(value); }
DEVICE float widened(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }  // of BFLOAT16
DEVICE float widened(float value) { return value; }

// Adds up the products of each window in the order of its taps. Pixels outside the image are zeros. INSIDE: there are none.
template <bool INSIDE>
DEVICE void sum_up(float (&sums)[HEIGHT][WIDTH][VECTOR], const Parameters& p, const char* from, int top, int left,
                   const Vector<float, VECTOR> (&filters)[TAPS][UNITS + 1], int unit) {
#pragma unroll UNROLLED
    for (int line = 0; line < LINES; line++) {
        const bool there = INSIDE || (unsigned)(top + line) < (unsigned)p.size1;
        Vector<Pixel, VECTOR> loaded[SPAN];
        float pixels[SPAN][VECTOR];
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            if (!INSIDE) loaded[i] = {};
            if (there && (INSIDE || (unsigned)(left + i) < (unsigned)p.size0)) load(loaded[i], from + i * PIXEL_BYTES);
        }
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
#pragma unroll
            for (int lane = 0; lane < VECTOR; lane++) pixels[i][lane] = widened(loaded[i].data[lane]);
        }
#pragma unroll
        for (int row = 0; row < HEIGHT; row++) {
            const int ahead = line - row * STRIDE1, down = ahead / DILATION1;
            if (ahead < 0 || ahead % DILATION1 != 0 || down >= TAPS1) continue;
#pragma unroll
            for (int tap = 0; tap < TAPS0; tap++) {
                const Vector<float, VECTOR> factor = filters[down * TAPS0 + tap][unit];
#pragma unroll
                for (int k = 0; k < WIDTH; k++) {
#pragma unroll
                    for (int lane = 0; lane < VECTOR; lane++) {
                        sums[row][k][lane] =
                            multiply_add(pixels[k * STRIDE0 + tap * DILATION0][lane], factor.data[lane], sums[row][k][lane]);
                    }
                }
            }
        }
        from += p.line_bytes;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    __shared__ Vector<float, VECTOR> filters[TAPS][UNITS + 1];  // neighbouring taps lie in different banks
    const Index block = divide((Index)blockIdx.x, p.column_tiles);
    const Index first = ((Index)blockIdx.x - block * (Index)p.column_tiles.count) * UNITS;
    for (int begin = threadIdx.x; begin < FILTERS; begin += LOADED * THREADS) {
        float found[LOADED];
        auto each_tap = [&](auto visit) {
#pragma unroll
            for (int k = 0; k < LOADED; k++) {
                const int i = begin + k * THREADS;
                const int tap = ALONG_TAPS ? i % TAPS : i / (UNITS * VECTOR), channel = ALONG_TAPS ? i / TAPS : i % (UNITS * VECTOR);
                if (i < FILTERS && first + channel / VECTOR < (Index)p.units) visit(found[k], tap, channel);
            }
        };
        each_tap([&](float& value, int tap, int channel) {
            const Offsets at = at_lines_of_taps(p, at_group(p, first * VECTOR + channel), tap / TAPS0);
            value = filter(p, at_taps(p, at, tap % TAPS0));
        });
        each_tap([&](float& value, int tap, int channel) { filters[tap][channel / VECTOR].data[channel % VECTOR] = value; });
    }
    __syncthreads();
    const int unit = threadIdx.x % UNITS;
    if (first + unit >= (Index)p.units) return;
    const Offsets begin = at_group(p, (first + unit) * VECTOR);
    for (Index strip = block * STRIPS + threadIdx.x / UNITS; strip < (Index)p.items; strip += (Index)p.step) {
        const Index above = divide(strip, p.tiles_down), y = (strip - above * (Index)p.tiles_down.count) * HEIGHT;
        const Index image = divide(above, p.tiles_across), x = (above - image * (Index)p.tiles_across.count) * WIDTH;
        const Offsets at = at_images(p, begin, image);
        const int top = (int)(y * STRIDE1 + (Index)p.begin1), left = (int)(x * STRIDE0 + (Index)p.begin0);
        const char* const from = image_at(p, at) + top * p.line_bytes + left * (long long)PIXEL_BYTES;
        float sums[HEIGHT][WIDTH][VECTOR] = {};
        const bool is_inside = top >= 0 && top + LINES <= (int)p.size1 && left >= 0 && left + SPAN <= (int)p.size0;
        if (is_inside) sum_up<true>(sums, p, from, top, left, filters, unit);
        else sum_up<false>(sums, p, from, top, left, filters, unit);
#pragma unroll
        for (int row = 0; row < HEIGHT; row++) {
            const Offsets line = at_lines(p, at, y + row);
#pragma unroll
            for (int k = 0; k < WIDTH; k++) {
                if (x + k >= (Index)p.pixels0 || y + row >= (Index)p.pixels1) continue;
                store_unit(p, at_pixels(p, line, x + k), sums[row][k], VECTOR);
            }
        }
    }
}

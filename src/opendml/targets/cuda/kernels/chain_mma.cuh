// Multiplies on tensor cores. A warp has BANDS bands of 16 queries. A thread has two queries of each, with pairs of keys and of columns of
// results. Weights are the sums of two FLOAT16, so they have 22 bits.

constexpr int LANES = 4, BANDS = 2 * ROWS / THREADS, OWN_ROWS = 2 * BANDS;
constexpr int SCORES_OF_BAND = KEYS / 2, SCORES = BANDS * SCORES_OF_BAND, RESULTS_OF_BAND = WIDTH / 2, RESULTS = BANDS * RESULTS_OF_BAND;
constexpr float LEAST_WEIGHT = 5.96046448e-8f;  // of FLOAT16
constexpr int TOGETHER = WIDTH < 64 ? WIDTH / 16 : 4;  // pieces of values that are loaded at a time
static_assert(BANDS * THREADS == 2 * ROWS);

DEVICE int row_of_warp() { return threadIdx.x / 32 * (16 * BANDS); }
DEVICE int row_of(int row) { return row_of_warp() + row * 8 + threadIdx.x % 32 / 4; }
DEVICE constexpr int row_of_score(int i) { return i / SCORES_OF_BAND * 2 + i % 4 / 2; }
DEVICE constexpr int row_of_result(int i) { return i / RESULTS_OF_BAND * 2 + i % 4 / 2; }
DEVICE int key_of(int i) { return i % SCORES_OF_BAND / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }
DEVICE int column_of(int i) { return i % RESULTS_OF_BAND / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }

// Returns a weight of at most 2^14, so that few weights underflow in FLOAT16.
DEVICE float weight_of(float distance) { return power_of_two(multiply_add(distance, 1.44269504f, 14.0f)); }

DEVICE float unit_of(int) { return 1; }

// Adds the products of 16 rows and 16 * COUNT columns.
template <int COUNT>
DEVICE void add_products(float* sums, const unsigned (&a)[4], const unsigned (&b)[COUNT][4]) {
#pragma unroll
    for (int i = 0; i < 2 * COUNT; i++) {
        multiply_matrices(reinterpret_cast<float (&)[4]>(sums[4 * i]), a, {b[i / 2][i % 2 * 2], b[i / 2][i % 2 * 2 + 1]});
    }
}

DEVICE void multiply(float (&scores)[SCORES], const half* q, const half* k) {
#pragma unroll
    for (int i = 0; i < SCORES; i++) scores[i] = 0;
#pragma unroll
    for (int at = 0; at < DEPTH; at += 16) {
        unsigned a[BANDS][4];
#pragma unroll
        for (int band = 0; band < BANDS; band++) load_fragment<Q, false>(a[band], q, row_of_warp() + 16 * band, at);
        unsigned b[KEYS / 16][4];
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) load_fragment<K, true>(b[i], k, 16 * i, at);
#pragma unroll
        for (int band = 0; band < BANDS; band++) add_products<KEYS / 16>(scores + band * SCORES_OF_BAND, a[band], b);
    }
}

// Returns two numbers as FLOAT16. The numbers become what rounding has cut off.
DEVICE unsigned pair_of(float& first, float& second) {
    const unsigned pair = to_halves(first, second);
    first -= to_float(half{(unsigned short)pair});
    second -= to_float(half{(unsigned short)(pair >> 16)});
    return pair;
}

DEVICE void pairs_of(unsigned (&pairs)[4], float* weights) {
#pragma unroll
    for (int i = 0; i < 4; i++) pairs[i] = pair_of(weights[2 * i], weights[2 * i + 1]);
}

DEVICE void add_weighted(
    float (&results)[RESULTS], float (&weights)[SCORES], const float (&factors)[OWN_ROWS], const half* v, float*, bool again) {
#pragma unroll
    for (int i = 0; i < RESULTS; i++) results[i] *= factors[row_of_result(i)];
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        unsigned large[BANDS][4], small[BANDS][4];
#pragma unroll
        for (int band = 0; band < BANDS; band++) {
            pairs_of(large[band], weights + band * SCORES_OF_BAND + key / 2);
            pairs_of(small[band], weights + band * SCORES_OF_BAND + key / 2);
        }
#pragma unroll
        for (int column = 0; column < WIDTH; column += 16 * TOGETHER) {
            unsigned b[TOGETHER][4];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) load_fragment<V, true>(b[i], v, column + 16 * i, key);
#pragma unroll
            for (int band = 0; band < BANDS; band++) {
                float* const sums = results + band * RESULTS_OF_BAND + column / 2;
                add_products<TOGETHER>(sums, large[band], b);
                if (!again) add_products<TOGETHER>(sums, small[band], b);
            }
        }
    }
}

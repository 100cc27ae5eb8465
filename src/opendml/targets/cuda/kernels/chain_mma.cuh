// Tensor cores: a warp has 16 queries, of which a thread has two, with pairs of keys and of columns of results that lie apart.
// Weights are the sums of two FLOAT16, so that they have 22 bits.

constexpr int LANES = 4, OWN_ROWS = 2, SCORES = KEYS / 2, RESULTS = WIDTH / 2;
constexpr float LEAST_WEIGHT = 5.96046448e-8f;  // of FLOAT16
constexpr int TOGETHER = WIDTH < 64 ? WIDTH / 16 : 4;  // pieces of values that are loaded at a time
static_assert(THREADS == 2 * ROWS);

DEVICE int row_of(int row) { return threadIdx.x / 32 * 16 + row * 8 + threadIdx.x % 32 / 4; }
DEVICE constexpr int row_of_score(int i) { return i % 4 / 2; }
DEVICE constexpr int row_of_result(int i) { return i % 4 / 2; }
DEVICE int key_of(int i) { return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }
DEVICE int column_of(int i) { return key_of(i); }

// At most 2^14, so that few of them are below the numbers of FLOAT16.
DEVICE float weight_of(float distance) { return power_of_two(multiply_add(distance, 1.44269504f, 14.0f)); }

DEVICE float unit_of(int) { return 1; }

// Adds the products of 16 rows and 16 COUNT columns.
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
        unsigned a[4];
        load_fragment<Q, false>(a, q, threadIdx.x / 32 * 16, at);
        unsigned b[KEYS / 16][4];
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) load_fragment<K, true>(b[i], k, 16 * i, at);
        add_products<KEYS / 16>(scores, a, b);
    }
}

// Two numbers as FLOAT16; what is left of them takes their place.
DEVICE unsigned pair_of(float& first, float& second) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    first -= to_float(half{(unsigned short)pair});
    second -= to_float(half{(unsigned short)(pair >> 16)});
    return pair;
}

DEVICE void pairs_of(unsigned (&pairs)[4], float (&weights)[SCORES], int key) {
#pragma unroll
    for (int i = 0; i < 4; i++) pairs[i] = pair_of(weights[key / 2 + 2 * i], weights[key / 2 + 2 * i + 1]);
}

DEVICE void add_weighted(
    float (&results)[RESULTS], float (&weights)[SCORES], const float (&factors)[OWN_ROWS], const half* v, float*, bool again) {
#pragma unroll
    for (int i = 0; i < RESULTS; i++) results[i] *= factors[row_of_result(i)];
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        unsigned large[4], small[4];
        pairs_of(large, weights, key);
        pairs_of(small, weights, key);
#pragma unroll
        for (int column = 0; column < WIDTH; column += 16 * TOGETHER) {
            unsigned b[TOGETHER][4];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) load_fragment<V, true>(b[i], v, column + 16 * i, key);
            add_products<TOGETHER>(results + column / 2, large, b);
            if (!again) add_products<TOGETHER>(results + column / 2, small, b);
        }
    }
}

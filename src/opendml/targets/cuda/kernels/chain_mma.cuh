// Tensor cores: a warp has 16 queries, of which a thread has two, with pairs of keys and of columns of results that lie apart.
// Weights are the sums of two FLOAT16, so that they have 22 bits.

constexpr int LANES = 4, OWN_ROWS = 2, SCORES = KEYS / 2, RESULTS = WIDTH / 2;
constexpr float LEAST_WEIGHT = 5.96046448e-8f;  // of FLOAT16
static_assert(THREADS == 2 * ROWS);

DEVICE int row_of(int row) { return threadIdx.x / 32 * 16 + row * 8 + threadIdx.x % 32 / 4; }
DEVICE constexpr int row_of_score(int i) { return i % 4 / 2; }
DEVICE constexpr int row_of_result(int i) { return i % 4 / 2; }
DEVICE int key_of(int i) { return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }
DEVICE int column_of(int i) { return key_of(i); }

DEVICE float weight_of(float distance) { return exponential(distance); }

// Weights are at most 2^14, so that few of them are below the numbers of FLOAT16.
DEVICE float first_unit(bool, int) { return 16384.0f; }

DEVICE void multiply(float (&scores)[SCORES], const half* q, const half* k) {
#pragma unroll
    for (int i = 0; i < SCORES; i++) scores[i] = 0;
#pragma unroll
    for (int at = 0; at < DEPTH; at += 16) {
        unsigned a[4];
        load_fragment<Q, false>(a, q, threadIdx.x / 32 * 16, at);
#pragma unroll
        for (int key = 0; key < KEYS; key += 16) {
            unsigned b[4];
            load_fragment<K, true>(b, k, key, at);
            multiply_matrices(reinterpret_cast<float (&)[4]>(scores[key / 2]), a, {b[0], b[1]});
            multiply_matrices(reinterpret_cast<float (&)[4]>(scores[key / 2 + 4]), a, {b[2], b[3]});
        }
    }
}

// Two numbers as FLOAT16; what is left of them takes their place.
DEVICE unsigned pair_of(float& first, float& second) {
    const half low = to_half(first), high = to_half(second);
    first -= to_float(low);
    second -= to_float(high);
    return low.bits | (unsigned)high.bits << 16;
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
        for (int column = 0; column < WIDTH; column += 16) {
            unsigned b[4];
            load_fragment<V, true>(b, v, column, key);
#pragma unroll
            for (int part = 0; part < 2; part++) {
                float (&sums)[4] = reinterpret_cast<float (&)[4]>(results[column / 2 + 4 * part]);
                multiply_matrices(sums, large, {b[2 * part], b[2 * part + 1]});
                if (!again) multiply_matrices(sums, small, {b[2 * part], b[2 * part + 1]});
            }
        }
    }
}

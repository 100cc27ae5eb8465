// Multiplies by FMAs. Each of 16 x 16 threads has ROWS / 16 queries, in groups of four, KEYS / 16 keys and WIDTH / 16 columns of results.

constexpr int TM = ROWS / 16, TK = KEYS / 16, TN = WIDTH / 16, LANES = 16;
constexpr int K_UNIT_OF_THREAD = TK < 4 ? TK : 4, N_UNIT_OF_THREAD = TN < 4 ? TN : 4, WEIGHTS_PITCH = ROWS + 4;
constexpr int OWN_ROWS = TM, SCORES = TM * TK, RESULTS = TM * TN;
constexpr float LEAST_WEIGHT = 1.4e-45f;

DEVICE int row_of(int row) { return row / 4 * (ROWS / (TM / 4)) + threadIdx.x / 16 * 4 + row % 4; }
DEVICE constexpr int row_of_score(int i) { return i / TK; }
DEVICE constexpr int row_of_result(int i) { return i / TN; }

// Returns the position of element i of a thread. UNIT elements of a thread are neighbours. Those of the other 15 threads follow.
template <int UNIT>
DEVICE int place_of(int i) { return i / UNIT * (16 * UNIT) + threadIdx.x % 16 * UNIT + i % UNIT; }

DEVICE int key_of(int i) { return place_of<K_UNIT_OF_THREAD>(i % TK); }
DEVICE int column_of(int i) { return place_of<N_UNIT_OF_THREAD>(i % TN); }

DEVICE float weight_of(float distance) { return exact_exponential(distance); }

// Returns a power of two that is at most one over the number of keys.
DEVICE float unit_of(int keys) { return __int_as_float((95 + __clz(keys - 1)) << 23); }

// Adds DEPTH_OF_SUM products to each sum. `a` and `b` return the addresses of an element of a row of the thread, and of a column.
template <int COLUMNS_OF_THREAD, int UNIT, int DEPTH_OF_SUM, typename A, typename B>
DEVICE void add_products(float (&sums)[TM * COLUMNS_OF_THREAD], A a, B b) {
#pragma unroll 8
    for (int k = 0; k < DEPTH_OF_SUM; k++) {
        Vector<float, 4> rows[TM / 4];
        Vector<float, UNIT> columns[COLUMNS_OF_THREAD / UNIT];
#pragma unroll
        for (int i = 0; i < TM / 4; i++) load(rows[i], (const char*)a(row_of(4 * i), k));
#pragma unroll
        for (int j = 0; j < COLUMNS_OF_THREAD / UNIT; j++) load(columns[j], (const char*)b(place_of<UNIT>(j * UNIT), k));
#pragma unroll
        for (int i = 0; i < TM; i++) {
#pragma unroll
            for (int j = 0; j < COLUMNS_OF_THREAD; j++) {
                float& sum = sums[i * COLUMNS_OF_THREAD + j];
                sum = multiply_add(rows[i / 4].data[i % 4], columns[j / UNIT].data[j % UNIT], sum);
            }
        }
    }
}

DEVICE void multiply(float (&scores)[SCORES], const Q::Element* q, const K::Element* k) {
#pragma unroll
    for (int i = 0; i < SCORES; i++) scores[i] = 0;
    add_products<TK, K_UNIT_OF_THREAD, DEPTH>(
        scores, [&](int row, int at) { return q + Q::slot(row, at); }, [&](int key, int at) { return k + K::slot(key, at); });
}

// Adds the values of KEYS keys by their weights. They are added to one another first, and then to the results so far.
DEVICE void add_weighted(
    float (&results)[RESULTS], const float (&weights)[SCORES], const float (&factors)[OWN_ROWS], const V::Element* v, float* shared_weights,
    bool) {
    // Weights of a row are written and read by one warp alone.
    __syncwarp();
#pragma unroll
    for (int i = 0; i < SCORES; i++) shared_weights[key_of(i) * WEIGHTS_PITCH + row_of(row_of_score(i))] = weights[i];
    __syncwarp();
    float sums[RESULTS];
#pragma unroll
    for (int i = 0; i < RESULTS; i++) sums[i] = 0;
    add_products<TN, N_UNIT_OF_THREAD, KEYS>(
        sums, [&](int row, int key) { return shared_weights + key * WEIGHTS_PITCH + row; },
        [&](int column, int key) { return v + V::slot(column, key); });
#pragma unroll
    for (int i = 0; i < RESULTS; i++) results[i] = multiply_add(results[i], factors[row_of_result(i)], sums[i]);
}

// Computes attention (a softmax between products). A block has ROWS queries, and takes in KEYS keys and their values at a time. Products of
// queries and keys become scores, and scores become weights, relative to the greatest score so far. Values are summed by weight. When a
// greater score comes, the sums of weights and of weighted values are scaled down. At the end, one is divided by the other.
//
// Weights are sums of two numbers, or multiples of a small one. So a value that is infinite, or so large that sums overflow, gives a result
// that is not finite. Then the block takes in all keys once more, with weights of one part that are at most one over the number of keys,
// and 0 only where the score makes them so. Results that were not finite come from there.

#define LOWEST __int_as_float(0xff800000)

DEVICE float greater(float a, float b) { return fmaxf(a, b); }  // the other one if one is NaN

// Returns the greatest value of the lanes that share a row.
DEVICE float greatest_of_row(float value) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) value = greater(__shfl_xor_sync(~0u, value, distance), value);
    return value;
}

// Returns the sum of the values of the lanes that share a row.
DEVICE float sum_of_row(float value) {
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) value += __shfl_xor_sync(~0u, value, distance);
    return value;
}

struct Block {
    const Parameters& p;
    const Offsets at;
    Q::Element* q_tile;
    K::Element* k_tiles;
    V::Element* v_tiles;
    Loader<K> k;
    Loader<V> v;

    DEVICE_MEMBER Block(const Parameters& p, const Offsets& at, char* memory) : p(p), at(at) {
        q_tile = (Q::Element*)memory;
        k_tiles = (K::Element*)(q_tile + Q::SIZE);
        v_tiles = (V::Element*)(k_tiles + STAGES * K::SIZE);
        v.start(p, at, 0, p.n);
    }

    DEVICE_MEMBER void load_queries(Index row) {
        Loader<Q> q;
        q.start(p, at, row, p.m);
        q.begin(p, q_tile, 0, p.depth, nullptr);
        q.finish(p, q_tile);
    }

    DEVICE_MEMBER void begin(Index key, int slot) {
        k.start(p, at, key, p.keys);
        k.begin(p, k_tiles + slot * K::SIZE, 0, p.depth, nullptr);
        v.begin(p, v_tiles + slot * V::SIZE, key, p.keys, nullptr);
        commit_copies();
    }

    DEVICE_MEMBER void finish(int slot) {
        k.finish(p, k_tiles + slot * K::SIZE);
        v.finish(p, v_tiles + slot * V::SIZE);
    }
};

// The results of a thread that are not stored yet, a bit for each.
struct Left {
    unsigned bits[(RESULTS + 31) / 32];

    DEVICE_MEMBER bool any() const {
        unsigned found = 0;
#pragma unroll
        for (unsigned each : bits) found |= each;
        return found != 0;
    }
};

// The rows of a thread while keys are taken in.
struct Attention {
    Offsets rows[OWN_ROWS];
    float greatest[OWN_ROWS], sums[OWN_ROWS], results[RESULTS];

    DEVICE_MEMBER void start() {
#pragma unroll
        for (int row = 0; row < OWN_ROWS; row++) greatest[row] = LOWEST, sums[row] = 0;
#pragma unroll
        for (int i = 0; i < RESULTS; i++) results[i] = 0;
    }

    // Turns products with the keys from `key` on into weights, and scales down the sums of weights by `factors`.
    DEVICE_MEMBER void weigh(
        const Parameters& p, float (&scores)[SCORES], float (&factors)[OWN_ROWS], Index key, bool again, float again_unit) {
        float found[OWN_ROWS];
#pragma unroll
        for (int row = 0; row < OWN_ROWS; row++) found[row] = greatest[row];
#pragma unroll
        for (int i = 0; i < SCORES; i++) {
            const int row = row_of_score(i);
            const Index own = key + key_of(i);
            scores[i] = score(p, at_keys(p, rows[row], own < (Index)p.keys ? own : key), scores[i]);
        }
        if (key + KEYS > (Index)p.keys) {
#pragma unroll
            for (int i = 0; i < SCORES; i++) scores[i] = key + key_of(i) < (Index)p.keys ? scores[i] : LOWEST;
        }
#pragma unroll
        for (int i = 0; i < SCORES; i++) found[row_of_score(i)] = greater(scores[i], found[row_of_score(i)]);
#pragma unroll
        for (int row = 0; row < OWN_ROWS; row++) {
            found[row] = greatest_of_row(found[row]);
            const float before = greatest[row];
            greatest[row] = found[row];
            // If all scores are -infinity, all weights are 0.
            found[row] = found[row] == LOWEST ? 0 : found[row];
            factors[row] = exact_exponential(before - found[row]);
            sums[row] *= factors[row];
        }
#pragma unroll
        for (int i = 0; i < SCORES; i++) scores[i] = weight_of(scores[i] - found[row_of_score(i)]);
        if (again) {
#pragma unroll
            for (int i = 0; i < SCORES; i++) scores[i] = scores[i] > 0 ? fmaxf(scores[i] * again_unit, LEAST_WEIGHT) : scores[i];
        }
#pragma unroll
        for (int i = 0; i < SCORES; i++) sums[row_of_score(i)] += scores[i];
    }

    // Stores the results of this attempt: the finite ones at first, then those of `left`.
    DEVICE_MEMBER void store(const Parameters& p, Index first, Left& left, bool again) {
        Left open = {};
        float shares[OWN_ROWS];
#pragma unroll
        for (int row = 0; row < OWN_ROWS; row++) shares[row] = 1 / sum_of_row(sums[row]);
#pragma unroll
        for (int i = 0; i < RESULTS; i++) {
            const int row = row_of_result(i);
            const Index column = column_of(i);
            if (first + row_of(row) >= (Index)p.m || column >= (Index)p.n) continue;
            const float result = results[i] * shares[row];
            const bool is_done = again ? left.bits[i / 32] >> i % 32 & 1 : is_finite(result) || shares[row] != shares[row];
            if (is_done) store_results(p, at_n(p, rows[row], column), result);
            else open.bits[i / 32] |= 1u << i % 32;
        }
        left = open;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 memory[];
    const Index group = divide((Index)blockIdx.x, p.tiles_down), first = ((Index)blockIdx.x - group * (Index)p.tiles_down.count) * ROWS;
    Block block(p, at_group(p, group), (char*)memory);
    float* const shared_weights = (float*)(block.v_tiles + STAGES * V::SIZE);
    block.load_queries(first);
    Attention attention;
#pragma unroll
    for (int row = 0; row < OWN_ROWS; row++) {
        const Index own = first + row_of(row);
        attention.rows[row] = at_m(p, block.at, own < (Index)p.m ? own : 0);
    }
    const float again_unit = unit_of((int)p.keys);
    Left left = {};
    bool again = false;
    do {
        attention.start();
        int slot = 0;
        if (STAGES > 1) {
            block.begin(0, 0);
            block.finish(0);
        }
#pragma unroll 1
        for (Index key = 0; key < (Index)p.keys; key += KEYS) {
            const bool is_last = key + KEYS >= (Index)p.keys;
            if (STAGES > 1) {
                wait_for_copies<0>();
                __syncthreads();
                if (!is_last) block.begin(key + KEYS, 1 - slot);
            } else {
                __syncthreads();
                block.begin(key, 0);
                block.finish(0);
                wait_for_copies<0>();
                __syncthreads();
            }
            float scores[SCORES], factors[OWN_ROWS];
            multiply(scores, block.q_tile, block.k_tiles + slot * K::SIZE);
            attention.weigh(p, scores, factors, key, again, again_unit);
            add_weighted(attention.results, scores, factors, block.v_tiles + slot * V::SIZE, shared_weights, again);
            if (STAGES > 1) {
                if (!is_last) block.finish(1 - slot);
                slot = 1 - slot;
            }
        }
        attention.store(p, first, left, again);
        // A block that begins once more overwrites what others may still read.
        again = !again && __syncthreads_or(left.any());
    } while (again);
}

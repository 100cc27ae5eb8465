// Attention of FLOAT16 or BFLOAT16 (a softmax between products) for compute capability 9.0. The grid is persistent: it has at most one block for
// each multiprocessor, and each block computes one tile of ROWS queries after another. One thread of the first warpgroup (the
// producer) loads tiles of queries, keys and values by TMA; keys and values go into a ring of STAGES. Each other warpgroup (a
// consumer) has 64 queries. It multiplies them by the keys, makes weights of the scores, and adds up the values by these weights,
// which stay in registers.
//
// The products with the next keys are in flight while a warpgroup makes weights. Consumers issue products in turn, so that one makes
// weights during the products of another. If a greater score comes, the sums so far are scaled down; a warp without such a score skips
// that. Weights are at most 2^14, so that few of them underflow in FLOAT16. They are rounded to the type of the
// values. With PARTS = 2 they are sums of two FLOAT16, which have 22 bits.
//
// HIDES: positions alone hide keys, as in a causal mask. Tiles of keys that no query of a tile sees are not read if hidden keys weigh
// nothing.
//
// TERMS: parts of scores that depend on keys, and not on queries, as in a mask of keys. Each warp computes them once for each tile of keys,
// and keeps them in shared memory. If a term also has loads that depend on queries, only warps whose queries all have the same values do so.
//
// MASKED: a truth value in memory for each query and key, whose rows are aligned. While products are in flight, a quad reads those of its
// queries in units of 16 bytes, and each thread keeps them as bits.
//
// SPLIT: all queries of a matrix fit in one tile, and several blocks share its keys, `p.slice_tiles` tiles of keys each. Each leaves its sums in
// global memory; the last one adds them up in the order of the keys.

constexpr int ROW_BYTES = 128, ELEMENTS = ROW_BYTES / 2;  // of a row of a box, whose units of 16 bytes are swizzled
constexpr int Q_BYTES = ROWS * DEPTH * 2, K_BYTES = KEYS * DEPTH * 2, V_BYTES = KEYS * WIDTH * 2, STAGE_BYTES = K_BYTES + V_BYTES;
constexpr int TERM_BYTES = TERMS * KEYS * 4;  // of each warp
constexpr int CONSUMERS = ROWS / 64, SCORES = KEYS / 2, RESULTS = WIDTH / 2, FRAGMENTS = KEYS / 16;
constexpr int TURN_BARRIER = 1;  // the first of the barriers of the warpgroups; barrier 0 is that of __syncthreads
constexpr unsigned long long SWIZZLED = 1ull << 62;  // by 128 bytes
constexpr float LOG2_E = 1.44269504f, WEIGHT_BITS = 14;
#define LOWEST __int_as_float(0xff800000)
static_assert(!SPLIT || CONSUMERS == 1);
static_assert(!BFLOAT16 || PARTS == 1);
static_assert(!MASKED || KEYS % 64 == 0);
static_assert(ROWS % 64 == 0 && KEYS % 32 == 0 && DEPTH % ELEMENTS == 0 && WIDTH % ELEMENTS == 0);

// Returns how many keys a query sees. `distance_beyond` is linear in keys, and a key is hidden if it is positive.
DEVICE int visible_keys(const Parameters& p, const Offsets& query) {
    if constexpr (!HIDES) return (int)p.keys;
    const long long first = distance_beyond(p, at_keys(p, query, 0)), step = distance_beyond(p, at_keys(p, query, 1)) - first;
    const long long seen = first > 0 ? 0 : step == 1 ? 1 - first : -first / step + 1;
    return seen < p.keys ? (int)seen : (int)p.keys;
}

// A tile of queries, and the tiles of keys that it reads. Long tiles come first, so that blocks end together: tiles of ROWS queries come
// before tiles of fewer. With HIDES, tiles with more keys come first, in bands of matrices (`p.band`) whose keys and values stay in the L2
// cache.
struct Work {
    Index batch, row;
    int first = 0, blocks;

    DEVICE_MEMBER Work(const Parameters& p, Index item) {
        const Index down = (Index)p.tiles_down.count;
        blocks = ((int)p.keys + KEYS - 1) / KEYS;
        if constexpr (SPLIT) {
            batch = divide(item, p.run_items);
            row = 0;
            first = (int)(item - batch * (Index)p.run_items.count) * (int)p.slice_tiles;
            if (HIDES && skips_hidden(p)) blocks = (visible_keys(p, at_m(p, at_group(p, batch), (Index)p.queries - 1)) + KEYS - 1) / KEYS;
            blocks = first + (int)p.slice_tiles < blocks ? (int)p.slice_tiles : blocks > first ? blocks - first : 0;
        } else if constexpr (HIDES) {
            const Index band = divide(item, p.run_items), inside = item - band * (Index)p.run_items.count;
            const Index left = (Index)p.matrices - band * (Index)p.band, width = left < (Index)p.band ? left : (Index)p.band;
            const Index tile = inside / width;
            batch = band * (Index)p.band + inside - tile * width;
            row = (down - 1 - tile) * ROWS;
            if (skips_hidden(p)) {
                const Index end = row + ROWS < (Index)p.queries ? row + ROWS : (Index)p.queries;
                blocks = (visible_keys(p, at_m(p, at_group(p, batch), end - 1)) + KEYS - 1) / KEYS;
            }
        } else {
            const Index whole = (Index)p.run_items.count, of_whole = (Index)p.matrices * whole;
            batch = item < of_whole ? divide(item, p.run_items) : item - of_whole;
            row = (item < of_whole ? item - batch * whole : whole) * ROWS;
        }
    }
};

// A stage of the ring, and the parity of the phase of its barriers.
struct Ring {
    int slot = 0;
    unsigned parity = 0;

    DEVICE_MEMBER void next() {
        if (++slot == STAGES) slot = 0, parity ^= 1;
    }
};

// The addresses of tiles and barriers in shared memory.
struct SharedLayout {
    Shared queries, stages, terms, full_queries, empty_queries, full_keys, empty_keys, full_values, empty_values, end;

    DEVICE_MEMBER explicit SharedLayout(Shared begin) : queries(begin), stages(begin + Q_BYTES) {
        terms = stages + STAGES * STAGE_BYTES;
        full_queries = terms + CONSUMERS * 4 * TERM_BYTES;
        empty_queries = full_queries + BARRIER_BYTES;
        full_keys = empty_queries + BARRIER_BYTES;
        empty_keys = full_keys + STAGES * BARRIER_BYTES;
        full_values = empty_keys + STAGES * BARRIER_BYTES;
        empty_values = full_values + STAGES * BARRIER_BYTES;
        end = empty_values + STAGES * BARRIER_BYTES;
    }

    DEVICE_MEMBER Shared keys(int slot) const { return stages + slot * STAGE_BYTES; }
    DEVICE_MEMBER Shared values(int slot) const { return stages + slot * STAGE_BYTES + K_BYTES; }
};

// Loads a tile of COLUMNS elements of an operand, in boxes of 64 of them.
template <typename Operand, int COLUMNS_OF_OPERAND, int ROWS_OF_BOX>
DEVICE void load_tile(Shared to, const TensorMap& map, Shared barrier, int (&at)[Operand::RANK], Index row) {
    at[1] = (int)row;
#pragma unroll
    for (int first = 0; first < COLUMNS_OF_OPERAND; first += ELEMENTS) {
        at[0] = first;
        load_box(to + first * 2 * ROWS_OF_BOX, map, barrier, at, 0);
    }
}

// Returns the next tile. Blocks take tiles in order, as they become free. The counter is 0 again after `p.items` calls.
DEVICE Index next_item(const Parameters& p) { return (Index)gridDim.x + (Index)atomicInc((unsigned*)p.counters, (unsigned)p.items - 1); }

DEVICE void produce(const Parameters& p, const SharedLayout& layout, int* shared_item) {
    // With fewer queries than a tile, the box has only these, in groups of 8 if they lie along one loop. The rest of the tile is not
    // initialized, and not stored.
    const int rows = LOOPS_M > 1 ? (int)p.queries : (Index)p.queries < ROWS ? ((int)p.queries + 7) / 8 * 8 : ROWS;
    Ring keys, values;
    int q_at[Q::RANK], k_at[K::RANK], v_at[V::RANK];
    Index item = blockIdx.x;
#pragma unroll 1
    for (int round = 0;; round++) {
        wait_for_phase(layout.empty_queries, round % 2 ^ 1);
        // Consumers read the item once the queries have arrived.
        *shared_item = (int)item;
        if (item >= (Index)p.items) {
            arrive_at(layout.full_queries);
            break;
        }
        const Work work(p, item);
        Q::find_batch(p, work.batch, q_at);
        K::find_batch(p, work.batch, k_at);
        V::find_batch(p, work.batch, v_at);
        expect_bytes(layout.full_queries, rows * DEPTH * 2);
        load_tile<Q, DEPTH, ROWS>(layout.queries, p.q_map, layout.full_queries, q_at, work.row);
        item = next_item(p);
        // Consumers need the values of a tile after the keys of the next one, so they are loaded in this order.
#pragma unroll 1
        for (int block = 0; block <= work.blocks; block++) {
            if (block < work.blocks) {
                const Shared barrier = layout.full_keys + keys.slot * BARRIER_BYTES;
                wait_for_phase(layout.empty_keys + keys.slot * BARRIER_BYTES, keys.parity ^ 1);
                expect_bytes(barrier, K_BYTES);
                load_tile<K, DEPTH, KEYS>(layout.keys(keys.slot), p.k_map, barrier, k_at, (Index)(work.first + block) * KEYS);
                keys.next();
            }
            if (block > 0) {
                const Shared barrier = layout.full_values + values.slot * BARRIER_BYTES;
                wait_for_phase(layout.empty_values + values.slot * BARRIER_BYTES, values.parity ^ 1);
                expect_bytes(barrier, V_BYTES);
                load_tile<V, WIDTH, KEYS>(layout.values(values.slot), p.v_map, barrier, v_at, (Index)(work.first + block - 1) * KEYS);
                values.next();
            }
        }
    }
}

// Returns the matrix descriptor of an operand that is contiguous along the summed dimension, `distance` bytes into a tile. Boxes have 64
// elements, and groups of 8 rows follow each other.
DEVICE unsigned long long along_depth(Shared tile, int distance) {
    constexpr unsigned long long LAYOUT = SWIZZLED | (unsigned long long)(8 * ROW_BYTES / 16) << 32;
    return LAYOUT | (tile % (1 << 18) / 16 | 1 << 16) + distance / 16;
}

// Returns the matrix descriptor of values, which are contiguous along columns. Groups of 8 keys follow each other, and boxes have 64
// columns.
DEVICE unsigned long long along_columns(Shared tile, int distance) {
    constexpr unsigned long long LAYOUT = SWIZZLED | (unsigned long long)(8 * ROW_BYTES / 16) << 32;
    return LAYOUT | (tile % (1 << 18) / 16 | KEYS * ROW_BYTES / 16 << 16) + distance / 16;
}

template <int COUNT>
DEVICE void hold_all(float (&values)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) hold(values[i]);
}

// Issues the products of 64 queries with the keys of a stage.
DEVICE void begin_scores(float (&scores)[SCORES], Shared queries, Shared keys) {
#pragma unroll
    for (int at = 0; at < DEPTH; at += 16) {
        const int box = at / ELEMENTS * ROW_BYTES, inside = at % ELEMENTS * 2;
        multiply_warpgroup(scores, along_depth(queries, box * ROWS + inside), along_depth(keys, box * KEYS + inside), at > 0);
    }
    commit_products();
}

// The weights of 64 queries in the register layout of wgmma: a thread has two queries, and every fourth pair of keys.
struct Weights {
    unsigned parts[PARTS][FRAGMENTS][4];

    DEVICE_MEMBER void make(float (&weights)[SCORES]) {
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
#pragma unroll
            for (int i = 0; i < SCORES / 2; i++) {
                const unsigned pair = (BFLOAT16 ? to_bfloat16s : to_halves)(weights[2 * i], weights[2 * i + 1]);
                parts[part][i / 4][i % 4] = pair;
                if (part + 1 < PARTS) {
                    // The rounding error of a weight becomes the next part.
                    weights[2 * i] -= to_float(half{(unsigned short)pair});
                    weights[2 * i + 1] -= to_float(half{(unsigned short)(pair >> 16)});
                }
            }
        }
    }

    // Issues the products of the weights with the values of a stage.
    DEVICE_MEMBER void begin_results(float (&results)[RESULTS], Shared values, bool adds) {
#pragma unroll
        for (int i = 0; i < FRAGMENTS; i++) {
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                multiply_warpgroup(results, parts[part][i], along_columns(values, i * 16 * ROW_BYTES), adds || i + part > 0);
            }
        }
        commit_products();
    }

    // Keeps the compiler from reusing the registers before the products are done.
    DEVICE_MEMBER void hold_parts() {
#pragma unroll
        for (int i = 0; i < PARTS * FRAGMENTS * 4; i++) hold(parts[i / (FRAGMENTS * 4)][i / 4 % FRAGMENTS][i % 4]);
    }
};

// Returns the greatest value, or the sum, of the lanes of a quad.
DEVICE float greatest_of_quad(float value) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
    return fmaxf(value, __shfl_xor_sync(~0u, value, 2));
}

DEVICE float sum_of_quad(float value) {
    value += __shfl_xor_sync(~0u, value, 1);
    return value + __shfl_xor_sync(~0u, value, 2);
}

// Returns whether the exponential scales the products. A finite number is added to hidden scores after they are scaled, so their scale
// cannot be left to the exponential.
DEVICE bool is_scaled_late(const Parameters& p) { return SCALED && scale_of(p) > 0 && (!HIDES || skips_hidden(p)); }

// Returns the factor of scores in the exponent of two.
DEVICE float unit_of_scores(const Parameters& p) { return is_scaled_late(p) ? LOG2_E * scale_of(p) : LOG2_E; }

DEVICE constexpr int row_of(int i) { return i / 2 % 2; }
DEVICE int key_of(int i) { return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }

// The state of the online softmax for the two queries of a thread.
struct Softmax {
    Offsets at[2];
    int seen[2];
    float greatest[2], sums[2];
    float* terms;  // of this warp
    bool is_alike;  // Whether the terms are the same for all queries of the warp.
    unsigned masks[2][(KEYS + 31) / 32];  // of the keys of a tile, from the first pair of this thread on

    DEVICE_MEMBER explicit Softmax(float* terms) : terms(terms) {}

    DEVICE_MEMBER void start(const Parameters& p, const Work& work, Index own) {
#pragma unroll
        for (int row = 0; row < 2; row++) {
            greatest[row] = LOWEST, sums[row] = 0;
            const Index place = own + row * 8;
            at[row] = at_m(p, at_group(p, work.batch), place < (Index)p.queries ? place : work.row);
            seen[row] = visible_keys(p, at[row]);
        }
        is_alike = TERMS > 0 && rows_are_alike(p, at);
    }

    // Computes the terms of the keys from `key` on.
    DEVICE_MEMBER void find_terms_of(const Parameters& p, Index key) {
        if (TERMS == 0 || !is_alike) return;
        __syncwarp();
#pragma unroll
        for (int first = 0; first < KEYS; first += 32) {
            const int own = first + threadIdx.x % 32;
            float found[TERMS + 1];
            find_terms(p, at_keys(p, at[0], key + own < (Index)p.keys ? key + own : key), found);
#pragma unroll
            for (int i = 0; i < TERMS; i++) terms[i * KEYS + own] = found[i];
        }
        __syncwarp();
    }

    // Reads the truth values of the keys from `key` on.
    DEVICE_MEMBER void find_masks_of(const Parameters& p, Index key) {
        if constexpr (MASKED) {
            constexpr int OWN = KEYS / 4;  // of a lane
            const int lane = threadIdx.x % 4, first = lane * OWN;
#pragma unroll
            for (int row = 0; row < 2; row++) {
                Vector<unsigned, 4> words[OWN / 16];
#pragma unroll
                for (int i = 0; i < OWN / 16; i++) {
                    const Index at_unit = key + first + i * 16;
                    words[i] = {};
                    if (at_unit < (Index)p.keys) load(words[i], mask_at(p, at_keys(p, at[row], at_unit)));
                }
                unsigned own = 0;
#pragma unroll
                // The product moves the lowest bits of four bytes together.
                for (int i = 0; i < OWN / 4; i++) own |= (words[i / 4].data[i % 4] * 0x01020408u >> 24 & 15) << i * 4;
#pragma unroll
                for (int i = 0; i < KEYS / 32; i++) {
                    unsigned found = 0;
#pragma unroll
                    for (int j = 0; j < 32 / OWN; j++) {
                        found |= __shfl_sync(~0u, own, threadIdx.x % 32 / 4 * 4 + i * (32 / OWN) + j) << j * OWN % 32;
                    }
                    masks[row][i] = found >> lane * 2;
                }
            }
        }
    }

    // Makes scores of the products with the keys from `key` on.
    DEVICE_MEMBER void make_scores(const Parameters& p, float (&scores)[SCORES], Index key) {
        if (SCALED) {
            const float scale = scale_of(p);
#pragma unroll
            for (int i = 0; i < SCORES; i++) scores[i] *= scale;
        } else if (MASKED) {
#pragma unroll
            for (int i = 0; i < SCORES; i += 2) {
                mask_scores(p, at[row_of(i)], reinterpret_cast<float (&)[2]>(scores[i]), masks[row_of(i)][i / 16] >> i / 4 * 8 % 32);
            }
        } else if (TERMS > 0 && is_alike) {
#pragma unroll
            for (int i = 0; i < SCORES; i += 4) {
                Vector<float, 2> pairs[TERMS + 1];
#pragma unroll
                for (int j = 0; j < TERMS; j++) load(pairs[j], (const char*)(terms + j * KEYS + key_of(i)));
                finish_scores(p, at[0], reinterpret_cast<float (&)[2]>(scores[i]), pairs);
                finish_scores(p, at[1], reinterpret_cast<float (&)[2]>(scores[i + 2]), pairs);
            }
        } else {
#pragma unroll
            for (int i = 0; i < SCORES; i += 2) {
                const Index own = key + key_of(i);
                const Offsets place = at_keys(p, at[row_of(i)], own < (Index)p.keys ? own : key);
                find_scores(p, place, reinterpret_cast<float (&)[2]>(scores[i]), own + 1 < (Index)p.keys);
            }
        }
    }

    // Makes weights of the products with the keys from `key` on. The caller scales the sums so far by `factors`.
    DEVICE_MEMBER void weigh(const Parameters& p, float (&scores)[SCORES], float (&factors)[2], Index key, bool is_partial) {
        const float unit = unit_of_scores(p);
        if (!is_scaled_late(p)) make_scores(p, scores, key);
        if (is_partial) {
#pragma unroll
            for (int i = 0; i < SCORES; i++) {
                const int row = row_of(i), own = (int)key + key_of(i);
                if (own >= seen[row]) scores[i] = !HIDES || skips_hidden(p) || own >= (int)p.keys ? LOWEST : score_of_hidden(p, scores[i]);
            }
        }
        // Two chains for each query hide the latency of comparisons and additions.
        float found[4] = {greatest[0], greatest[1], greatest[0], greatest[1]}, added[4] = {};
#pragma unroll
        for (int i = 0; i < SCORES; i++) found[i / 2 % 4] = fmaxf(found[i / 2 % 4], scores[i]);
        float lowered[2];
#pragma unroll
        for (int row = 0; row < 2; row++) {
            const float highest = greatest_of_quad(fmaxf(found[row], found[row + 2]));
            // If all scores are -infinity, all weights are 0.
            const float scaled = highest == LOWEST ? 0 : highest * unit;
            factors[row] = power_of_two(multiply_add(greatest[row], unit, -scaled));
            lowered[row] = WEIGHT_BITS - scaled;
            greatest[row] = highest;
        }
#pragma unroll
        for (int i = 0; i < SCORES; i++) {
            scores[i] = power_of_two(multiply_add(scores[i], unit, lowered[row_of(i)]));
            added[i / 2 % 4] += scores[i];
        }
#pragma unroll
        for (int row = 0; row < 2; row++) sums[row] = multiply_add(sums[row], factors[row], added[row] + added[row + 2]);
    }
};

DEVICE void scale_down(float (&results)[RESULTS], const float (&factors)[2]) {
    if (!__any_sync(~0u, factors[0] != 1 || factors[1] != 1)) return;
#pragma unroll
    for (int i = 0; i < RESULTS; i++) results[i] *= factors[row_of(i)];
}

// Stores the results of a thread's queries. Transposing four blocks of 8 columns gives a thread all 8 columns of one, a unit.
DEVICE void store_results(const Parameters& p, const Softmax& softmax, const float (&results)[RESULTS], Index batch, Index own) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const bool is_there = own + row * 8 < (Index)p.queries;
        const Offsets at = at_m(p, at_group(p, batch), is_there ? own + row * 8 : 0);
        const float share = 1 / sum_of_quad(softmax.sums[row]);
#pragma unroll
        for (int block = 0; block < WIDTH / 8; block += 4) {
            float pairs[4][2];
#pragma unroll
            for (int j = 0; j < 8; j++) pairs[j / 2][j % 2] = results[(block + j / 2) * 4 + 2 * row + j % 2] * share;
            transpose_quad(pairs);
            const Index column = (block + threadIdx.x % 4) * 8, left = (Index)p.n - column;
            if (is_there && left > 0) {
                store_unit(p, at_n(p, at, column), reinterpret_cast<float (&)[8]>(pairs), left < 8 ? (int)left : 8);
            }
        }
    }
}

// Returns where the sums of a slice of keys lie in global memory: WIDTH of each query.
DEVICE float* sums_of_slice(const Parameters& p, Index item) { return (float*)p.scratch + (long long)item * ((int)p.queries * WIDTH); }

// Returns where the greatest score of each query in a slice lies, and the sum of its weights.
DEVICE float* limits_of_slice(const Parameters& p, Index item) {
    return sums_of_slice(p, (Index)p.items) + (long long)item * ((int)p.queries * 2);
}

// Leaves the sums of a thread's queries in global memory.
DEVICE void store_slice(const Parameters& p, const Softmax& softmax, const float (&results)[RESULTS], Index item) {
    const Index first = threadIdx.x % 128 / 32 * 16;
    float* const limits = limits_of_slice(p, item);
    const float unit = unit_of_scores(p);
#pragma unroll
    for (int row = 0; row < 2; row++) {
        if (first + row * 8 >= (Index)p.queries) continue;  // The same for all lanes.
        const Index own = first + row * 8 + threadIdx.x % 32 / 4;
        const bool is_there = own < (Index)p.queries;
        const float sum = sum_of_quad(softmax.sums[row]);
        if (is_there && threadIdx.x % 4 == 0) limits[own * 2] = softmax.greatest[row] * unit, limits[own * 2 + 1] = sum;
        float* const page = sums_of_slice(p, item) + own * WIDTH;
#pragma unroll
        for (int block = 0; block < WIDTH / 8; block += 4) {
            float pairs[4][2];
#pragma unroll
            for (int j = 0; j < 8; j++) pairs[j / 2][j % 2] = results[(block + j / 2) * 4 + 2 * row + j % 2];
            transpose_quad(pairs);
            Vector<float, 8> unit_of_sums;
#pragma unroll
            for (int j = 0; j < 8; j++) unit_of_sums.data[j] = pairs[j / 2][j % 2];
            if (is_there) store((char*)(page + (block + threadIdx.x % 4) * 8), unit_of_sums);
        }
    }
}

// Adds the sums of all slices of a matrix up, and stores the results. A thread has units of 8 columns.
DEVICE void merge_slices(const Parameters& p, Index batch) {
    const int slices = (int)p.run_items.count, rows = (int)p.queries;
    const float* const limits = limits_of_slice(p, batch * slices);
    const float* const pages = sums_of_slice(p, batch * slices);
#pragma unroll 1
    for (int at = threadIdx.x % 128; at < rows * (WIDTH / 8); at += 128) {
        const int row = at / (WIDTH / 8), column = at % (WIDTH / 8) * 8, left = (int)p.n - column;
        if (left <= 0) continue;
        float greatest = LOWEST, total = 0, sums[8] = {};
#pragma unroll 8
        for (int slice = 0; slice < slices; slice++) {
            greatest = fmaxf(greatest, bits_as<float>(load_uncached((const unsigned*)limits + (slice * rows + row) * 2)));
        }
        greatest = greatest == LOWEST ? 0 : greatest;
#pragma unroll 8
        for (int slice = 0; slice < slices; slice++) {
            unsigned limit[2];
            unsigned long long words[4];
            const float* const page = pages + (long long)(slice * rows + row) * WIDTH + column;
            load_uncached(limit, limits + (slice * rows + row) * 2);
            load_uncached(reinterpret_cast<unsigned long long (&)[2]>(words[0]), page);
            load_uncached(reinterpret_cast<unsigned long long (&)[2]>(words[2]), page + 4);
            const float factor = power_of_two(bits_as<float>(limit[0]) - greatest);
            total = multiply_add(bits_as<float>(limit[1]), factor, total);
#pragma unroll
            for (int i = 0; i < 8; i++) sums[i] = multiply_add(bits_as<float>((unsigned)(words[i / 2] >> i % 2 * 32)), factor, sums[i]);
        }
        const float share = 1 / total;
#pragma unroll
        for (int i = 0; i < 8; i++) sums[i] *= share;
        store_unit(p, at_n(p, at_m(p, at_group(p, batch), row), column), sums, left < 8 ? left : 8);
    }
}

// Returns whether a slice is the last one of its matrix that is done.
DEVICE bool is_last_slice(const Parameters& p, Index batch, int* shared_flag) {
    const unsigned last = (unsigned)p.run_items.count - 1;
    __threadfence();
    synchronize_warpgroups(TURN_BARRIER, 1);
    // The first counter numbers the items.
    if (threadIdx.x % 128 == 0) *shared_flag = atomicInc((unsigned*)p.counters + 1 + batch, last) == last;
    synchronize_warpgroups(TURN_BARRIER, 1);
    const bool is_last = *(const volatile int*)shared_flag;
    if (is_last) __threadfence();
    return is_last;
}

// Tells the producer that a warp has read a tile.
DEVICE void release(Shared empty) {
    if (threadIdx.x % 32 == 0) arrive_at(empty);
}

DEVICE void consume(const Parameters& p, const SharedLayout& layout, int* shared_item, float* terms) {
    const int group = threadIdx.x / 128 - 1, next = group + 1 < CONSUMERS ? group + 1 : 0;
    const Shared queries = layout.queries + group * 64 * ROW_BYTES;
    Ring keys, values;
    Softmax softmax(terms);
    Weights weights;
    float scores[SCORES], results[RESULTS], factors[2];
    bool is_first = group == 0;
    // Consumers issue products in turn: each waits for the one before, and then releases the next one.
    auto begin_turn = [&] {
        if (CONSUMERS > 1 && !is_first) synchronize_warpgroups(TURN_BARRIER + group, 2);
        is_first = false;
    };
    auto end_turn = [&] {
        if (CONSUMERS > 1) arrive_for_warpgroups(TURN_BARRIER + next, 2);
    };
    const Index own = group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll 1
    for (int round = 0;; round++) {
        wait_for_phase(layout.full_queries, round % 2);
        // The lane that releases the queries reads the item, for the whole warp.
        const Index item = __shfl_sync(~0u, threadIdx.x % 32 == 0 ? *(const volatile int*)shared_item : 0, 0);
        if (item >= (Index)p.items) break;
        const Work work(p, item);
        // A tile of keys is partial if it ends beyond the keys, or beyond those that the first query sees.
        const int seen = visible_keys(p, at_m(p, at_group(p, work.batch), work.row));
        auto is_partial = [&](Index key) { return (int)key + KEYS > seen; };
        auto release_keys = [&](int block) {
            hold_all(scores);
            release(layout.empty_keys + keys.slot * BARRIER_BYTES);
            keys.next();
            if (block + 1 == work.blocks) release(layout.empty_queries);
        };
        auto finish_results = [&] {
            wait_for_products<0>();
            hold_all(results);
            weights.hold_parts();
            release(layout.empty_values + values.slot * BARRIER_BYTES);
            values.next();
        };
        if (work.row + group * 64 >= (Index)p.queries) {
            // This warpgroup has no queries. It only releases tiles and turns, so that the others proceed.
            for (int block = 0; block < work.blocks; block++) {
                wait_for_phase(layout.full_keys + keys.slot * BARRIER_BYTES, keys.parity);
                begin_turn();
                end_turn();
                release(layout.empty_keys + keys.slot * BARRIER_BYTES);
                keys.next();
                wait_for_phase(layout.full_values + values.slot * BARRIER_BYTES, values.parity);
                release(layout.empty_values + values.slot * BARRIER_BYTES);
                values.next();
            }
            release(layout.empty_queries);
            continue;
        }
        softmax.start(p, work, work.row + own);
        hold_all(scores);
        hold_all(results);
        if (work.blocks > 0) {
            softmax.find_terms_of(p, (Index)work.first * KEYS);
            softmax.find_masks_of(p, (Index)work.first * KEYS);
            wait_for_phase(layout.full_keys + keys.slot * BARRIER_BYTES, keys.parity);
            begin_turn();
            begin_products();
            begin_scores(scores, queries, layout.keys(keys.slot));
            end_turn();
            wait_for_products<0>();
            release_keys(0);
            softmax.weigh(p, scores, factors, (Index)work.first * KEYS, is_partial((Index)work.first * KEYS));
            weights.make(scores);
#pragma unroll 1
            for (int block = 1; block < work.blocks; block++) {
                wait_for_phase(layout.full_keys + keys.slot * BARRIER_BYTES, keys.parity);
                begin_turn();
                begin_products();
                begin_scores(scores, queries, layout.keys(keys.slot));
                wait_for_phase(layout.full_values + values.slot * BARRIER_BYTES, values.parity);
                begin_products();
                weights.begin_results(results, layout.values(values.slot), block > 1);
                end_turn();
                const Index key = (Index)(work.first + block) * KEYS;
                softmax.find_terms_of(p, key);
                softmax.find_masks_of(p, key);
                wait_for_products<1>();
                release_keys(block);
                softmax.weigh(p, scores, factors, key, is_partial(key));
                // Without this the compiler would move the wait for the products before the weights.
                wait_until_known(softmax.sums[0] + softmax.sums[1]);
                finish_results();
                scale_down(results, factors);
                weights.make(scores);
            }
            wait_for_phase(layout.full_values + values.slot * BARRIER_BYTES, values.parity);
            begin_products();
            weights.begin_results(results, layout.values(values.slot), work.blocks > 1);
            finish_results();
        } else {
            release(layout.empty_queries);
#pragma unroll
            for (int i = 0; i < RESULTS; i++) results[i] = 0;
        }
        if constexpr (SPLIT) {
            store_slice(p, softmax, results, item);
            if (is_last_slice(p, work.batch, shared_item + 1)) merge_slices(p, work.batch);
        } else {
            store_results(p, softmax, results, work.batch, work.row + own);
        }
    }
    // The last warpgroup has released a turn, for which nobody waited yet.
    if (group == 0) begin_turn();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    extern __shared__ uint4 memory[];
    // Swizzled tiles begin at multiples of 1024 bytes.
    Shared begin = (shared_address(memory) + 1023) / 1024 * 1024;
    hold(begin);
    const SharedLayout layout(begin);
    if (threadIdx.x == 0) {
        prefetch(p.q_map);
        prefetch(p.k_map);
        prefetch(p.v_map);
        start_barrier(layout.full_queries, 1);
        start_barrier(layout.empty_queries, 4 * CONSUMERS);
        for (int slot = 0; slot < STAGES; slot++) {
            start_barrier(layout.full_keys + slot * BARRIER_BYTES, 1);
            start_barrier(layout.empty_keys + slot * BARRIER_BYTES, 4 * CONSUMERS);
            start_barrier(layout.full_values + slot * BARRIER_BYTES, 1);
            start_barrier(layout.empty_values + slot * BARRIER_BYTES, 4 * CONSUMERS);
        }
        publish_barriers();
    }
    __syncthreads();
    begin_kernel(p.lets_next_begin);
    int* const item = (int*)((char*)memory + (layout.end - shared_address(memory)));
    float* const terms = (float*)((char*)memory + (layout.terms - shared_address(memory)) + (threadIdx.x / 32 - 4) * TERM_BYTES);
    if (threadIdx.x < 128) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce(p, layout, item);
    } else {
        take_registers<CONSUMER_REGISTERS>();
        consume(p, layout, item, terms);
    }
}

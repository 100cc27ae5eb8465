// Attention of FLOAT16 (a softmax between products) for compute capability 9.0. The grid is persistent: it has at most one block for
// each multiprocessor, and each block computes one tile of ROWS queries after another. One thread of the first warpgroup (the
// producer) loads tiles of queries, keys and values by TMA; keys and values go into a ring of STAGES. Each other warpgroup (a
// consumer) has 64 queries. It multiplies them by the keys, makes weights of the scores, and adds up the values by these weights,
// which stay in registers.
//
// The products with the next keys are in flight while a warpgroup makes weights. Consumers issue products in turn, so that one makes
// weights during the products of another. If a greater score comes, the sums so far are scaled down; a warp without such a score skips
// that. Weights are at most 2^14, so that few of them underflow in FLOAT16. They are rounded to FLOAT16. With PARTS = 2 they are sums of
// two FLOAT16, which have 22 bits.
//
// HIDES: positions alone hide keys, as in a causal mask. Tiles of keys that no query of a tile sees are not read if hidden keys weigh
// nothing.

constexpr int ROW_BYTES = 128, ELEMENTS = ROW_BYTES / 2;  // of a row of a box, whose units of 16 bytes are swizzled
constexpr int Q_BYTES = ROWS * DEPTH * 2, K_BYTES = KEYS * DEPTH * 2, V_BYTES = KEYS * WIDTH * 2, STAGE_BYTES = K_BYTES + V_BYTES;
constexpr int CONSUMERS = ROWS / 64, SCORES = KEYS / 2, RESULTS = WIDTH / 2, FRAGMENTS = KEYS / 16;
constexpr int TURN_BARRIER = 1;  // the first of the barriers of the warpgroups; barrier 0 is that of __syncthreads
constexpr unsigned long long SWIZZLED = 1ull << 62;  // by 128 bytes
constexpr float LOG2_E = 1.44269504f, WEIGHT_BITS = 14;
#define LOWEST __int_as_float(0xff800000)
static_assert(ROWS % 64 == 0 && KEYS % 16 == 0 && DEPTH % ELEMENTS == 0 && WIDTH % ELEMENTS == 0);

// Returns how many keys a query sees. `distance_beyond` is linear in keys, and a key is hidden if it is positive.
DEVICE int visible_keys(const Parameters& p, const Offsets& query) {
    if constexpr (!HIDES) return (int)p.units;
    const long long first = distance_beyond(p, at_keys(p, query, 0)), step = distance_beyond(p, at_keys(p, query, 1)) - first;
    const long long seen = first > 0 ? 0 : step == 1 ? 1 - first : -first / step + 1;
    return seen < p.units ? (int)seen : (int)p.units;
}

// A tile of queries, and the number of tiles of keys that it reads. Long tiles come first, so that blocks end together: tiles of ROWS
// queries come before tiles of fewer. With HIDES, tiles with more keys come first, in bands of matrices (`p.full`) whose keys and values
// stay in the L2 cache.
struct Work {
    Index batch, row;
    int blocks;

    DEVICE_MEMBER Work(const Parameters& p, Index item) {
        const Index down = (Index)p.inner.count;
        blocks = ((int)p.units + KEYS - 1) / KEYS;
        if constexpr (HIDES) {
            const Index band = divide(item, p.tiles), inside = item - band * (Index)p.tiles.count;
            const Index left = (Index)p.team - band * (Index)p.full, width = left < (Index)p.full ? left : (Index)p.full;
            const Index tile = inside / width;
            batch = band * (Index)p.full + inside - tile * width;
            row = (down - 1 - tile) * ROWS;
            if (skips_hidden(p)) {
                const Index end = row + ROWS < (Index)p.rows ? row + ROWS : (Index)p.rows;
                blocks = (visible_keys(p, at_m(p, at_group(p, batch), end - 1)) + KEYS - 1) / KEYS;
            }
        } else {
            const Index whole = (Index)p.tiles.count, of_whole = (Index)p.team * whole;
            batch = item < of_whole ? divide(item, p.tiles) : item - of_whole;
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
    Shared queries, stages, full_queries, empty_queries, full_keys, empty_keys, full_values, empty_values, end;

    DEVICE_MEMBER explicit SharedLayout(Shared begin) : queries(begin), stages(begin + Q_BYTES) {
        full_queries = stages + STAGES * STAGE_BYTES;
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
    // With fewer queries than a tile, the box has only these, in groups of 8. The rest of the tile is not initialized, and not stored.
    const int rows = (Index)p.rows < ROWS ? ((int)p.rows + 7) / 8 * 8 : ROWS;
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
                load_tile<K, DEPTH, KEYS>(layout.keys(keys.slot), p.k_map, barrier, k_at, (Index)block * KEYS);
                keys.next();
            }
            if (block > 0) {
                const Shared barrier = layout.full_values + values.slot * BARRIER_BYTES;
                wait_for_phase(layout.empty_values + values.slot * BARRIER_BYTES, values.parity ^ 1);
                expect_bytes(barrier, V_BYTES);
                load_tile<V, WIDTH, KEYS>(layout.values(values.slot), p.v_map, barrier, v_at, (Index)(block - 1) * KEYS);
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
                const unsigned pair = to_halves(weights[2 * i], weights[2 * i + 1]);
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

DEVICE constexpr int row_of(int i) { return i / 2 % 2; }
DEVICE int key_of(int i) { return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }

// The state of the online softmax for the two queries of a thread.
struct Softmax {
    Offsets at[2];
    int seen[2];
    float greatest[2], sums[2];

    DEVICE_MEMBER void start(const Parameters& p, const Work& work, Index own) {
#pragma unroll
        for (int row = 0; row < 2; row++) {
            greatest[row] = LOWEST, sums[row] = 0;
            const Index place = own + row * 8;
            at[row] = at_m(p, at_group(p, work.batch), place < (Index)p.rows ? place : work.row);
            seen[row] = visible_keys(p, at[row]);
        }
    }

    // Makes weights of the products with the keys from `key` on. The caller scales the sums so far by `factors`.
    DEVICE_MEMBER void weigh(const Parameters& p, float (&scores)[SCORES], float (&factors)[2], Index key, bool is_partial) {
        float unit = LOG2_E;
        // A finite number is added to hidden scores after they are scaled, so the scale cannot be left to the exponential.
        const float scale = SCALED ? scale_of(p) : 1;
        const bool is_late = SCALED && scale > 0 && (!HIDES || skips_hidden(p));
        if (is_late) {
            unit *= scale;
        } else {
#pragma unroll
            for (int i = 0; i < SCORES; i += 2) {
                const Index own = key + key_of(i);
                if constexpr (SCALED) {
                    scores[i] *= scale;
                    scores[i + 1] *= scale;
                } else {
                    const Offsets place = at_keys(p, at[row_of(i)], own < (Index)p.units ? own : key);
                    find_scores(p, place, reinterpret_cast<float (&)[2]>(scores[i]), own + 1 < (Index)p.units);
                }
            }
        }
        if (is_partial) {
#pragma unroll
            for (int i = 0; i < SCORES; i++) {
                const int row = row_of(i), own = (int)key + key_of(i);
                if (own >= seen[row]) scores[i] = !HIDES || skips_hidden(p) || own >= (int)p.units ? LOWEST : score_of_hidden(p, scores[i]);
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
        const bool is_there = own + row * 8 < (Index)p.rows;
        const Offsets at = at_m(p, at_group(p, batch), is_there ? own + row * 8 : 0);
        const float share = 1 / sum_of_quad(softmax.sums[row]);
#pragma unroll
        for (int block = 0; block < WIDTH / 8; block += 4) {
            float pairs[4][2];
#pragma unroll
            for (int j = 0; j < 8; j++) pairs[j / 2][j % 2] = results[(block + j / 2) * 4 + 2 * row + j % 2] * share;
            transpose_quad(pairs);
            const Index column = (block + threadIdx.x % 4) * 8, left = (Index)p.columns - column;
            if (is_there && left > 0) {
                store_unit(p, at_n(p, at, column), reinterpret_cast<float (&)[8]>(pairs), left < 8 ? (int)left : 8);
            }
        }
    }
}

// Tells the producer that a warp has read a tile.
DEVICE void release(Shared empty) {
    if (threadIdx.x % 32 == 0) arrive_at(empty);
}

DEVICE void consume(const Parameters& p, const SharedLayout& layout, const int* shared_item) {
    const int group = threadIdx.x / 128 - 1, next = group + 1 < CONSUMERS ? group + 1 : 0;
    const Shared queries = layout.queries + group * 64 * ROW_BYTES;
    Ring keys, values;
    Softmax softmax;
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
        if (work.row + group * 64 >= (Index)p.rows) {
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
            wait_for_phase(layout.full_keys + keys.slot * BARRIER_BYTES, keys.parity);
            begin_turn();
            begin_products();
            begin_scores(scores, queries, layout.keys(keys.slot));
            end_turn();
            wait_for_products<0>();
            release_keys(0);
            softmax.weigh(p, scores, factors, 0, is_partial(0));
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
                wait_for_products<1>();
                release_keys(block);
                softmax.weigh(p, scores, factors, (Index)block * KEYS, is_partial((Index)block * KEYS));
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
        store_results(p, softmax, results, work.batch, work.row + own);
    }
    // The last warpgroup has released a turn, for which nobody waited yet.
    if (group == 0) begin_turn();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) kernel(const __grid_constant__ Parameters p) {
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
    begin_kernel();
    int* const item = (int*)((char*)memory + (layout.end - shared_address(memory)));
    if (threadIdx.x < 128) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce(p, layout, item);
    } else {
        take_registers<CONSUMER_REGISTERS>();
        consume(p, layout, item);
    }
}

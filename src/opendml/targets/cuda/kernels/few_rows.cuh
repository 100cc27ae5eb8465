// Attention (a softmax between products) of up to ROWS queries that share many keys, as in decoding with a cache. It is bound by memory:
// keys and values are read once, in their own type, and multiplied by ordinary arithmetic.
//
// A block takes in a slice of the keys of a matrix, STEP keys at a time. LANES lanes of a warp (a team) share a key: each has units of
// K_UNIT and V_UNIT neighbours, which are copied K_COPY and V_COPY bytes at a time. A team takes in KEYS keys at a time, one score of each
// query for a lane. Keys and values go through a ring of STAGES in shared memory by asynchronous copies. A thread reads what it copied
// itself, so that warps never wait for each other.
//
// Each team has its own greatest scores and sums. They are merged in the order of teams, of warps and of slices. With SPLIT, slices leave
// their sums in global memory, and the last block of a matrix merges them.
//
// A value that is infinite, or so large that sums overflow, gives a result that is not finite. Then the block that stores results takes in
// all keys once more, with weights that are at most one over the number of keys, and 0 only where the score makes them so. With BLIND,
// queries whose weights are NaN get another weight for all keys there.

constexpr int WARPS = THREADS / 32, TEAMS = 32 / LANES, STEP = WARPS * TEAMS * KEYS, LANES_OF_KEY = LANES / KEYS;
constexpr int K_BYTES = K_UNIT * sizeof(KeyElement), V_BYTES = V_UNIT * sizeof(ValueElement);
constexpr int V_OFFSET = 32 * KEYS * K_PARTS * K_BYTES, STAGE_BYTES = V_OFFSET + 32 * KEYS * V_PARTS * V_BYTES;  // of a warp
constexpr int DEPTH = K_PARTS * LANES * K_UNIT, WIDTH = V_PARTS * LANES * V_UNIT, OWN_COLUMNS = V_PARTS * V_UNIT;
constexpr int STATE = WIDTH + 4;  // sums of a query, its greatest score, the sum of its weights, and two that are not used
constexpr float LEAST_WEIGHT = 1.4e-45f;
static_assert(LANES % KEYS == 0 && STAGES > 1);
#define LOWEST __int_as_float(0xff800000)

DEVICE float greater(float a, float b) { return fmaxf(a, b); }  // the other one if one is NaN

DEVICE float weight_of(float x) { return NARROW ? power_of_two(x * 1.44269504f) : exact_exponential(x); }

// Returns the number to which scores are relative. If all are -infinity, all weights are 0.
DEVICE float origin_of(float greatest) { return greatest == LOWEST ? 0 : greatest; }

DEVICE int lane_of_team() { return threadIdx.x % LANES; }
DEVICE int team_of_warp() { return threadIdx.x % 32 / LANES; }

// The state of a team.
struct State {
    float greatest[ROWS], sums[ROWS], results[ROWS][OWN_COLUMNS];

    DEVICE_MEMBER void start() {
#pragma unroll
        for (int row = 0; row < ROWS; row++) {
            greatest[row] = LOWEST, sums[row] = 0;
#pragma unroll
            for (int i = 0; i < OWN_COLUMNS; i++) results[row][i] = 0;
        }
    }
};

// Returns a key, or the first one for those behind the end.
DEVICE Index key_within(Index key, Index end) { return key < end ? key : 0; }

// The queries of a block, and how keys are weighed.
struct Queries {
    Offsets block;
    Offsets at[ROWS];
    const float* elements;  // DEPTH of each
    const float* totals;    // the sums of weights, when all keys are taken in again
    bool again;
    float unit;
    KeyShared key;  // numbers that are the same for all elements
    ValueShared value;

    DEVICE_MEMBER bool is_blind(int row) const { return BLIND && again && !(totals[row] > 0); }
};

// Starts the copies of a unit, of WIDTH_OF_COPY bytes each; zeros if there is nothing to read.
template <int BYTES, int WIDTH_OF_COPY>
DEVICE void copy_unit(char* to, const char* from, bool reads) {
#pragma unroll
    for (int i = 0; i < BYTES; i += WIDTH_OF_COPY) copy_async<WIDTH_OF_COPY>(to + i, from + i, reads);
}

// Copies the keys from `key` on of a team, and their values, to a stage; zeros for those behind the end.
DEVICE void begin_step(const Parameters& p, const Offsets& at, char* stage, Index key, Index end) {
    char* const keys = stage + threadIdx.x % 32 * K_BYTES;
    char* const values = stage + V_OFFSET + threadIdx.x % 32 * V_BYTES;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const Index own = key + i * TEAMS + team_of_warp();
        const bool is_there = own < end;
        const Offsets place = at_keys(p, at, is_there ? own : 0);
#pragma unroll
        for (int part = 0; part < K_PARTS; part++) {
            const Index column = (part * LANES + lane_of_team()) * K_UNIT;
            const bool reads = is_there && column < (Index)p.depth;
            const char* const from = place_of_key(p, at_depth(p, place, reads ? column : 0));
            copy_unit<K_BYTES, K_COPY>(keys + (i * K_PARTS + part) * 32 * K_BYTES, from, reads);
        }
#pragma unroll
        for (int part = 0; part < V_PARTS; part++) {
            const Index column = (part * LANES + lane_of_team()) * V_UNIT;
            const bool reads = is_there && column < (Index)p.n;
            const char* const from = place_of_value(p, at_n(p, place, reads ? column : 0));
            copy_unit<V_BYTES, V_COPY>(values + (i * V_PARTS + part) * 32 * V_BYTES, from, reads);
        }
    }
}

// Adds up the products of the lanes of a team, which get the sum of one key each.
DEVICE float sum_of_team(float (&sums)[KEYS]) {
#pragma unroll
    for (int distance = LANES / 2, count = KEYS; distance > 0; distance /= 2) {
        if (count > 1) {
            count /= 2;
            const bool is_upper = threadIdx.x & distance;
#pragma unroll
            for (int i = 0; i < count; i++) {
                const float sent = is_upper ? sums[i] : sums[i + count], kept = is_upper ? sums[i + count] : sums[i];
                sums[i] = kept + __shfl_xor_sync(~0u, sent, distance);
            }
        } else {
            sums[0] += __shfl_xor_sync(~0u, sums[0], distance);
        }
    }
    return sums[0];
}

// Returns the products of all queries with the key of a lane.
DEVICE void multiply(const Parameters& p, float (&products)[ROWS], const char* stage, const Queries& queries, Index key, Index end) {
    float sums[ROWS][KEYS];
#pragma unroll
    for (int i = 0; i < ROWS * KEYS; i++) sums[i / KEYS][i % KEYS] = 0;
#pragma unroll
    for (int part = 0; part < K_PARTS; part++) {
        float keys[KEYS][K_UNIT];
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            Vector<KeyElement, K_UNIT> unit;
            load(unit, stage + ((i * K_PARTS + part) * 32 + threadIdx.x % 32) * K_BYTES);
            const Offsets place = at_keys(p, queries.block, key_within(key + i * TEAMS + team_of_warp(), end));
            const Index column = (part * LANES + lane_of_team()) * K_UNIT;
#pragma unroll
            for (int j = 0; j < K_UNIT; j++) {
                const Offsets at = at_depth(p, place, column + j < (Index)p.depth ? column + j : 0);
                keys[i][j] = key_of(p, queries.key, at, unit.data[j]);
            }
        }
#pragma unroll
        for (int row = 0; row < ROWS; row++) {
            Vector<float, K_UNIT> query;
            load(query, (const char*)(queries.elements + row * DEPTH + (part * LANES + lane_of_team()) * K_UNIT));
#pragma unroll
            for (int i = 0; i < KEYS; i++) {
#pragma unroll
                for (int j = 0; j < K_UNIT; j++) sums[row][i] = multiply_add(query.data[j], keys[i][j], sums[row][i]);
            }
        }
    }
#pragma unroll
    for (int row = 0; row < ROWS; row++) products[row] = sum_of_team(sums[row]);
}

// Makes the weights of a lane's key of its products, and the factors of the sums so far.
DEVICE void weigh(
    const Parameters& p, State& state, const Queries& queries, float (&weights)[ROWS], float (&factors)[ROWS], Index key, Index end) {
    const Index own = key + lane_of_team() / LANES_OF_KEY * TEAMS + team_of_warp();
    const bool is_there = own < end;
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
        const bool is_blind = queries.is_blind(row);
        const float found = is_blind ? 0 : score(p, at_keys(p, queries.at[row], is_there ? own : 0), weights[row]);
        const float own_score = is_there ? found : LOWEST;
        float greatest = greater(own_score, state.greatest[row]);
#pragma unroll
        for (int distance = LANES / 2; distance >= LANES_OF_KEY; distance /= 2) {
            greatest = greater(__shfl_xor_sync(~0u, greatest, distance), greatest);
        }
        const float origin = origin_of(greatest);
        factors[row] = weight_of(state.greatest[row] - origin);
        weights[row] = weight_of(own_score - origin);
        if (queries.again) {
            if (weights[row] > 0) weights[row] = fmaxf(weights[row] * queries.unit, LEAST_WEIGHT);
            if (is_blind) weights[row] = is_there ? blind_weight(p, queries.at[row]) : 0;
        }
        state.greatest[row] = greatest;
        state.sums[row] = multiply_add(state.sums[row], factors[row], weights[row]);
    }
}

// Adds the values of a stage by their weights. Those of a step are added to one another before they are added to the others.
DEVICE void add_weighted(
    const Parameters& p, State& state, const Queries& queries, const float (&weights)[ROWS], const float (&factors)[ROWS],
    const char* stage, Index key, Index end) {
#pragma unroll
    for (int part = 0; part < V_PARTS; part++) {
        float values[KEYS][V_UNIT];
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            Vector<ValueElement, V_UNIT> unit;
            load(unit, stage + V_OFFSET + ((i * V_PARTS + part) * 32 + threadIdx.x % 32) * V_BYTES);
            const Offsets place = at_keys(p, queries.block, key_within(key + i * TEAMS + team_of_warp(), end));
            const Index column = (part * LANES + lane_of_team()) * V_UNIT;
#pragma unroll
            for (int j = 0; j < V_UNIT; j++) {
                const Offsets at = at_n(p, place, column + j < (Index)p.n ? column + j : 0);
                values[i][j] = value_of(p, queries.value, at, unit.data[j]);
            }
        }
#pragma unroll
        for (int row = 0; row < ROWS; row++) {
            float sums[V_UNIT];
#pragma unroll
            for (int j = 0; j < V_UNIT; j++) sums[j] = 0;
#pragma unroll
            for (int i = 0; i < KEYS; i++) {
                const float weight = __shfl_sync(~0u, weights[row], i * LANES_OF_KEY, LANES);
#pragma unroll
                for (int j = 0; j < V_UNIT; j++) sums[j] = multiply_add(weight, values[i][j], sums[j]);
            }
#pragma unroll
            for (int j = 0; j < V_UNIT; j++) {
                float& result = state.results[row][part * V_UNIT + j];
                result = multiply_add(result, factors[row], sums[j]);
            }
        }
    }
}

DEVICE Index first_key_of_warp(Index first) { return first + threadIdx.x / 32 * (TEAMS * KEYS); }
DEVICE char* ring_of_warp(char* rings) { return rings + threadIdx.x / 32 * (STAGES * STAGE_BYTES); }

// Begins to copy the first keys of a range.
DEVICE void begin_keys(const Parameters& p, const Offsets& at, char* rings, Index first, Index end) {
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        begin_step(p, at, ring_of_warp(rings) + i * STAGE_BYTES, first_key_of_warp(first) + i * STEP, end);
        commit_copies();
    }
}

// Takes in a range of keys, whose first ones are being copied.
DEVICE void take_in(const Parameters& p, const Offsets& at, State& state, const Queries& queries, char* rings, Index first, Index end) {
    char* const ring = ring_of_warp(rings);
    int slot = 0;
    state.start();
#pragma unroll 1
    for (Index key = first_key_of_warp(first); key < end; key += STEP) {
        wait_for_copies<STAGES - 2>();
        const int next = slot > 0 ? slot - 1 : STAGES - 1;
        begin_step(p, at, ring + next * STAGE_BYTES, key + (STAGES - 1) * STEP, end);
        commit_copies();
        const char* const stage = ring + slot * STAGE_BYTES;
        float weights[ROWS], factors[ROWS];
        multiply(p, weights, stage, queries, key, end);
        weigh(p, state, queries, weights, factors, key, end);
        add_weighted(p, state, queries, weights, factors, stage, key, end);
        slot = slot + 1 < STAGES ? slot + 1 : 0;
    }
    wait_for_copies<0>();
}

// Merges the states of the teams of each warp, and stores them.
DEVICE void store_states(State& state, float* states) {
    float* const own = states + threadIdx.x / 32 * (ROWS * STATE);
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
#pragma unroll
        for (int distance = LANES / 2; distance >= LANES_OF_KEY; distance /= 2) {
            state.sums[row] += __shfl_xor_sync(~0u, state.sums[row], distance);
        }
#pragma unroll
        for (int distance = LANES; distance < 32; distance *= 2) {
            const float greatest = greater(__shfl_xor_sync(~0u, state.greatest[row], distance), state.greatest[row]);
            const float factor = weight_of(state.greatest[row] - origin_of(greatest));
            state.greatest[row] = greatest;
            state.sums[row] *= factor;
            state.sums[row] += __shfl_xor_sync(~0u, state.sums[row], distance);
#pragma unroll
            for (int i = 0; i < OWN_COLUMNS; i++) {
                state.results[row][i] *= factor;
                state.results[row][i] += __shfl_xor_sync(~0u, state.results[row][i], distance);
            }
        }
        if (threadIdx.x % 32 < LANES) {
#pragma unroll
            for (int i = 0; i < OWN_COLUMNS; i++) {
                own[row * STATE + (i / V_UNIT * LANES + lane_of_team()) * V_UNIT + i % V_UNIT] = state.results[row][i];
            }
        }
        if (threadIdx.x % 32 == 0) own[row * STATE + WIDTH] = state.greatest[row], own[row * STATE + WIDTH + 1] = state.sums[row];
    }
}

// Shared memory for merging states: of each query the factors of `count` states, its greatest score and the sum of its weights.
struct Merging {
    float *factors, *greatest, *totals;

    DEVICE_MEMBER explicit Merging(float* memory) : factors(memory), greatest(memory + ROWS * MOST_STATES), totals(greatest + ROWS) {}

    // Finds all of it, a query by each warp; `read` returns the greatest score and the sum of the weights of a query in a state.
    template <typename Read>
    DEVICE_MEMBER void find(const Parameters& p, int count, Read read) const {
        constexpr int OWN = MOST_STATES / 32;
#pragma unroll 1
        for (int row = threadIdx.x / 32; row < (int)p.m; row += WARPS) {
            Vector<float, 2> limits[OWN];
            float highest = LOWEST, total = 0;
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const int state = i * 32 + threadIdx.x % 32;
                limits[i].data[0] = LOWEST, limits[i].data[1] = 0;
                if (state < count) limits[i] = read(state, row);
                highest = greater(limits[i].data[0], highest);
            }
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) highest = greater(__shfl_xor_sync(~0u, highest, distance), highest);
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const int state = i * 32 + threadIdx.x % 32;
                const float factor = weight_of(limits[i].data[0] - origin_of(highest));
                if (state < count) factors[row * count + state] = factor, total = multiply_add(limits[i].data[1], factor, total);
            }
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) total += __shfl_xor_sync(~0u, total, distance);
            if (threadIdx.x % 32 == 0) greatest[row] = highest, totals[row] = total;
        }
        __syncthreads();
    }
};

// Calls body(row, column) for each fourth column of all queries, by one of the threads.
template <typename Body>
DEVICE void each_quad(const Parameters& p, Body body) {
#pragma unroll 1
    for (int at = threadIdx.x; at < (int)p.m * (WIDTH / 4); at += THREADS) {
        const int column = at % (WIDTH / 4) * 4;
        if ((Index)column < (Index)p.n) body(at / (WIDTH / 4), column);
    }
}

// Merges four columns of `count` states in their order; `read` returns four numbers of one.
template <typename Read>
DEVICE void merge(float (&sums)[4], int count, const float* factors, Read read) {
#pragma unroll
    for (int j = 0; j < 4; j++) sums[j] = 0;
#pragma unroll 8
    for (int i = 0; i < count; i++) {
        const Vector<float, 4> quad = read(i);
#pragma unroll
        for (int j = 0; j < 4; j++) sums[j] = multiply_add(quad.data[j], factors[i], sums[j]);
    }
}

// Returns whether the slices of a matrix are done, for the last one.
DEVICE bool is_last_slice(const Parameters& p, Index matrix) {
    __shared__ bool is_last;
    const unsigned last = (unsigned)p.run_items.count - 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicInc((unsigned*)p.counters + matrix, last) == last;
    __syncthreads();
    if (is_last) __threadfence();
    return is_last;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 memory[];
    const Index matrix = divide((Index)blockIdx.x, p.run_items), slice = (Index)blockIdx.x - matrix * (Index)p.run_items.count;
    const Index all = (Index)p.keys, first = slice * (Index)p.slice_keys, last = first + (Index)p.slice_keys, end = last < all ? last : all;
    float* const elements = (float*)memory;
    float* const totals = elements + ROWS * DEPTH;
    char* const rings = (char*)(totals + (ROWS + 3) / 4 * 4);
    float* const states = (float*)rings;
    const Offsets at = at_group(p, matrix);
    begin_keys(p, at, rings, first, end);
    Queries queries;
    queries.block = at, queries.elements = elements, queries.totals = totals, queries.again = false, queries.unit = 1;
    queries.key = shared_of_key(p, at), queries.value = shared_of_value(p, at);
#pragma unroll
    for (int row = 0; row < ROWS; row++) queries.at[row] = at_m(p, at, row < (int)p.m ? row : 0);
#pragma unroll 4
    for (int i = threadIdx.x; i < ROWS * DEPTH; i += THREADS) {
        const int row = i / DEPTH, column = i % DEPTH;
        const bool is_there = row < (int)p.m && (Index)column < (Index)p.depth;
        elements[i] = is_there ? query_of(p, at_depth(p, at_m(p, at, row), column)) : 0;
    }
    __syncthreads();
    const Merging merging(states + WARPS * ROWS * STATE);
    bool repeats = false;
    do {
        State state;
        take_in(p, at, state, queries, rings, queries.again ? 0 : first, queries.again ? all : end);
        __syncthreads();
        store_states(state, states);
        __syncthreads();
        bool is_finished = true;
        const auto finish = [&](int row, int column, const float (&sums)[4]) {
            const float share = queries.is_blind(row) ? 1 : 1 / merging.totals[row];
            const Offsets place = at_m(p, at, row);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if ((Index)(column + j) >= (Index)p.n) continue;
                const float result = sums[j] * share;
                is_finished = is_finished && is_finite(result);
                store_results(p, at_n(p, place, column + j), result);
            }
        };
        const auto merge_warps = [&](auto body) {
            merging.find(p, WARPS, [&](int warp, int row) {
                Vector<float, 2> limits;
                load(limits, (const char*)(states + (warp * ROWS + row) * STATE + WIDTH));
                return limits;
            });
            each_quad(p, [&](int row, int column) {
                float sums[4];
                merge(sums, WARPS, merging.factors + row * WARPS, [&](int warp) {
                    Vector<float, 4> quad;
                    load(quad, (const char*)(states + (warp * ROWS + row) * STATE + column));
                    return quad;
                });
                body(row, column, sums);
            });
        };
        if (SPLIT && !queries.again) {
            const int slices = (int)p.run_items.count;
            const long long page = (long long)(int)p.m * STATE;
            float* const own = (float*)p.scratch + (long long)blockIdx.x * page;
            merge_warps([&](int row, int column, const float (&sums)[4]) {
                Vector<float, 4> quad;
#pragma unroll
                for (int j = 0; j < 4; j++) quad.data[j] = sums[j];
                store((char*)(own + row * STATE + column), quad);
                if (column == 0) own[row * STATE + WIDTH] = merging.greatest[row], own[row * STATE + WIDTH + 1] = merging.totals[row];
            });
            if (!is_last_slice(p, matrix)) return;
            const float* const pages = (const float*)p.scratch + (long long)matrix * slices * page;
            merging.find(p, slices, [&](int slice, int row) {
                unsigned words[2];
                load_uncached(words, pages + slice * page + row * STATE + WIDTH);
                Vector<float, 2> limits;
                memcpy(&limits, words, sizeof(limits));
                return limits;
            });
            each_quad(p, [&](int row, int column) {
                float sums[4];
                merge(sums, slices, merging.factors + row * slices, [&](int slice) {
                    unsigned long long words[2];
                    load_uncached(words, pages + slice * page + row * STATE + column);
                    Vector<float, 4> quad;
                    memcpy(&quad, words, sizeof(quad));
                    return quad;
                });
                finish(row, column, sums);
            });
        } else {
            merge_warps(finish);
        }
        if (!queries.again && threadIdx.x < (int)p.m) totals[threadIdx.x] = merging.totals[threadIdx.x];
        repeats = __syncthreads_or(!is_finished) && !queries.again;
        if (repeats) {
            queries.again = true;
            queries.unit = __int_as_float((95 + __clz((int)p.keys)) << 23);  // A power of two, at most one over the number of keys.
            begin_keys(p, at, rings, 0, all);
        }
    } while (repeats);
}

// States of reductions on their way between threads.

template <typename States, typename Move>
DEVICE States moved(const States& mine, Move move) {
    unsigned long long words[sizeof(States) / 8];
    memcpy(words, &mine, sizeof(States));
#pragma unroll
    for (int i = 0; i < sizeof(States) / 8; i++) words[i] = move(words[i]);
    States theirs;
    memcpy(&theirs, words, sizeof(States));
    return theirs;
}

// The state of the lane that is so far ahead, or of a certain lane, of WIDTH neighbours.
template <int WIDTH, typename States>
DEVICE States from_ahead(const States& mine, int distance) {
    return moved(mine, [&](unsigned long long word) { return __shfl_down_sync(~0u, word, distance, WIDTH); });
}

template <int WIDTH, typename States>
DEVICE States from_lane(const States& mine, int lane) {
    return moved(mine, [&](unsigned long long word) { return __shfl_sync(~0u, word, lane, WIDTH); });
}

// Puts the states of the threads of each group together, in one order for all of them: of NEAR threads of a warp, TX apart, and of
// WARPS. Those of several warps go through shared memory, each stage's in a room of its own.
template <int NEAR, int TX, int WARPS, int LANES, typename Stage, typename States>
DEVICE void combine(Stage stage, States (&mine)[LANES]) {
    constexpr int WIDTH = NEAR * TX;
#pragma unroll
    for (int lane = 0; lane < LANES; lane++) {
#pragma unroll
        for (int distance = NEAR / 2; distance > 0; distance /= 2) {
            merge(stage, mine[lane], from_ahead<WIDTH>(mine[lane], distance * TX));
        }
        if constexpr (WARPS == 1 && NEAR > 1) mine[lane] = from_lane<WIDTH>(mine[lane], threadIdx.x % TX);
    }
    if constexpr (WARPS > 1) {
        __shared__ States room[WARPS][TX][LANES];
        const int tx = threadIdx.x % TX;
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) {
            if (threadIdx.x % 32 < TX) room[threadIdx.x / 32][tx][lane] = mine[lane];
        }
        __syncthreads();
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) {
            mine[lane] = room[0][tx][lane];
#pragma unroll
            for (int warp = 1; warp < WARPS; warp++) merge(stage, mine[lane], room[warp][tx][lane]);
        }
    }
}

// States of reductions on their way between the lanes of a warp.

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

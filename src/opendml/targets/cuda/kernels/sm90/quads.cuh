// Transposes among the four lanes of a quad: lane q gets the q-th pair of each lane.
template <typename T>
DEVICE void transpose_quad(T (&pairs)[4][2]) {
    const int lane = threadIdx.x % 4;
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2) {
        const bool is_high = lane & bit;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & bit) continue;
#pragma unroll
            for (int j = 0; j < 2; j++) {
                T &low = pairs[i][j], &high = pairs[i | bit][j];
                const T found = __shfl_xor_sync(~0u, is_high ? low : high, bit);
                if (is_high) low = found;
                else high = found;
            }
        }
    }
}

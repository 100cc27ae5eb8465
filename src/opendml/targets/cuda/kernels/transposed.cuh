// Element-wise, with some operands contiguous along another loop than the results: those go through a square in shared memory.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    constexpr int STEP = THREADS / SIDE;
    constexpr int PITCH = SIDE + (sizeof(Held<1>) < 4 ? 4 / sizeof(Held<1>) : 1);  // columns lie in different banks
    __shared__ Held<1> square[SIDE][PITCH];
    const Index tile = blockIdx.x, row = divide(tile, p.tiles);
    const Index across = tile - row * (Index)p.tiles.count;
    const Index group = divide(row, p.inner), down = row - group * (Index)p.inner.count;
    const Offsets at = at_group(p, group);
    const Index x0 = across * SIDE, y0 = down * SIDE;
    const int fast = threadIdx.x % SIDE, slow = threadIdx.x / SIDE;
#pragma unroll
    for (int k = 0; k < SIDE; k += STEP) {
        const Index x = x0 + slow + k, y = y0 + fast;
        if (x < (Index)p.columns && y < (Index)p.units) {
            load_held<1>(square[slow + k][fast], p, in_row<1>(p, at_row(p, at, y), x));
        }
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < SIDE; k += STEP) {
        const Index x = x0 + fast, y = y0 + slow + k;
        if (x >= (Index)p.columns || y >= (Index)p.units) continue;
        const Offsets here = in_row<1>(p, at_row(p, at, y), x);
        Late<1> late;
        Outputs<1> result;
        load_late<1>(late, p, here);
        evaluate<1>(result, p, square[fast][slow + k], late, Kept(), 0);
        store_outputs<1>(p, here, result);
    }
}

// Element-wise kernels of which some operands are contiguous along another loop than the results. These operands go through a square in
// shared memory. Loads and stores of global memory are whole units, and accesses to shared memory single elements.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    constexpr int UNITS_ACROSS = SIDE / VECTOR, STEP = THREADS / UNITS_ACROSS, ROUNDS = SIDE / STEP;
    // Neighbours of a column, or the first elements of units, lie in different banks.
    constexpr int PITCH = SIDE + (VECTOR == 1 && sizeof(CollectiveInputs<1>) < 4 ? 4 / sizeof(CollectiveInputs<1>) : 1);
    __shared__ CollectiveInputs<1> square[SIDE][PITCH];
    const Index tile = blockIdx.x, row = divide(tile, p.tiles_across);
    const Index across = tile - row * (Index)p.tiles_across.count;
    const Index group = divide(row, p.tiles_down), down = row - group * (Index)p.tiles_down.count;
    const Offsets at = at_group(p, group);
    const Index x0 = across * SIDE, y0 = down * SIDE;
    const int fast = threadIdx.x % UNITS_ACROSS * VECTOR, slow = threadIdx.x / UNITS_ACROSS;
    CollectiveInputs<VECTOR> units[ROUNDS];
#pragma unroll
    for (int k = 0; k < ROUNDS; k++) {
        const Index x = x0 + slow + k * STEP, y = y0 + fast;
        if (x < (Index)p.width && y < (Index)p.height) {
            load_collective_inputs<VECTOR>(units[k], p, in_row<1>(p, at_row(p, at, y), x));
        }
    }
#pragma unroll
    for (int k = 0; k < ROUNDS; k++) {
#pragma unroll
        for (int lane = 0; lane < VECTOR; lane++) copy_lane(square[slow + k * STEP][fast + lane], 0, units[k], lane);
    }
    __syncthreads();
#pragma unroll(VECTOR > 1 ? 2 : 4)
    for (int k = 0; k < ROUNDS; k++) {
        const Index x = x0 + fast, y = y0 + slow + k * STEP;
        if (x >= (Index)p.width || y >= (Index)p.height) continue;
        const Offsets here = in_row<1>(p, at_row(p, at, y), x);
        CollectiveInputs<VECTOR> unit;
#pragma unroll
        for (int lane = 0; lane < VECTOR; lane++) copy_lane(unit, lane, square[fast + lane][slow + k * STEP], 0);
        ResultInputs<VECTOR> result_inputs;
        Outputs<VECTOR> result;
        load_result_inputs<VECTOR>(result_inputs, p, here);
#pragma unroll
        for (int lane = 0; lane < VECTOR; lane++) evaluate<VECTOR>(result, p, unit, result_inputs, Kept(), lane);
        store_outputs<VECTOR>(p, here, result);
    }
}

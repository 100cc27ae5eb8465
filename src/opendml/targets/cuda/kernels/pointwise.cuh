// Element-wise: a thread takes UNITS units of VECTOR elements, a block's width apart, and loads them all first.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    const Index first = (Index)blockIdx.x * (THREADS * UNITS) + threadIdx.x;
    Late<VECTOR> late[UNITS];
    Offsets at[UNITS];
    bool full[UNITS];
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        const Index unit = first + k * THREADS;
        full[k] = false;
        if (unit >= (Index)p.units) continue;
        Index row = 0, inside = unit;
        if constexpr (GROUPS > 0) {
            row = divide(unit, p.inner);
            inside = unit - row * (Index)p.inner.count;
        }
        at[k] = in_row<VECTOR>(p, at_group(p, row), inside);
        full[k] = inside < (Index)p.full;
        if (full[k]) {
            load_late<VECTOR>(late[k], p, at[k]);
        } else if constexpr (VECTOR > 1) {
            // The last unit of a row that is not a multiple of the vector.
#pragma unroll 1
            for (int lane = 0; lane < (int)p.rest; lane++) {
                const Offsets here = in_row<1>(p, at[k], lane);
                Held<1> nothing;
                Late<1> one;
                Outputs<1> result;
                load_late<1>(one, p, here);
                evaluate<1>(result, p, nothing, one, Kept(), 0);
                store_outputs<1>(p, here, result);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        if (!full[k]) continue;
        Held<VECTOR> nothing;
        Outputs<VECTOR> result;
#pragma unroll
        for (int lane = 0; lane < VECTOR; lane++) evaluate<VECTOR>(result, p, nothing, late[k], Kept(), lane);
        store_outputs<VECTOR>(p, at[k], result);
    }
}

// Element-wise: a thread takes UNITS units of VECTOR elements, a block's width apart, or (ACROSS) one after the other
// along a loop of rows, and loads them all first.

// The elements after the last full unit of a row.
DEVICE void compute_rest(const Parameters& p, const Offsets& at) {
#pragma unroll 1
    for (int lane = 0; lane < (int)p.rest; lane++) {
        const Offsets here = in_row<1>(p, at, lane);
        CollectiveInputs<1> nothing;
        ResultInputs<1> one;
        Outputs<1> result;
        load_result_inputs<1>(one, p, here);
        evaluate<1>(result, p, nothing, one, Kept(), 0);
        store_outputs<1>(p, here, result);
    }
}

DEVICE void compute_unit(const Parameters& p, const Offsets& at, const ResultInputs<VECTOR>& result_inputs) {
    CollectiveInputs<VECTOR> nothing;
    Outputs<VECTOR> result;
#pragma unroll
    for (int lane = 0; lane < VECTOR; lane++) evaluate<VECTOR>(result, p, nothing, result_inputs, Kept(), lane);
    store_outputs<VECTOR>(p, at, result);
}

// Finds a unit, and says where in its row it is.
DEVICE Index find_unit(Offsets& at, const Parameters& p, Index unit) {
    Index row = 0, inside = unit;
    if constexpr (GROUPS > 0) {
        row = divide(unit, p.row_length);
        inside = unit - row * (Index)p.row_length.count;
    }
    at = in_row<VECTOR>(p, at_group(p, row), inside);
    return inside;
}

DEVICE void compute_across(const Parameters& p, Index unit) {
    Offsets first;
    if (find_unit(first, p, unit) < (Index)p.full_units) {
        ResultInputs<VECTOR> result_inputs[UNITS];
        Offsets at[UNITS];
#pragma unroll
        for (int k = 0; k < UNITS; k++) {
            at[k] = at_row(p, first, k);
            load_result_inputs<VECTOR>(result_inputs[k], p, at[k]);
        }
#pragma unroll
        for (int k = 0; k < UNITS; k++) compute_unit(p, at[k], result_inputs[k]);
    } else if constexpr (VECTOR > 1) {
#pragma unroll 1
        for (int k = 0; k < UNITS; k++) compute_rest(p, at_row(p, first, k));
    }
}

DEVICE void compute_apart(const Parameters& p, Index first) {
    ResultInputs<VECTOR> result_inputs[UNITS];
    Offsets at[UNITS];
    bool full[UNITS];
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        const Index unit = first + k * THREADS;
        full[k] = false;
        if (unit >= (Index)p.all_units) continue;
        full[k] = find_unit(at[k], p, unit) < (Index)p.full_units;
        if (full[k]) {
            load_result_inputs<VECTOR>(result_inputs[k], p, at[k]);
        } else if constexpr (VECTOR > 1) {
            compute_rest(p, at[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        if (full[k]) compute_unit(p, at[k], result_inputs[k]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    if constexpr (ACROSS) {
        const Index unit = (Index)blockIdx.x * THREADS + threadIdx.x;
        if (unit < (Index)p.all_units) compute_across(p, unit);
    } else {
        compute_apart(p, (Index)blockIdx.x * (THREADS * UNITS) + threadIdx.x);
    }
}

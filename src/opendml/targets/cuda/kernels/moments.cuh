// Means and variances: sums of distances from a shift, and of their squares.
//
// At first, distances from the mean of the group's first unit are summed in the elements' own type, thread by thread and then
// lane by lane: few additions in a row, so that little is lost; what warps have found is added in FLOAT64. That is exact enough
// unless the shift is far from the mean, beside the deviation. Then the sums are taken again about the mean, and if they leave the range
// of FLOAT32, in FLOAT64.

struct Moments {
    double sum, squares;
};

constexpr int EXACT = 2;  // the attempt in FLOAT64

DEVICE void add(Moments& to, double sum, double squares) {
    to.sum += sum;
    to.squares += squares;
}

template <typename T>
DEVICE T finite_or_zero(T value) {
    return is_finite(value) ? value : T(0);
}

// The mean of `value(0)` to `value(COUNT - 1)`, or zero where it is not finite.
template <int COUNT, typename Value>
DEVICE Quick shift_from(Value value) {
    Quick sum = value(0);
#pragma unroll
    for (int i = 1; i < COUNT; i++) sum += value(i);
    return finite_or_zero(sum * Quick(1.0 / COUNT));
}

// Whether sums are exact enough; `share` is one over the number of elements. In few elements, rounding errors do not make up for
// each other.
DEVICE bool trusted(const Moments& moments, double share) {
    const double variance = (moments.squares - moments.sum * moments.sum * share) * share;
    const double square = moments.squares * share, most = NARROW || share <= 1.0 / (COLUMNS ? 64 : 1024) ? 8 : 2;
    return (square <= 1e34 && square >= 1e-34 && most * variance >= square) || (moments.sum == 0 && moments.squares == 0);
}

// Adds `value(k, lane)` for the units k below UNITS that are `inside(k)` and lanes FROM..TO.
template <int UNITS, int FROM, int TO, typename T, typename Inside, typename Value>
DEVICE void add_units(T& sum, T& squares, Inside inside, T shift, Value value) {
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        if (!inside(k)) continue;
        T part = T(value(k, FROM)) - shift, part_squares = TO - FROM == 1 ? squares : T(0);
        part_squares = multiply_add(part, part, part_squares);
#pragma unroll
        for (int lane = FROM + 1; lane < TO; lane++) {
            const T distance = T(value(k, lane)) - shift;
            part += distance;
            part_squares = multiply_add(distance, distance, part_squares);
        }
        sum += part;
        if constexpr (TO - FROM == 1) squares = part_squares;
        else squares += part_squares;
    }
}

// Adds over the lanes of a warp, or of aligned parts of FAR lanes, whose numbers differ by multiples of NEAR: all get the sum.
template <int NEAR, int FAR, typename T>
DEVICE T add_lanes(T value) {
#pragma unroll
    for (int distance = FAR / 2; distance >= NEAR; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
    return value;
}

DEVICE Statistics statistics(const Moments& moments, double shift, double share) {
    const double average = moments.sum * share;
    const double variance = (moments.squares - moments.sum * average) * share;
    return {shift + average, variance < 0 ? 0 : variance};
}

// The moments of what SPAN neighbouring lanes of a warp hold.
template <typename T, int UNITS, int TO, int SPAN, typename Inside, typename Value>
DEVICE Moments warp_moments(Inside inside, double shift, Value value) {
    T sum = 0, squares = 0;
    add_units<UNITS, 0, TO>(sum, squares, inside, T(shift), value);
    return {double(add_lanes<1, SPAN>(sum)), double(add_lanes<1, SPAN>(squares))};
}

// The statistics of a group that is held by SPAN neighbouring lanes of a warp; all lanes must take part.
template <int UNITS, int TO, int SPAN, typename Inside, typename Value>
DEVICE Statistics warp_statistics(Inside inside, double shift, double share, Value value) {
    Statistics result;
    bool done = false;
    for (int attempt = FIRST_ATTEMPT; __any_sync(~0u, !done); attempt++) {
        const Moments moments = attempt < EXACT ? warp_moments<Quick, UNITS, TO, SPAN>(inside, shift, value)
                                                : warp_moments<double, UNITS, TO, SPAN>(inside, shift, value);
        if (done) continue;
        result = statistics(moments, shift, share);
        done = attempt == EXACT || trusted(moments, share);
        shift = finite_or_zero(double(Quick(result.mean)));
    }
    return result;
}

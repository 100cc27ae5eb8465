// Means and variances: sums of distances from a shift, and of their squares.
//
// A thread holds a few elements. It sums their distances from the first of them in the elements' own type, then the squared
// distances from its own mean. Only these sums are turned to FLOAT64 and to the group's common shift, where they may be added
// in any fixed order without harm. So a mean far from zero costs no accuracy.

struct Moments {
    double sum, squares;
};

DEVICE void add(Moments& to, double sum, double squares) {
    to.sum += sum;
    to.squares += squares;
}

DEVICE double finite_or_zero(double value) { return is_finite(value) ? value : 0; }

// Whether squares of FLOAT32 distances have left the range in which their sum is exact enough.
DEVICE bool out_of_range(float squares, float center) {
    return !(squares <= 1e37f) || (squares < 1e-30f && (squares > 0 || center != 0));
}

// As `accumulate`, in one pass over the elements: enough for FLOAT16, whose squares cannot leave the range either.
template <int FROM, int TO, int UNITS, typename Value>
DEVICE void accumulate_narrow(Moments& moments, const bool (&inside)[UNITS], double shift, Value value) {
    float pivot = inside[0] ? value(0, FROM) : 0;
    pivot = is_finite(pivot) ? pivot : 0;
    float sum = 0, squares = 0;
    int count = 0;
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        if (!inside[k]) continue;
        float part = 0, part_squares = 0;
#pragma unroll
        for (int lane = FROM; lane < TO; lane++) {
            const float distance = value(k, lane) - pivot;
            part += distance;
            part_squares = multiply_add(distance, distance, part_squares);
        }
        sum += part;
        squares += part_squares;
        count += TO - FROM;
    }
    const double origin = double(pivot) - shift;
    add(moments, double(sum) + count * origin, double(squares) + origin * (2 * double(sum) + count * origin));
}

// Adds `value(k, lane)` for the units k of a thread that are `inside`, and for lanes FROM..TO, to the moments about `shift`.
template <typename T, int FROM, int TO, int UNITS, typename Value>
DEVICE void accumulate(Moments& moments, const bool (&inside)[UNITS], double shift, Value value) {
    if constexpr (NARROW) return accumulate_narrow<FROM, TO>(moments, inside, shift, value);
    T pivot = inside[0] ? value(0, FROM) : T(0);
    pivot = is_finite(pivot) ? pivot : T(0);
    T sum = 0;
    int count = 0;
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        if (!inside[k]) continue;
        T part = value(k, FROM) - pivot;
#pragma unroll
        for (int lane = FROM + 1; lane < TO; lane++) part += value(k, lane) - pivot;
        sum += part;
        count += TO - FROM;
    }
    if (!count) return;
    const T center = sum / T(count);
    T squares = 0;
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        if (!inside[k]) continue;
        T part = 0;
#pragma unroll
        for (int lane = FROM; lane < TO; lane++) {
            const T distance = (value(k, lane) - pivot) - center;
            part = multiply_add(distance, distance, part);
        }
        squares += part;
    }
    if constexpr (sizeof(T) == 4) {
        if (out_of_range(squares, center)) {
            return accumulate<double, FROM, TO>(
                moments, inside, shift, [&](int k, int lane) { return double(value(k, lane)); });
        }
    }
    const double origin = double(pivot) - shift, mean = origin + double(center);
    const double rest = double(sum) - count * double(center);
    add(moments, double(sum) + count * origin, double(squares) + mean * (2 * rest + count * mean));
}

// The same sums in the whole warp, or in aligned parts of it: over lanes whose numbers differ by multiples of NEAR below FAR.
template <int NEAR, int FAR>
DEVICE void add_lanes(Moments& moments) {
#pragma unroll
    for (int distance = FAR / 2; distance >= NEAR; distance /= 2) {
        add(moments, __shfl_xor_sync(~0u, moments.sum, distance), __shfl_xor_sync(~0u, moments.squares, distance));
    }
}

DEVICE Statistics statistics(const Moments& moments, double shift, double share) {
    const double average = moments.sum * share;
    const double variance = (moments.squares - moments.sum * average) * share;
    return {shift + average, variance < 0 ? 0 : variance};
}

// What is kept while a group is reduced: how it starts, takes elements in, and is put together. Integers wrap.

template <typename T>
DEVICE T sum_of(T a, T b) {
    if constexpr (T(0.5) != T(0)) return a + b;
    else return (T)((unsigned long long)a + (unsigned long long)b);
}

template <typename T>
DEVICE T product_of(T a, T b) {
    if constexpr (T(0.5) != T(0)) return a * b;
    else return (T)((unsigned long long)a * (unsigned long long)b);
}

template <typename T>
DEVICE T finite_or_zero_of(T x) { return x - x == 0 ? x : 0; }

template <typename T>
struct Sum {
    T value;
    DEVICE_MEMBER void start(T) { value = 0; }
    DEVICE_MEMBER void add(T x) { value = sum_of<T>(value, x); }
    DEVICE_MEMBER void merge(const Sum& other) { add(other.value); }
};

template <typename T>
struct Product {
    T value;
    DEVICE_MEMBER void start(T) { value = 1; }
    DEVICE_MEMBER void add(T x) { value = product_of<T>(value, x); }
    DEVICE_MEMBER void merge(const Product& other) { add(other.value); }
};

template <typename T>
struct SumOfProducts {
    T value;
    DEVICE_MEMBER void start(T, T) { value = 0; }
    DEVICE_MEMBER void add(T a, T b) {
        if constexpr (T(0.5) != T(0)) value = multiply_add(a, b, value);
        else value = sum_of<T>(value, product_of<T>(a, b));
    }
    DEVICE_MEMBER void merge(const SumOfProducts& other) { value = sum_of<T>(value, other.value); }
};

template <typename T>
struct Least {
    T value;
    DEVICE_MEMBER void start(T first) { value = first; }
    DEVICE_MEMBER void add(T x) { value = minimum(value, x); }
    DEVICE_MEMBER void merge(const Least& other) { add(other.value); }
};

template <typename T>
struct Greatest {
    T value;
    DEVICE_MEMBER void start(T first) { value = first; }
    DEVICE_MEMBER void add(T x) { value = maximum(value, x); }
    DEVICE_MEMBER void merge(const Greatest& other) { add(other.value); }
};

// The first or last position of the extreme element; NaN comes before all numbers.
template <typename T, typename Position, bool GREATEST, bool LAST>
struct Search {
    T best;
    Position value;
    DEVICE_MEMBER void start(T first, Position at) {
        best = first;
        value = at;
    }
    DEVICE_MEMBER void add(T x, Position at) {
        const bool nan = x != x, best_nan = best != best;
        const bool better = (GREATEST ? x > best : x < best) || (nan && !best_nan);
        const bool equal = x == best || (nan && best_nan);
        if (better || (equal && (LAST ? at > value : at < value))) {
            best = x;
            value = at;
        }
    }
    DEVICE_MEMBER void merge(const Search& other) { add(other.best, other.value); }
};

// Sums of the distances from the group's first element, and of their squares.
struct Moments {
    double shift, total, squares;
    DEVICE_MEMBER void start(double first) {
        shift = finite_or_zero_of(first);
        total = squares = 0;
    }
    DEVICE_MEMBER void add(double x) {
        const double distance = x - shift;
        total += distance;
        squares = __fma_rn(distance, distance, squares);
    }
    DEVICE_MEMBER void merge(const Moments& other) {
        total += other.total;
        squares += other.squares;
    }
    DEVICE_MEMBER double mean(double share) const { return shift + total * share; }
    DEVICE_MEMBER double variance(double share) const {
        const double spread = (squares - total * (total * share)) * share;
        return spread < 0 ? 0 : spread;
    }
};

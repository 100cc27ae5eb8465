// Code of all kernels: element types, vectors, index arithmetic. No header of a CUDA toolkit is needed.

DEVICE double minimum(double a, double b) { return a != a || b != b ? a + b : fmin(a, b); }
DEVICE double maximum(double a, double b) { return a != a || b != b ? a + b : fmax(a, b); }
DEVICE float absolute(float x) { return fabsf(x); }
DEVICE double absolute(double x) { return fabs(x); }
DEVICE float square_root(float x) { return __fsqrt_rn(x); }
DEVICE double square_root(double x) { return __dsqrt_rn(x); }

// 1 / sqrt(x) except for the last bits, by two Newton steps from the approximation in FLOAT32.
DEVICE double reciprocal_root(double x) {
    if (!(x >= 1e-36 && x <= 1e36)) return 1 / sqrt(x);
    double root = rsqrtf(float(x));
#pragma unroll
    for (int step = 0; step < 2; step++) root = __fma_rn(root * 0.5, __fma_rn(-x * root, root, 1), root);
    return root;
}

DEVICE float round_even(float x) { return rintf(x); }
DEVICE double round_even(double x) { return rint(x); }
DEVICE float round_down(float x) { return floorf(x); }
DEVICE double round_down(double x) { return floor(x); }
DEVICE float cut_off(float x) { return truncf(x); }
DEVICE double cut_off(double x) { return trunc(x); }
DEVICE float remainder_of(float a, float b) { return fmodf(a, b); }
DEVICE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEVICE double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
DEVICE bool is_finite(float x) { return x - x == 0; }
DEVICE bool is_finite(double x) { return x - x == 0; }

// The template argument of functions of integers is the type in which they compute.
template <typename T>
constexpr bool has_sign = T(-1) < T(0);

template <typename T>
constexpr T greatest = has_sign<T> ? (T)((1ull << (sizeof(T) * 8 - 1)) - 1) : (T)~0ull;

template <typename T>
DEVICE T minimum(T a, T b) { return b < a ? b : a; }

template <typename T>
DEVICE T maximum(T a, T b) { return a < b ? b : a; }

template <typename T>
DEVICE T negative(T x) { return (T)(0ull - (unsigned long long)x); }

template <typename T>
DEVICE T absolute(T x) { return x < 0 ? negative<T>(x) : x; }

// The quotient, rounded towards 0. If b is 0, all bits are one. The least number divided by -1 is itself.
template <typename T>
DEVICE T quotient(T a, T b) {
    if (b == 0) return (T)~0ull;
    if (has_sign<T> && b == (T)~0ull) return negative<T>(a);
    return (T)(a / b);
}

template <typename T>
DEVICE T remainder_of(T a, T b) {
    if (b == 0) return a;
    if (has_sign<T> && b == (T)~0ull) return 0;
    return (T)(a % b);
}

template <typename T>
DEVICE T count_bits(T x) { return (T)(sizeof(T) == 8 ? __popcll(x) : __popc((unsigned)x)); }

template <typename To, typename From>
DEVICE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}

// The integer, rounded towards 0. A number out of range becomes the nearest one in range, and NaN becomes 0.
template <typename T, typename Float>
DEVICE T to_integer(Float x) {
    constexpr Float limit = (Float)2 * (Float)(1ull << (sizeof(T) * 8 - 1 - has_sign<T>));
    if (x >= limit) return greatest<T>;
    if (x <= (has_sign<T> ? -limit : (Float)0)) return (T)(has_sign<T> ? (T)(-greatest<T> - 1) : (T)0);
    return x == x ? (T)x : (T)0;
}

// V elements that move together, in as few accesses of up to 16 bytes as their alignment allows.
template <typename T, int V>
struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) Vector {
    T data[V];
};

template <typename Word, typename T, int V>
DEVICE void copy_words(T (&to)[V], const char* from) {
    Word words[sizeof(to) / sizeof(Word)];
#pragma unroll
    for (int i = 0; i < sizeof(to) / sizeof(Word); i++) words[i] = reinterpret_cast<const Word*>(from)[i];
    memcpy(to, words, sizeof(to));
}

template <typename Word, typename T, int V>
DEVICE void copy_words(char* to, const T (&from)[V]) {
    Word words[sizeof(from) / sizeof(Word)];
    memcpy(words, from, sizeof(from));
#pragma unroll
    for (int i = 0; i < sizeof(from) / sizeof(Word); i++) reinterpret_cast<Word*>(to)[i] = words[i];
}

template <typename T, int V>
DEVICE void load(Vector<T, V>& to, const char* from) {
    constexpr int bytes = V * sizeof(T);
    if constexpr (V == 1) to.data[0] = *reinterpret_cast<const T*>(from);
    else if constexpr (bytes >= 16) copy_words<uint4>(to.data, from);
    else if constexpr (bytes == 8) copy_words<uint2>(to.data, from);
    else if constexpr (bytes == 4) copy_words<unsigned>(to.data, from);
    else copy_words<T>(to.data, from);
}

template <typename T, int V>
DEVICE void store(char* to, const Vector<T, V>& from) {
    constexpr int bytes = V * sizeof(T);
    if constexpr (V == 1) *reinterpret_cast<T*>(to) = from.data[0];
    else if constexpr (bytes >= 16) copy_words<uint4>(to, from.data);
    else if constexpr (bytes == 8) copy_words<uint2>(to, from.data);
    else if constexpr (bytes == 4) copy_words<unsigned>(to, from.data);
    else copy_words<T>(to, from.data);
}

template <typename T>
DEVICE void load(T& to, const char* from) {
    to = *reinterpret_cast<const T*>(from);
}

template <typename T>
DEVICE void store(char* to, const T& from) {
    *reinterpret_cast<T*>(to) = from;
}

// Loads elements that are `step` bytes apart.
template <typename T, int V>
DEVICE void gather(Vector<T, V>& to, const char* from, long long step) {
#pragma unroll
    for (int lane = 0; lane < V; lane++) load(to.data[lane], from + lane * step);
}

template <typename T, int V>
DEVICE void scatter(char* to, const Vector<T, V>& from, long long step) {
#pragma unroll
    for (int lane = 0; lane < V; lane++) store(to + lane * step, from.data[lane]);
}

// Counts V numbers from `first` on, `step` apart, which wrap in their type.
template <typename T, int V>
DEVICE void count(Vector<T, V>& to, long long first, long long step) {
#pragma unroll
    for (int lane = 0; lane < V; lane++) to.data[lane] = (T)(first + lane * step);
}

// Returns an element; 0, without reading, if the guard is false.
template <typename T>
DEVICE T read_where(bool guard, const char* from) {
    return guard ? *reinterpret_cast<const T*>(from) : T();
}

// Loads a unit, whose address may be aligned to its elements alone; zeros, without reading, if the guard is false.
template <typename T, int V>
DEVICE void load_where(bool guard, Vector<T, V>& to, const char* from) {
    to = {};
    if (!guard) return;
    if ((unsigned long long)from % alignof(Vector<T, V>) == 0) load(to, from);
    else gather(to, from, sizeof(T));
}

// Reads past the L1 cache what another block may just have written, in words of 8 bytes.
template <typename T>
DEVICE T load_uncached(const char* from) {
    unsigned long long words[sizeof(T) / 8];
#pragma unroll
    for (int i = 0; i < sizeof(T) / 8; i++) words[i] = load_uncached(reinterpret_cast<const unsigned long long*>(from) + i);
    T value;
    memcpy(&value, words, sizeof(T));
    return value;
}

// A number to divide by. `magic` holds ceil(2^shift / count) in its low half and the shift in its high half.
struct Divisor {
    long long count;
    unsigned long long magic;
};

DEVICE int divide(int index, const Divisor& by) {
    return (int)(((unsigned long long)(unsigned)index * (unsigned)by.magic) >> (by.magic >> 32));
}

DEVICE long long divide(long long index, const Divisor& by) { return index / by.count; }

// An argument whose value the compiler knows.
template <int N>
struct Number {
    static constexpr int value = N;
    __device__ constexpr operator int() const { return N; }
};

// Calls body(Number<0>()), ..., body(Number<COUNT - 1>()).
template <int COUNT, int FIRST = 0, typename Body>
DEVICE void each(Body body) {
    if constexpr (FIRST < COUNT) {
        body(Number<FIRST>());
        each<COUNT, FIRST + 1>(body);
    }
}

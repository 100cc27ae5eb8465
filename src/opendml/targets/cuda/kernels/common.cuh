// What all kernels share: element types, vectors, index arithmetic. No header of a CUDA toolkit is needed.

#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__

struct half {
    unsigned short bits;
};

// Volatile, so that elements which are used again later stay in half the registers meanwhile.
DEVICE float to_float(half value) {
    float result;
    asm volatile("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}

DEVICE half to_half(float value) {
    half result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}

DEVICE half to_half(double value) {
    half result;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(result.bits) : "d"(value));
    return result;
}

// NaN if either is NaN; -0 is below +0.
DEVICE float minimum(float a, float b) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

DEVICE float maximum(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

DEVICE double minimum(double a, double b) { return a != a || b != b ? a + b : fmin(a, b); }
DEVICE double maximum(double a, double b) { return a != a || b != b ? a + b : fmax(a, b); }
DEVICE float absolute(float x) { return fabsf(x); }
DEVICE double absolute(double x) { return fabs(x); }
DEVICE float square_root(float x) { return __fsqrt_rn(x); }
DEVICE double square_root(double x) { return __dsqrt_rn(x); }

// 1 / sqrt(x) but for the last bits, from the approximation in FLOAT32.
DEVICE double reciprocal_root(double x) {
    if (!(x >= 1e-36 && x <= 1e36)) return 1 / sqrt(x);
    double root = rsqrtf(float(x));
#pragma unroll
    for (int step = 0; step < 2; step++) root = __fma_rn(root * 0.5, __fma_rn(-x * root, root, 1), root);
    return root;
}

DEVICE float round_even(float x) { return rintf(x); }
DEVICE double round_even(double x) { return rint(x); }
DEVICE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEVICE double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
DEVICE bool is_finite(float x) { return x - x == 0; }
DEVICE bool is_finite(double x) { return x - x == 0; }

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

// Starts a copy to shared memory.
template <int BYTES>
DEVICE void copy_async(char* to, const char* from) {
    const unsigned target = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(from) : "memory");
    } else if constexpr (BYTES > 16) {
        copy_async<16>(to, from);
        copy_async<BYTES - 16>(to + 16, from + 16);
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(from), "n"(BYTES) : "memory");
    }
}

// Elements that are `step` bytes apart.
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

// A number to divide by. `magic` holds ceil(2^shift / count) in its low half and the shift in its high half.
struct Divisor {
    long long count;
    unsigned long long magic;
};

DEVICE int divide(int index, const Divisor& by) {
    return (int)(((unsigned long long)(unsigned)index * (unsigned)by.magic) >> (by.magic >> 32));
}

DEVICE long long divide(long long index, const Divisor& by) { return index / by.count; }

struct Statistics {
    double mean, variance;
};

// A number that the compiler knows, as an argument.
template <int N>
struct Number {
    static constexpr int value = N;
    __device__ constexpr operator int() const { return N; }
};

// body(Number<0>()), ..., body(Number<COUNT - 1>())
template <int COUNT, int FIRST = 0, typename Body>
DEVICE void each(Body body) {
    if constexpr (FIRST < COUNT) {
        body(Number<FIRST>());
        each<COUNT, FIRST + 1>(body);
    }
}

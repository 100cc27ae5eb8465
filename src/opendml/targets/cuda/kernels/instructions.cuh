// All instructions that are written in PTX. `tools/cuda_emulator/instructions.h` defines the same functions for a processor.

#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__

struct half {
    unsigned short bits;
};

// Begins every kernel: waits until what the earlier ones of the stream wrote can be read, since this one may have been launched
// before. Nothing is written sooner, and nothing is read but operands that no kernel of a run writes. Then the next kernel is launched, if it
// may: once all blocks of this one have begun, its blocks take the places that are free, and wait.
DEVICE void begin_kernel(long long lets_next_begin) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (lets_next_begin) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

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

// The bits of a BFLOAT16.
DEVICE unsigned short to_bfloat16(float value) {
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// Two numbers as FLOAT16 in a word, the first in its low half.
DEVICE unsigned to_halves(float first, float second) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// Two numbers as BFLOAT16 in a word, the first in its low half.
DEVICE unsigned to_bfloat16s(float first, float second) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
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

// 1 / x within 1 ULP, where both are normal numbers.
DEVICE float rough_reciprocal(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// 1 / sqrt(x) within 2 ULP, of normal numbers.
DEVICE float rough_reciprocal_root(float x) {
    float result;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// 2^x, with 22 correct bits.
DEVICE float power_of_two(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// Returns an address about which the compiler knows nothing, so that it keeps nothing that lies there in registers.
template <typename T>
DEVICE T* forget_memory(T* place) {
    asm volatile("" : "+l"(place) : : "memory");
    return place;
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

// Starts a copy to shared memory if `there`. Else stores zeros, and reads nothing.
template <int BYTES>
DEVICE void copy_async(char* to, const char* from, bool there) {
    const unsigned target = (unsigned)__cvta_generic_to_shared(to), nothing = !there;
    if constexpr (BYTES == 16) {
        asm volatile(
            "{ .reg .pred nothing; setp.ne.u32 nothing, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, nothing; }" ::"r"(target),
            "l"(from), "r"(nothing)
            : "memory");
    } else {
        asm volatile(
            "{ .reg .pred nothing; setp.ne.u32 nothing, %2, 0; cp.async.ca.shared.global [%0], [%1], %3, nothing; }" ::"r"(target),
            "l"(from), "r"(nothing), "n"(BYTES)
            : "memory");
    }
}

DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all groups of copies but the last REST.
template <int REST>
DEVICE void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(REST) : "memory");
}

// Reads past the L1 cache what another block may just have written.
DEVICE unsigned load_uncached(const unsigned* from) {
    unsigned value;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

DEVICE unsigned long long load_uncached(const unsigned long long* from) {
    unsigned long long value;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}

DEVICE void load_uncached(unsigned (&to)[2], const void* from) {
    asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "l"(from) : "memory");
}

DEVICE void load_uncached(unsigned long long (&to)[2], const void* from) {
    asm volatile("ld.global.cg.v2.u64 {%0, %1}, [%2];" : "=l"(to[0]), "=l"(to[1]) : "l"(from) : "memory");
}

// Adds 1 to a counter of several blocks. Threads that acquire it see what this thread wrote before.
DEVICE void arrive(unsigned* counter) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}

DEVICE unsigned load_relaxed(const unsigned* counter) {
    unsigned arrived;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
    return arrived;
}

// Reads two words that other blocks may write meanwhile. Each word is read as a whole.
DEVICE void load_relaxed(unsigned long long (&to)[2], const char* from) {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(to[0]), "=l"(to[1]) : "l"(from) : "memory");
}

// Writes two words that other blocks may read meanwhile, each as a whole.
DEVICE void store_relaxed(char* to, const unsigned long long (&words)[2]) {
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(words[0]), "l"(words[1]) : "memory");
}

DEVICE unsigned acquire(const unsigned* counter) {
    unsigned arrived;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
    return arrived;
}

// Loads four matrices of 8 x 8 numbers of 16 bits. Each lane has the address of a row of one of them.
DEVICE void load_matrices(unsigned (&to)[4], const char* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}

DEVICE void load_matrices_transposed(unsigned (&to)[4], const char* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
}

#define MULTIPLY_NUMBERS(TYPES) \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPES ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <typename>
constexpr bool IS_BFLOAT16 = false;
template <>
constexpr bool IS_BFLOAT16<unsigned short> = true;

// Adds the products of 16 x 16 and 16 x 8 numbers of FLOAT16 or BFLOAT16, or of 16 x 32 and 32 x 8 integers of 8 bits, which the
// lanes of a warp hold together. BFLOAT16 are the bits of an unsigned short.
template <typename Element = half, typename = Element>
DEVICE void multiply_matrices(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (IS_BFLOAT16<Element>) MULTIPLY_NUMBERS("bf16.bf16");
    else MULTIPLY_NUMBERS("f16.f16");
}

#define MULTIPLY_BYTES(TYPES) \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." TYPES ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]) \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <typename A, typename B>
DEVICE void multiply_matrices(int (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    constexpr bool a_has_sign = A(-1) < A(0), b_has_sign = B(-1) < B(0);
    if constexpr (a_has_sign && b_has_sign) MULTIPLY_BYTES("s8.s8");
    else if constexpr (a_has_sign) MULTIPLY_BYTES("s8.u8");
    else if constexpr (b_has_sign) MULTIPLY_BYTES("u8.s8");
    else MULTIPLY_BYTES("u8.u8");
}

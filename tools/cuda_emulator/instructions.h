// What kernels/instructions.cuh says in PTX. Results may differ in the last bit where that is approximate.

#define DEVICE static
#define DEVICE_MEMBER

struct half {
    unsigned short bits;
};

DEVICE void begin_kernel(long long) {}

DEVICE float to_float(half value) { return emulator::bits<_Float16>(value.bits); }
DEVICE half to_half(float value) { return {emulator::bits<unsigned short>((_Float16)value)}; }
DEVICE half to_half(double value) { return {emulator::bits<unsigned short>((_Float16)value)}; }
DEVICE unsigned short to_bfloat16(float value) {
    unsigned bits = emulator::bits<unsigned>(value);
    return value == value ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : 0x7fff;
}
DEVICE unsigned to_halves(float first, float second) { return to_half(first).bits | to_half(second).bits << 16; }
DEVICE unsigned to_bfloat16s(float first, float second) { return to_bfloat16(first) | to_bfloat16(second) << 16; }

DEVICE float minimum(float a, float b) {
    if (a != a || b != b) return NAN;
    return a < b || (a == b && std::signbit(a)) ? a : b;
}

DEVICE float maximum(float a, float b) {
    if (a != a || b != b) return NAN;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
}

DEVICE float rough_reciprocal(float x) { return 1 / x; }
DEVICE float rough_reciprocal_root(float x) { return 1 / sqrtf(x); }
DEVICE float power_of_two(float x) { return exp2f(x); }

template <typename T>
DEVICE T* forget_memory(T* place) { return place; }

template <int BYTES>
DEVICE void copy_async(char* to, const char* from) { memcpy(to, from, BYTES); }

template <int BYTES>
DEVICE void copy_async(char* to, const char* from, bool there) {
    if (there) memcpy(to, from, BYTES);
    else memset(to, 0, BYTES);
}

DEVICE void commit_copies() {}
template <int REST>
DEVICE void wait_for_copies() {}

template <typename T>
DEVICE T load_uncached(const T* from) { return __atomic_load_n(from, __ATOMIC_SEQ_CST); }

template <typename T>
DEVICE void load_uncached(T (&to)[2], const void* from) {
    for (int i = 0; i < 2; i++) to[i] = load_uncached((const T*)from + i);
}

DEVICE void arrive(unsigned* counter) { atomicAdd(counter, 1); }

// Other threads of the block run meanwhile, since one may look until something is there.
DEVICE unsigned load_relaxed(const unsigned* counter) {
    emulator::let_others_run();
    return load_uncached(counter);
}

DEVICE void load_relaxed(unsigned long long (&to)[2], const char* from) {
    emulator::let_others_run();
    load_uncached(to, from);
}

DEVICE void store_relaxed(char* to, const unsigned long long (&words)[2]) {
    for (int i = 0; i < 2; i++) __atomic_store_n((unsigned long long*)to + i, words[i], __ATOMIC_SEQ_CST);
}

DEVICE unsigned acquire(const unsigned* counter) { return load_relaxed(counter); }

// Where the rows of four matrices begin: each lane knows one.
struct Matrices {
    unsigned long long rows[emulator::LANES];

    Matrices(const char* row) { emulator::exchange((unsigned long long)row, rows); }
    unsigned at(int matrix, int row, int column) const { return ((const unsigned short*)rows[8 * matrix + row])[column]; }
};

DEVICE void load_matrices(unsigned (&to)[4], const char* row) {
    const Matrices from(row);
    const int lane = threadIdx.x % 32, first = lane / 4, second = lane % 4 * 2;
    for (int i = 0; i < 4; i++) to[i] = from.at(i, first, second) | from.at(i, first, second + 1) << 16;
}

DEVICE void load_matrices_transposed(unsigned (&to)[4], const char* row) {
    const Matrices from(row);
    const int lane = threadIdx.x % 32, first = lane / 4, second = lane % 4 * 2;
    for (int i = 0; i < 4; i++) to[i] = from.at(i, second, first) | from.at(i, second + 1, first) << 16;
}

// The pieces of all lanes: lane 4 i + j of A has numbers of rows i and i + 8, of B of column i.
template <typename A, typename B, typename Sum, typename Value>
DEVICE void add_products(Sum (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2], Value value) {
    unsigned as[4][emulator::LANES], bs[2][emulator::LANES];
    for (int i = 0; i < 4; i++) emulator::exchange(a[i], as[i]);
    for (int i = 0; i < 2; i++) emulator::exchange(b[i], bs[i]);
    const int lane = threadIdx.x % 32;
    for (int sum = 0; sum < 4; sum++) {
        const int row = lane / 4, lower = sum / 2, column = lane % 4 * 2 + sum % 2;
        for (int k = 0; k < 8; k++) {
            const unsigned x = as[lower + k / 4 * 2][row * 4 + k % 4], y = bs[k / 4][column * 4 + k % 4];
            for (int i = 0; i < 4 / sizeof(A); i++) sums[sum] += value(A(), x, i) * value(B(), y, i);
        }
    }
}

DEVICE float value_of(half, unsigned short bits) { return to_float(half{bits}); }
DEVICE float value_of(unsigned short, unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

template <typename Element = half, typename = Element>
DEVICE void multiply_matrices(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    auto value = [](Element, unsigned word, int i) { return value_of(Element(), (unsigned short)(word >> 16 * i)); };
    add_products<Element, Element>(sums, a, b, value);
}

template <typename A, typename B>
DEVICE void multiply_matrices(int (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    auto value = [](auto type, unsigned word, int i) { return int(decltype(type)(word >> 8 * i)); };
    add_products<A, B>(sums, a, b, value);
}

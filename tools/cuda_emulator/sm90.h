// What kernels/sm90/instructions.cuh says in PTX: copies are done at once, products when they are asked for.

struct alignas(64) TensorMap {
    unsigned long long base, strides[4];
    unsigned sizes[5], box[5], rank, element;
    int begin[2], end[2], steps[2];  // of windows
    unsigned long long unused[2];
};
static_assert(sizeof(TensorMap) == 128);

// An offset in shared memory.
typedef unsigned Shared;

constexpr int BARRIER_BYTES = 8;

namespace emulator {

struct BarrierState {
    unsigned count : 15, pending : 16, phase : 1;
    int bytes;

    void pass() {
        if (pending > 0 || bytes != 0) return;
        pending = count;
        phase ^= 1;
    }
};
static_assert(sizeof(BarrierState) == BARRIER_BYTES);

static BarrierState& state(Shared barrier, unsigned block = rank) { return *(BarrierState*)(blocks[block].memory + barrier); }

// Where the copy engine puts, and tensor cores find, a byte of shared memory: units of 16 bytes are swizzled within 1024.
static char* swizzled(Shared at, unsigned block = rank) { return blocks[block].memory + (at ^ (at / 128 % 8 * 16)); }

}  // namespace emulator

DEVICE Shared shared_address(const void* at) { return (const char*)at - emulator::shared_memory; }
DEVICE void start_barrier(Shared barrier, int arrivals) { emulator::state(barrier) = {unsigned(arrivals), unsigned(arrivals), 0, 0}; }
DEVICE void publish_barriers() {}
DEVICE void publish_to_tensor_cores() {}

DEVICE void arrive_at(Shared barrier, unsigned block = emulator::rank) {
    emulator::state(barrier, block).pending--;
    emulator::state(barrier, block).pass();
}

DEVICE void expect_bytes(Shared barrier, int bytes) {
    emulator::state(barrier).bytes += bytes;
    arrive_at(barrier);
}

DEVICE void wait_for_phase(Shared barrier, unsigned parity) {
    while (emulator::state(barrier).phase == parity) emulator::let_others_run();
}

DEVICE void wait_for_cluster(Shared barrier, unsigned parity) { wait_for_phase(barrier, parity); }

DEVICE void send(Shared to, Shared barrier, int block, const unsigned (&words)[4]) {
    memcpy(emulator::blocks[block].memory + to, words, sizeof(words));
    emulator::state(barrier, block).bytes -= sizeof(words);
    emulator::state(barrier, block).pass();
}

DEVICE void prefetch(const TensorMap&) {}

template <int RANK>
DEVICE void load_box(Shared to, const TensorMap& map, Shared barrier, const int (&at)[RANK], unsigned short mask) {
    if (RANK != map.rank || to % 1024 != 0) abort();
    for (unsigned block = 0; block < emulator::blocks.size(); block++) {
        if (mask == 0 ? block != emulator::rank : !(mask >> block & 1)) continue;
        unsigned index[5] = {}, bytes = 0;
        for (bool is_left = true; is_left; bytes += map.element) {
            bool is_inside = true;
            unsigned long long from = map.base;
            for (int i = 0; i < RANK; i++) {
                const long long place = (long long)at[i] + index[i];
                is_inside = is_inside && place >= 0 && place < map.sizes[i];
                from += place * (i == 0 ? map.element : map.strides[i - 1]);
            }
            char* const target = emulator::swizzled(to + bytes, block);
            if (is_inside) memcpy(target, (const char*)from, map.element);
            else memset(target, 0, map.element);
            is_left = false;
            for (int i = 0; i < RANK && !is_left; i++) {
                is_left = ++index[i] < map.box[i];
                if (!is_left) index[i] = 0;
            }
        }
        emulator::state(barrier, block).bytes -= bytes;
        emulator::state(barrier, block).pass();
    }
}

static void load_windows_of(Shared to, const TensorMap& map, Shared barrier, const int (&at)[4], int right, int down, unsigned block) {
    if (map.steps[0] == 0 || to % 1024 != 0 || right >> 8 || down >> 8) abort();
    int x = at[1], y = at[2], image = at[3];
    for (unsigned pixel = 0; pixel < map.box[1]; pixel++) {
        const unsigned column = x + right, line = y + down;
        for (unsigned i = 0; i < map.box[0]; i++) {
            const unsigned channel = at[0] + i;
            char* const target = emulator::swizzled(to + (pixel * map.box[0] + i) * map.element, block);
            const bool is_inside = channel < map.sizes[0] && column < map.sizes[1] && line < map.sizes[2] && unsigned(image) < map.sizes[3];
            const unsigned long long from = map.base + channel * map.element + column * map.strides[0] + line * map.strides[1] + image * map.strides[2];
            if (is_inside) memcpy(target, (const char*)from, map.element);
            else memset(target, 0, map.element);
        }
        if ((x += map.steps[0]) <= map.end[0]) continue;
        x = map.begin[0];
        if ((y += map.steps[1]) <= map.end[1]) continue;
        y = map.begin[1], image++;
    }
    emulator::state(barrier, block).bytes -= map.box[0] * map.box[1] * map.element;
    emulator::state(barrier, block).pass();
}

DEVICE void load_windows(Shared to, const TensorMap& map, Shared barrier, const int (&at)[4], int right, int down, unsigned short mask) {
    for (unsigned block = 0; block < emulator::blocks.size(); block++) {
        if (mask == 0 ? block == emulator::rank : mask >> block & 1) load_windows_of(to, map, barrier, at, right, down, block);
    }
}

DEVICE int block_of_cluster() { return emulator::rank; }

DEVICE void synchronize_cluster() {
    static emulator::Meeting meeting;
    meeting.running = emulator::threads.size();
    emulator::wait(meeting);
}

namespace emulator {

static Meeting& barrier_of_warpgroups(int number, int count) {
    Meeting& meeting = blocks[rank].warpgroups[number];
    meeting.running = 128 * count;
    return meeting;
}

}  // namespace emulator

DEVICE void synchronize_warpgroups(int number, int count) { emulator::wait(emulator::barrier_of_warpgroups(number, count)); }

DEVICE void arrive_for_warpgroups(int number, int count) {
    emulator::Meeting& meeting = emulator::barrier_of_warpgroups(number, count);
    meeting.arrived++;
    meeting.pass();
}

template <int REGISTERS>
DEVICE void give_registers() {}
template <int REGISTERS>
DEVICE void take_registers() {}
DEVICE void begin_products() {}
DEVICE void commit_products() {}
DEVICE void hold(float&) {}
DEVICE void hold(int&) {}
DEVICE void hold(unsigned&) {}
DEVICE void wait_until_known(float) {}

DEVICE void store_matrices(char* row, const unsigned (&from)[4]) {
    unsigned long long rows[emulator::LANES];
    emulator::exchange((unsigned long long)row, rows);
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++) memcpy((char*)rows[8 * i + lane / 4] + lane % 4 * 4, &from[i], 4);
}

DEVICE void store_matrices_transposed(char* row, const unsigned (&from)[4]) {
    unsigned long long rows[emulator::LANES];
    emulator::exchange((unsigned long long)row, rows);
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 8; i++) memcpy((char*)rows[8 * (i / 2) + lane % 4 * 2 + i % 2] + lane / 4 * 2, (const char*)&from[i / 2] + i % 2 * 2, 2);
}

// All lanes are done before one says so, since others may still read what it frees.
template <int REST>
DEVICE void wait_for_products() { __syncwarp(); }

namespace emulator {

// A number of FLOAT16, or of BFLOAT16 in the bits of an unsigned short.
static float number_of(half value) { return to_float(value); }
static float number_of(unsigned short bits) { return bits_as<float>((unsigned)bits << 16); }

// An element of a tile that a descriptor describes.
template <typename Element, bool TURNED>
static float element_of(unsigned long long descriptor, unsigned row, unsigned k) {
    const unsigned begin = (descriptor & 0x3fff) * 16, box = (descriptor >> 16 & 0x3fff) * 16, group = (descriptor >> 32 & 0x3fff) * 16;
    const unsigned place = TURNED ? row / 64 * box + k / 8 * group + k % 8 * 128 + row % 64 * 2 : row / 8 * group + row % 8 * 128 + k * 2;
    Element value;
    memcpy(&value, swizzled(begin + place), sizeof(value));
    return number_of(value);
}

// Adds products to a thread's sums. Total: the type in which each is added up.
template <unsigned DEPTH, typename Total, typename Sum, int SUMS, typename Product>
static void add_products(Sum (&sums)[SUMS], bool adds, Product product) {
    const unsigned warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < SUMS; i++) {
        const unsigned row = 16 * warp + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        Total sum = adds ? sums[i] : 0;
        for (unsigned k = 0; k < DEPTH; k++) sum += product(row, column, k);
        sums[i] = (Sum)sum;
    }
}

template <typename Element, bool A_TURNED, bool B_TURNED, int SUMS>
static void multiply_warpgroup(float (&sums)[SUMS], unsigned long long a, unsigned long long b, bool adds) {
    add_products<16, float>(sums, adds, [=](unsigned row, unsigned column, unsigned k) {
        return element_of<Element, A_TURNED>(a, row, k) * element_of<Element, B_TURNED>(b, column, k);
    });
}

// An element of a tile of bytes, which are contiguous along k.
template <typename Element>
static int byte_of(unsigned long long descriptor, unsigned row, unsigned k) {
    const unsigned begin = (descriptor & 0x3fff) * 16, group = (descriptor >> 32 & 0x3fff) * 16;
    return *(const Element*)swizzled(begin + row / 8 * group + row % 8 * 128 + k);
}

template <typename OfA, typename OfB, int SUMS>
static void multiply_warpgroup_of_bytes(int (&sums)[SUMS], unsigned long long a, unsigned long long b, bool adds) {
    add_products<32, unsigned>(sums, adds, [=](unsigned row, unsigned column, unsigned k) {
        return byte_of<OfA>(a, row, k) * byte_of<OfB>(b, column, k);
    });
}

// Products of TF32, which has the first 19 bits of FLOAT32: of rows of A that the lanes of a warp hold together.
template <int SUMS>
static void multiply_warpgroup_of_tf32(float (&sums)[SUMS], const unsigned (&a)[4], unsigned long long b, bool adds) {
    unsigned as[4][LANES];
    for (int i = 0; i < 4; i++) exchange(a[i], as[i]);
    const unsigned lane = threadIdx.x % 32, begin = (b & 0x3fff) * 16;
    for (int i = 0; i < SUMS; i++) {
        const unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        float sum = adds ? sums[i] : 0;
        for (unsigned k = 0; k < 8; k++) {
            unsigned factors[2] = {as[i / 2 % 2 + k / 4 * 2][lane / 4 * 4 + k % 4], 0};
            memcpy(&factors[1], swizzled(begin + column * 128 + k * 4), 4);
            for (unsigned& each : factors) each &= 0xffffe000;
            sum += bits_as<float>(factors[0]) * bits_as<float>(factors[1]);
        }
        sums[i] = sum;
    }
}

// The same with rows of A that the lanes of a warp hold together, as `multiply_matrices` takes them.
template <typename Element, bool B_TURNED, int SUMS>
static void multiply_warpgroup(float (&sums)[SUMS], const unsigned (&a)[4], unsigned long long b, bool adds) {
    unsigned as[4][LANES];
    for (int i = 0; i < 4; i++) exchange(a[i], as[i]);
    const unsigned lane = threadIdx.x % 32;
    for (int i = 0; i < SUMS; i++) {
        const unsigned row = lane / 4, lower = i / 2 % 2, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        float sum = adds ? sums[i] : 0;
        for (unsigned k = 0; k < 16; k++) {
            const unsigned pair = as[lower + k / 8 * 2][row * 4 + k % 8 / 2];
            const Element weight = bits<Element>((unsigned short)(pair >> k % 2 * 16));
            sum += number_of(weight) * element_of<Element, B_TURNED>(b, column, k);
        }
        sums[i] = sum;
    }
}

}  // namespace emulator

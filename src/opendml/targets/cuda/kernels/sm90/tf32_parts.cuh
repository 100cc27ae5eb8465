// Sums products of FLOAT32 on tensor cores, which multiply TF32 (11 bits). Each number is the sum of a large part and a small one, which
// have 22 bits together. Three products of parts are added; that of both small parts is below the rounding error. Sums inside `wgmma` are
// truncated, so they become sums in FLOAT32 every 16 elements along k: errors are no greater than those of FMAs (measured on an H100).
//
// The rows' operand goes from the tile that the copy engine has loaded through registers, where it is split. All warpgroups together split
// that of the columns into shared memory, one step ahead. While products are in flight, a warpgroup adds up those before, and splits what
// comes next. A third buffer of parts lets one of two warpgroups be up to a step ahead: it waits for what the other has split, not for its
// products, which is 6 percent faster. Warps that do nothing else split more slowly: 2048 cubed took 306 us in place of 210.
//
// TF32 has steps of 2^-136 at least, so numbers below 2^-115 have fewer bits. Parts cannot be infinite or NaN. Such numbers, and those from
// 2^127 on, have parts of 0, and FMAs add their products.

constexpr int TOGETHER = 16;  // elements along k whose products `wgmma` adds up
constexpr int BUFFERS = PARTS > 1 ? 3 : 2, BUFFER_BYTES = 2 * B_BYTES;  // of the parts of one step: large ones, then small ones
constexpr int SPLIT_BARRIER = TURN_BARRIER;  // the first of two barriers of each warpgroup, which take turns: it may lag a step behind
static_assert(DOWN == 1 && DEPTH == 2 * TOGETHER && PARTS <= 2 && !TURNS);

DEVICE bool has_parts(float x) { return fabsf(x) < 1.70141183e38f; }

// Finds the parts of a number; the tensor cores ignore the last 13 bits.
DEVICE void split(float x, unsigned& large, unsigned& small, bool& is_lost) {
    const bool fits = has_parts(x);
    is_lost |= !fits;
    x = fits ? x : 0;
    large = (bits_as<unsigned>(x) + 0x1000) & 0xffffe000;
    small = bits_as<unsigned>(x - bits_as<float>(large)) + 0x1000;
}

// Returns the address of an element of an operand's tile, as the copy engine swizzles it.
template <typename Operand>
DEVICE const char* element_at(const char* tile, int row, int k) {
    if constexpr (Operand::ALONG_K) return tile + row * DEPTH_BYTES + (k / 4 ^ row % 8) * 16 + k % 4 * 4;
    else return tile + row / ELEMENTS * (DEPTH * DEPTH_BYTES) + k * DEPTH_BYTES + (row % ELEMENTS / 4 ^ k % 8) * 16 + row % 4 * 4;
}

template <typename Operand>
DEVICE float element(const char* tile, int row, int k) {
    float value;
    load(value, element_at<Operand>(tile, row, k));
    return value;
}

// The parts of 16 rows of a warp, and of TOGETHER elements along k, in the register layout of `wgmma`.
struct Fragments {
    unsigned large[TOGETHER / 8][4], small[TOGETHER / 8][4];

    DEVICE_MEMBER void load(const char* tile, int row, int rows, int k, bool& is_lost) {
#pragma unroll
        for (int i = 0; i < TOGETHER / 8 * 4; i++) {
            const int own = row + i % 2 * 8;
            bool is_own_lost = false;
            split(element<A>(tile, own, k + i / 4 * 8 + i / 2 % 2 * 4 + threadIdx.x % 4), large[i / 4][i % 4], small[i / 4][i % 4], is_own_lost);
            is_lost |= is_own_lost && own < rows;
        }
    }

    // Issues the products with the parts of columns in shared memory.
    DEVICE_MEMBER void multiply(float (&products)[HALF], Shared parts, int k) const {
        begin_products();
#pragma unroll
        for (int i = 0; i < TOGETHER / 8; i++) {
            const unsigned long long of_large = along_k(parts, k + 8 * i), of_small = along_k(parts + B_BYTES, k + 8 * i);
            multiply_warpgroup(products, large[i], of_small, i > 0);
            multiply_warpgroup(products, small[i], of_large, true);
            multiply_warpgroup(products, large[i], of_large, true);
        }
        commit_products();
    }

    // Keeps the compiler from reusing the registers before the products are done.
    DEVICE_MEMBER void hold_parts() {
#pragma unroll
        for (int i = 0; i < TOGETHER / 8 * 4; i++) hold(large[i / 4][i % 4]), hold(small[i / 4][i % 4]);
    }

    DEVICE_MEMBER static unsigned long long along_k(Shared tile, int k) {
        constexpr unsigned long long LAYOUT = SWIZZLED | (unsigned long long)(8 * DEPTH_BYTES / 16) << 32 | 1ull << 16;
        return LAYOUT + (tile % (1 << 18) / 16 + k * 4 / 16);
    }
};

struct MainLoop {
    static constexpr int SHARED_BYTES = BUFFERS * BUFFER_BYTES;  // beside the tiles

    Shared tiles, full, empty, parts;
    char* memory;
    int* flags;  // of each buffer: the last step of which a number of the columns' operand has no parts
    int rows, number = 1;  // of this step, among those of all tiles

    DEVICE_MEMBER MainLoop(const Parameters& p, Shared tiles, Shared full, Shared empty, char* memory, int* flags)
        : tiles(tiles), full(full), empty(empty), parts(tiles + STAGES * STAGE_BYTES), memory(memory), flags(flags),
          rows((Index)p.m < ROWS ? (int)p.m : ROWS) {}

    // Adds the products of all steps along k. Returns the slot that was read last.
    DEVICE_MEMBER int sum(float (&sums)[DOWN][HALF], Ring& ring, int steps, int first_row) {
        const int row = first_row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
        float products[2][HALF];
        Fragments fragments[2];
        int slot = ring.slot;
#pragma unroll
        for (int i = 0; i < HALF; i++) sums[0][i] = 0;
        bool is_lost = false;
        split_columns(ring);
        fragments[0].load(memory + slot * STAGE_BYTES, row, rows, 0, is_lost);
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            // All warpgroups have split this step, and read the parts of the last but one.
            synchronize_warpgroups(SPLIT_BARRIER + number % 2 * PARTS + threadIdx.x / 128 - 1, PARTS);
            slot = ring.slot;
            const char* const tile = memory + slot * STAGE_BYTES;
            const Shared split = parts + number % BUFFERS * BUFFER_BYTES;
            const int last_lost = ((volatile int*)flags)[number % BUFFERS];
            fragments[0].multiply(products[0], split, 0);
            fragments[1].load(tile, row, rows, TOGETHER, is_lost);
            fragments[1].multiply(products[1], split, TOGETHER);
            wait_for_products<1>();
            fragments[0].hold_parts();
            add(sums[0], products[0]);
            if (__any_sync(~0u, is_lost || last_lost == number)) add_others(sums[0], tile, row);
            is_lost = false;
            number++;
            ring.next();
            if (step + 1 < steps) {
                release(empty + slot * BARRIER_BYTES);
                split_columns(ring);
                fragments[0].load(memory + ring.slot * STAGE_BYTES, row, rows, 0, is_lost);
            }
            wait_for_products<0>();
            fragments[1].hold_parts();
            add(sums[0], products[1]);
        }
        return slot;
    }

    DEVICE_MEMBER void finish(float (&)[DOWN][HALF]) {}
    DEVICE_MEMBER void subtract(float (&)[DOWN][HALF], const Parameters&, const Work&, int) {}

    DEVICE_MEMBER static void add(float (&sums)[HALF], float (&products)[HALF]) {
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            hold(products[i]);
            sums[i] += products[i];
        }
    }

    // Splits the columns' operand of a stage into the buffer, in units of 4 elements along k.
    DEVICE_MEMBER void split_columns(const Ring& ring) {
        wait_for_phase(full + ring.slot * BARRIER_BYTES, ring.parity);
        const char* const from = memory + ring.slot * STAGE_BYTES + A_BYTES;
        char* const to = memory + (STAGES * STAGE_BYTES + number % BUFFERS * BUFFER_BYTES);
        bool is_lost = false;
#pragma unroll
        for (int i = 0; i < COLUMNS_OF_TILE * 8 / (128 * PARTS); i++) {
            const int unit = i * 128 * PARTS + threadIdx.x % (128 * PARTS);
            Vector<float, 4> values;
            Vector<unsigned, 4> large, small;
            int place = unit * 16;
            if constexpr (B::ALONG_K) {
                load(values, from + place);
            } else {
                const int column = unit % COLUMNS_OF_TILE, k = unit / COLUMNS_OF_TILE * 4;
                place = column * DEPTH_BYTES + (k / 4 ^ column % 8) * 16;
#pragma unroll
                for (int j = 0; j < 4; j++) values.data[j] = element<B>(from, column, k + j);
            }
#pragma unroll
            for (int j = 0; j < 4; j++) split(values.data[j], large.data[j], small.data[j], is_lost);
            store(to + place, large);
            store(to + B_BYTES + place, small);
        }
        if (is_lost) flags[number % BUFFERS] = number;
        publish_to_tensor_cores();
        if (PARTS > 1) arrive_for_warpgroups(SPLIT_BARRIER + number % 2 * PARTS + 2 - threadIdx.x / 128, PARTS);
    }

    // Adds the products of a stage of which a factor has no parts.
    DEVICE_MEMBER void add_others(float (&sums)[HALF], const char* tile, int row) {
#pragma unroll 1
        for (int k = 0; k < DEPTH; k++) {
            const float a[2] = {element<A>(tile, row, k), element<A>(tile, row + 8, k)};
#pragma unroll
            for (int i = 0; i < HALF; i++) {
                const float own = a[i / 2 % 2], b = element<B>(tile + A_BYTES, i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2, k);
                if (!has_parts(own) || !has_parts(b)) sums[i] = multiply_add(own, b, sums[i]);
            }
        }
    }
};

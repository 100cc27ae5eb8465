// PTX of compute capability 9.0 (sm_90a): barriers of shared memory, copies of boxes of tensors (TMA), and products by whole
// warpgroups (wgmma). `tools/cuda_emulator/sm90.h` defines the same functions for a processor.

// A tensor's base, sizes, strides and box, as the driver encodes them.
struct alignas(64) TensorMap {
    unsigned long long words[16];
};

// An address of shared memory: finding it anew from a pointer in each step takes longer than the step's other instructions.
typedef unsigned Shared;

constexpr int BARRIER_BYTES = 8;

DEVICE Shared shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

DEVICE void start_barrier(Shared barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes started barriers visible to the other blocks of the cluster and to the copy engine.
DEVICE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Makes what this thread wrote to shared memory visible to tensor cores; a barrier has to follow.
DEVICE void publish_to_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Arrives once, and announces bytes that copies will bring in this phase.
DEVICE void expect_bytes(Shared barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrives at a barrier of this block, or at that with the same offset in another block of the cluster. It orders no ordinary
// accesses of other blocks: a fence for these takes as long as hundreds of products.
DEVICE void arrive_at(Shared barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }

DEVICE void arrive_at(Shared barrier, int block) {
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
        "r"(block)
        : "memory");
}

// Waits until the phase with this parity has ended.
DEVICE void wait_for_phase(Shared barrier, unsigned parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// Waits for what other blocks of the cluster send.
DEVICE void wait_for_cluster(Shared barrier, unsigned parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// Sends 16 bytes to another block of the cluster, where they count at a barrier.
DEVICE void send(Shared to, Shared barrier, int block, const unsigned (&words)[4]) {
    asm volatile(
        "{ .reg .b32 there, done;\n"
        "mapa.shared::cluster.u32 there, %0, %2; mapa.shared::cluster.u32 done, %1, %2;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [there], {%3, %4, %5, %6}, [done]; }" ::"r"(to),
        "r"(barrier), "r"(block), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
        : "memory");
}

DEVICE void prefetch(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

#define LOAD_BOX(DIMENSIONS, COORDINATES, ...)                                                                      \
    if (mask == 0) {                                                                                                \
        asm volatile("cp.async.bulk.tensor." DIMENSIONS ".shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
                     " [%0], [%1, " COORDINATES "], [%2];" ::"r"(to),                                               \
                     "l"(&map), "r"(barrier), "h"(mask), __VA_ARGS__                                \
                     : "memory");                                                                                   \
    } else {                                                                                                        \
        asm volatile("cp.async.bulk.tensor." DIMENSIONS ".shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
                     ".multicast::cluster [%0], [%1, " COORDINATES "], [%2], %3;" ::"r"(to),                        \
                     "l"(&map), "r"(barrier), "h"(mask), __VA_ARGS__                                \
                     : "memory");                                                                                   \
    }

// Begins to copy a box of a tensor to shared memory, where its bytes count at a barrier; zeros for what lies outside the tensor.
// With a mask it goes to the blocks of the cluster whose bits are set, at the same offset.
template <int RANK>
DEVICE void load_box(Shared to, const TensorMap& map, Shared barrier, const int (&at)[RANK], unsigned short mask) {
    if constexpr (RANK == 2) {
        LOAD_BOX("2d", "{%4, %5}", "r"(at[0]), "r"(at[1]))
    } else if constexpr (RANK == 3) {
        LOAD_BOX("3d", "{%4, %5, %6}", "r"(at[0]), "r"(at[1]), "r"(at[2]))
    } else if constexpr (RANK == 4) {
        LOAD_BOX("4d", "{%4, %5, %6, %7}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]))
    } else {
        LOAD_BOX("5d", "{%4, %5, %6, %7, %8}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]))
    }
}

// Begins to copy a box of pixels from (channel, x, y, image) on (im2col). Each pixel is offset by `right` and `down`, and pixels outside
// the image are zeros. Pixels follow each other as a window moves: along a line, then to the next line, then to the next image. With a
// mask they go to the blocks of the cluster whose bits are set, at the same offset.
DEVICE void load_windows(Shared to, const TensorMap& map, Shared barrier, const int (&at)[4], int right, int down, unsigned short mask) {
    const unsigned short x = (unsigned short)right, y = (unsigned short)down;
#define LOAD_WINDOWS(MULTICAST, ...)                                                                          \
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"         \
                 MULTICAST ::"r"(to), "l"(&map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), \
                 "h"(x), "h"(y), "h"(mask)                                                                    \
                 : "memory")
    if (mask == 0) LOAD_WINDOWS(" [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};");
    else LOAD_WINDOWS(".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;");
}

// The rank of this block in its cluster.
DEVICE int block_of_cluster() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}

// Waits for all threads of the cluster. It orders no accesses to memory.
DEVICE void synchronize_cluster() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

// Barriers of the 128 threads of each of some warpgroups, of which those that only arrive do not wait; 0 is the number of
// __syncthreads.
DEVICE void synchronize_warpgroups(int number, int count) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(128 * count) : "memory");
}

DEVICE void arrive_for_warpgroups(int number, int count) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(128 * count) : "memory");
}

template <int REGISTERS>
DEVICE void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS)); }

template <int REGISTERS>
DEVICE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS)); }

DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until all but the last REST groups of products are added.
template <int REST>
DEVICE void wait_for_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(REST) : "memory"); }

// Stores four matrices of 8 x 8 halves. Each lane has the address of one of their rows, and two neighbours of each matrix, like sums.
DEVICE void store_matrices(char* row, const unsigned (&from)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
                 "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}

DEVICE void store_matrices_transposed(char* row, const unsigned (&from)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
                 "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}

// Keeps the compiler from moving a sum, or an operand in registers, across this point.
DEVICE void hold(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
DEVICE void hold(int& sum) { asm volatile("" : "+r"(sum)::"memory"); }
DEVICE void hold(unsigned& pair) { asm volatile("" : "+r"(pair)::"memory"); }

// Keeps later volatile instructions behind the computation of a number that is not negative: the mask of the barrier depends on it.
DEVICE void wait_until_known(float number) { __syncwarp(number < 0 ? 1 : ~0u); }

// Sums of products in tiles of ROWS x COLUMNS_OF_TILE for compute capability 9.0. A grid of at most one block for each place on
// the device takes tile after tile. In a block, one thread of the first warpgroup keeps a ring of STAGES pairs of operand tiles
// filled by TMA; the other warpgroups (consumers) multiply them (MainLoop), each ROWS / CONSUMERS rows, and store the results. So the next
// tile's operands are loaded during the epilogue of the last one. Where consumers take TURNS, each multiplies whole tiles, one
// after the other: the products of one hide the epilogue of the other.
//
// A cluster has CLUSTER tiles below each other by CLUSTER_ACROSS side by side. Blocks with the same rows share the rows' operand, and those with the
// same columns share the columns': each loads a part of it for all of them.
//
// A launch runs KERNELS kernels, which differ in their parameters alone: the blocks of one beside those of the others.
//
// Of an operand that is the same in every run (A_FIXED, B_FIXED), such as weights, the first tiles are loaded before the earlier kernels have
// ended: at most 48 KB of them (STAGES_AHEAD). Further ones would delay the other operand's first tile if the earlier kernels end soon: with
// all stages, and without early launches, BERT-base takes 421 us rather than 398 (batch 1, H100).
//
// With several slices of k for a tile (`p.splits`), whichever is done last adds the sums of all up, in the order of the slices. If the blocks
// of a cluster have the slices (SLICES), each has one tile, and they send each other their sums.

constexpr int TILES_AHEAD = 48 * 1024 / (A_FIXED ? A_BYTES : B_BYTES), STAGES_AHEAD = TILES_AHEAD < STAGES ? TILES_AHEAD : STAGES;

DEVICE void produce(const Parameters& p, Shared tiles, Shared full, Shared empty, Index first_item, Index items_step, int block) {
    // With fewer rows than a tile, the box has only these, in groups of 8. The rest of the tile is not initialized, and not stored.
    const int rows = A::ALONG_K && (Index)p.m < ROWS / CLUSTER_ACROSS ? ((int)p.m + 7) / 8 * 8 * CLUSTER_ACROSS : ROWS;
    const int bytes = rows * DEPTH_BYTES + B_BYTES;
    int begun = 0;  // stages of which an operand is being loaded
    if constexpr (A_FIXED || B_FIXED) {
        const Work work(p, first_item, block);
        Loader loader(p, work, block);
#pragma unroll 1
        for (; begun < STAGES_AHEAD && begun < work.steps(); begun++, loader.next(p)) {
            expect_bytes(full + begun * BARRIER_BYTES, bytes);
            loader.load(p, tiles + begun * STAGE_BYTES, full + begun * BARRIER_BYTES, block, A_FIXED, B_FIXED);
        }
    }
    begin_kernel(p.lets_next_begin);
    Ring ring;
#pragma unroll 1
    for (Index item = first_item; item < (Index)p.items; item += items_step) {
        const Work work(p, item, block);
        const int steps = work.steps();
        Loader loader(p, work, block);
#pragma unroll 1
        for (int step = 0; step < steps; step++, ring.next(), loader.next(p)) {
            const Shared stage = tiles + ring.slot * STAGE_BYTES, barrier = full + ring.slot * BARRIER_BYTES;
            if ((A_FIXED || B_FIXED) && begun > 0) {
                begun--;
                loader.load(p, stage, barrier, block, !A_FIXED, !B_FIXED);
                continue;
            }
            wait_for_phase(empty + ring.slot * BARRIER_BYTES, ring.parity ^ 1);
            expect_bytes(barrier, bytes);
            loader.load(p, stage, barrier, block, true, true);
        }
    }
    if constexpr (BLOCKS_OF_CLUSTER > 1) {
        // This block must not end while others may still arrive at its barriers. Arrivals may be in flight after all threads of the
        // cluster have synchronized.
#pragma unroll 1
        for (int i = 0; i < STAGES; i++, ring.next()) wait_for_phase(empty + ring.slot * BARRIER_BYTES, ring.parity ^ 1);
    }
}

// Returns whether this slice of k is the last of its tile. Then the sums of a warpgroup become those of all slices.
DEVICE bool gather(Sum (&sums)[DOWN][HALF], const Parameters& p, const Work& work, int warpgroup, int* last) {
    const int slices = (int)p.splits, thread = threadIdx.x % 128;
    const Index part = work.tile * PARTS + warpgroup % PARTS;
    Sum* const page = (Sum*)p.scratch + (long long)part * slices * (SUMS * 128) + thread;
#pragma unroll
    for (int i = 0; i < SUMS; i++) page[(long long)work.rank * (SUMS * 128) + i * 128] = sums[i / HALF][i % HALF];
    __threadfence();
    synchronize_warpgroups(OWN_BARRIER + warpgroup, 1);
    if (thread == 0) last[warpgroup] = atomicInc((unsigned*)p.counters + part, slices - 1) == slices - 1;
    synchronize_warpgroups(OWN_BARRIER + warpgroup, 1);
    if (!last[warpgroup]) return false;
    __threadfence();
#pragma unroll
    for (int i = 0; i < SUMS; i++) sums[i / HALF][i % HALF] = 0;
#pragma unroll 1
    for (int slice = 0; slice < slices; slice++) {
        const unsigned* const from = (const unsigned*)(page + (long long)slice * (SUMS * 128));
#pragma unroll
        for (int i = 0; i < SUMS; i++) sums[i / HALF][i % HALF] += bits_as<Sum>(load_uncached(from + i * 128));
    }
    return true;
}

// The addresses in shared memory behind the tiles.
struct SharedLayout {
    Shared staged, received, full, empty, joined, end;

    DEVICE_MEMBER explicit SharedLayout(Shared tiles) : staged(tiles + STAGES * STAGE_BYTES + MainLoop::SHARED_BYTES) {
        received = staged + CONSUMERS * 4 * STAGED_BYTES;
        full = received + RECEIVED_BYTES;
        empty = full + STAGES * BARRIER_BYTES;
        joined = empty + STAGES * BARRIER_BYTES;
        end = joined + BARRIER_BYTES;
    }
};

DEVICE void consume(
    const Parameters& p, MainLoop loop, const SharedLayout& layout, char* memory, int* last, Index first_item, Index items_step, int block
) {
    char* const staging = memory + layout.staged + threadIdx.x / 32 % (4 * CONSUMERS) * STAGED_BYTES;
    const int warpgroup = threadIdx.x / 128 - 1, other = TURNS ? 1 - warpgroup : 0;
    Ring ring;
    Sum sums[DOWN][HALF];
    int turn = 0;
#pragma unroll 1
    for (Index item = first_item; item < (Index)p.items; item += items_step, turn++) {
        const Work work(p, item, block);
        const int steps = work.steps(), first_row = TURNS ? 0 : warpgroup * (ROWS / PARTS);
        if (TURNS && turn % CONSUMERS != warpgroup) {
            ring.skip(steps);
            continue;
        }
        if (TURNS && turn > 0) synchronize_warpgroups(TURN_BARRIER + warpgroup, CONSUMERS);
        const int last_slot = loop.sum(sums, ring, steps, first_row);
        // All tiles of this turn have come, so the other warpgroup waits for those of the next.
        if (TURNS && item + items_step < (Index)p.items) arrive_for_warpgroups(TURN_BARRIER + other, CONSUMERS);
        loop.finish(sums);
        release(loop.empty + last_slot * BARRIER_BYTES);
        loop.subtract(sums, p, work, first_row);
        if constexpr (SPLIT) {
            if (!gather(sums, p, work, warpgroup, last)) continue;
        }
        if constexpr (SLICES > 1) {
            if (!join(sums, layout.received, layout.joined, memory + layout.received)) continue;
        }
        const Index column = work.column + (SLICES > 1 ? work.rank * OWN_COLUMNS : 0);
        store_sums(sums, p, at_group(p, work.batch), work.row + first_row, column, staging);
    }
}

struct AllParameters {
    Parameters of_kernel[KERNELS];
};

extern "C" __global__ void __cluster_dims__(BLOCKS_OF_CLUSTER * SLICES, 1, 1) __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ AllParameters all) {
    const Parameters& p = all.of_kernel[KERNELS > 1 ? blockIdx.y : 0];
    extern __shared__ uint4 shared[];
    // Swizzled tiles begin at multiples of 1024 bytes.
    const Shared tiles = (shared_address(shared) + 1023) / 1024 * 1024;
    const SharedLayout layout(tiles);
    char* const memory = (char*)shared - shared_address(shared);
    int* const last = (int*)(memory + layout.end);
    if (threadIdx.x == 0) {
        prefetch(p.a_map);
        prefetch(p.b_map);
        for (int slot = 0; slot < STAGES; slot++) {
            start_barrier(layout.full + slot * BARRIER_BYTES, 1);
            start_barrier(layout.empty + slot * BARRIER_BYTES, ARRIVALS);
        }
        if (SLICES > 1) {
            start_barrier(layout.joined, 1);
            if (block_of_cluster() < OWNERS) expect_bytes(layout.joined, RECEIVED_BYTES);
        }
        for (int i = 0; i < 3; i++) last[CONSUMERS + i] = 0;
        publish_barriers();
    }
    if constexpr (BLOCKS_OF_CLUSTER * SLICES > 1) synchronize_cluster();
    else __syncthreads();
    const int block = BLOCKS_OF_CLUSTER > 1 ? block_of_cluster() : 0;
    const Index first_item = blockIdx.x / (BLOCKS_OF_CLUSTER * SLICES), items_step = gridDim.x / (BLOCKS_OF_CLUSTER * SLICES);
    if (threadIdx.x < 128) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce(p, tiles, layout.full, layout.empty, first_item, items_step, block);
    } else {
        take_registers<CONSUMER_REGISTERS>();
        begin_kernel(p.lets_next_begin);
        const MainLoop loop(p, tiles, layout.full, layout.empty, memory + tiles, last + CONSUMERS);
        consume(p, loop, layout, memory, last, first_item, items_step, block);
    }
}

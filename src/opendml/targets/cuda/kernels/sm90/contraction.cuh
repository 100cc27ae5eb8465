// Sums of products in tiles of ROWS x COLUMNS_OF_TILE for compute capability 9.0. A grid of at most one block for each place on
// the device takes tile after tile. In a block, one thread of the first warpgroup keeps a ring of STAGES pairs of operand tiles
// filled by TMA; the other warpgroups (consumers) multiply them, each ROWS / CONSUMERS rows, and store the results. So the next
// tile's operands are loaded during the epilogue of the last one. Where consumers take TURNS, each multiplies whole tiles, one
// after the other: the products of one hide the epilogue of the other.
//
// Blocks of a cluster have tiles below each other, and share the columns' operand: each loads a part of it for all of them.
//
// With several slices of k for a tile (`p.team`), whichever is done last adds the sums of all up, in the order of the slices.

// The place in the ring, and the parity of the phase there.
struct Ring {
    int slot = 0;
    unsigned parity = 0;

    DEVICE_MEMBER void next() {
        if (++slot == STAGES) slot = 0, parity ^= 1;
    }

    DEVICE_MEMBER void skip(int steps) {
        slot += steps;
        parity ^= slot / STAGES % 2;
        slot %= STAGES;
    }
};

DEVICE void produce(const Parameters& p, Shared tiles, Shared full, Shared empty, Index first_item, Index items_step, int block) {
    // Of fewer rows than a tile has, the box has no more than these, in groups of 8; what follows them in the tile is never stored.
    const int rows = A::ALONG_K && (Index)p.rows < ROWS ? ((int)p.rows + 7) / 8 * 8 : ROWS;
    const int bytes = rows * DEPTH_BYTES + B_BYTES;
    Ring ring;
#pragma unroll 1
    for (Index item = first_item; item < (Index)p.items; item += items_step) {
        const Work work(p, item, block);
        const int steps = work.steps();
        Loader loader(p, work);
#pragma unroll 1
        for (int step = 0; step < steps; step++, ring.next()) {
            wait_for_phase(empty + ring.slot * BARRIER_BYTES, ring.parity ^ 1);
            expect_bytes(full + ring.slot * BARRIER_BYTES, bytes);
            loader.load(p, tiles + ring.slot * STAGE_BYTES, full + ring.slot * BARRIER_BYTES, block);
        }
    }
}

// Describes 64 rows of an operand's tile to the tensor cores, from a row and a k on. Elements along k: groups of 8 rows of 128
// bytes follow each other. Along rows: so do groups of 8 along k, and boxes of 64 rows. Addresses have 18 bits here; above them
// shared memory's have the rank of the block in its cluster.
template <typename Operand>
DEVICE unsigned long long descriptor(Shared tile, int row, int k) {
    constexpr unsigned GROUP = 8 * DEPTH_BYTES, BOX = DEPTH * DEPTH_BYTES;
    constexpr unsigned long long LAYOUT = SWIZZLED | (unsigned long long)(GROUP / 16) << 32 | (unsigned long long)(BOX / 16) << 16;
    const int offset = row * DEPTH_BYTES + k * (Operand::ALONG_K ? (int)sizeof(typename Operand::Element) : DEPTH_BYTES);
    return LAYOUT + (tile % (1 << 18) / 16 + offset / 16);
}

// Adds the products of the tiles of one place in the ring.
DEVICE void multiply(float (&sums)[DOWN][HALF], Shared a_tile, Shared b_tile, bool adds) {
    constexpr int K = 32 / (int)sizeof(A::Element);
#pragma unroll
    for (int k = 0; k < DEPTH; k += K) {
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            multiply_warpgroup(sums[i], descriptor<A>(a_tile, 64 * i, k), descriptor<B>(b_tile, 0, k), adds || k > 0);
        }
    }
}

DEVICE void hold_all(float (&sums)[DOWN][HALF]) {
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
#pragma unroll
        for (int j = 0; j < HALF; j++) hold(sums[i][j]);
    }
}

// Whether this slice of k is the last of its tile; then the sums of a warpgroup become those of all slices.
DEVICE bool gather(float (&sums)[DOWN][HALF], const Parameters& p, const Work& work, int warpgroup, int* last) {
    const int slices = (int)p.team, thread = threadIdx.x % 128;
    const Index part = work.tile * PARTS + warpgroup % PARTS;
    float* const page = (float*)p.scratch + (long long)part * slices * (SUMS * 128) + thread;
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
        for (int i = 0; i < SUMS; i++) sums[i / HALF][i % HALF] += bits_as<float>(load_uncached(from + i * 128));
    }
    return true;
}

// Transposes among the four lanes of a quad: lane q gets the q-th pair of each.
DEVICE void transpose_quad(float (&pairs)[4][2]) {
    const int lane = threadIdx.x % 4;
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2) {
        const bool is_high = lane & bit;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & bit) continue;
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float &low = pairs[i][j], &high = pairs[i | bit][j];
                const float found = __shfl_xor_sync(~0u, is_high ? low : high, bit);
                if (is_high) low = found;
                else high = found;
            }
        }
    }
}

// Makes the results of the sums of a warpgroup, whose first row is `row`. A thread has the sums of pairs of columns in two rows of
// each block of 8 columns; by transposing four blocks it gets all 8 columns of one, so that it loads and stores units.
DEVICE void store_sums(const float (&sums)[DOWN][HALF], const Parameters& p, const Offsets& at, Index row, Index column) {
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
#pragma unroll
        for (int lower = 0; lower < 2; lower++) {
            const Index own_row = row + 64 * i + 16 * warp + 8 * lower + lane / 4;
            const bool is_there = own_row < (Index)p.rows;
            const Offsets of_row = at_m(p, at, is_there ? own_row : 0);
#pragma unroll
            for (int block = 0; block < COLUMNS_OF_TILE / 8; block += 4) {
                float pairs[4][2];
#pragma unroll
                for (int j = 0; j < 8; j++) pairs[j / 2][j % 2] = sums[i][(block + j / 2) * 4 + 2 * lower + j % 2];
                transpose_quad(pairs);
                const Index own_column = column + (block + lane % 4) * 8;
                const Index left = (Index)p.columns - own_column;
                if (is_there && left > 0) {
                    store_unit(p, at_n(p, of_row, own_column), reinterpret_cast<float (&)[8]>(pairs), left < 8 ? (int)left : 8);
                }
            }
        }
    }
}

// Tells all blocks of the cluster that a warp has done with a place in the ring.
DEVICE void release(Shared empty) {
    const int lane = threadIdx.x % 32;
    if constexpr (CLUSTER > 1) {
        if (lane < CLUSTER) arrive_at(empty, lane);
    } else {
        if (lane == 0) arrive_at(empty);
    }
}

DEVICE void consume(const Parameters& p, Shared tiles, Shared full, Shared empty, int* last, Index first_item, Index items_step, int block) {
    const int warpgroup = threadIdx.x / 128 - 1, other = TURNS ? 1 - warpgroup : 0;
    Ring ring;
    float sums[DOWN][HALF];
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
        int before = 0;
        hold_all(sums);
#pragma unroll 1
        for (int step = 0; step < steps; step++, ring.next()) {
            wait_for_phase(full + ring.slot * BARRIER_BYTES, ring.parity);
            const Shared a_tile = tiles + ring.slot * STAGE_BYTES;
            begin_products();
            multiply(sums, a_tile + first_row * DEPTH_BYTES, a_tile + A_BYTES, step > 0);
            commit_products();
            // The products of the step before are added when those of this one are under way.
            wait_for_products<1>();
            if (step > 0) release(empty + before * BARRIER_BYTES);
            before = ring.slot;
        }
        // All tiles of this turn have come, so the other warpgroup waits for those of the next.
        if (TURNS && item + items_step < (Index)p.items) arrive_for_warpgroups(TURN_BARRIER + other, CONSUMERS);
        wait_for_products<0>();
        hold_all(sums);
        release(empty + before * BARRIER_BYTES);
        if constexpr (SPLIT) {
            if (!gather(sums, p, work, warpgroup, last)) continue;
        }
        store_sums(sums, p, at_group(p, work.batch), work.row + first_row, work.column);
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    extern __shared__ uint4 memory[];
    // Swizzled tiles begin at multiples of 1024 bytes.
    const Shared tiles = (shared_address(memory) + 1023) / 1024 * 1024;
    const Shared full = tiles + STAGES * STAGE_BYTES, empty = full + STAGES * BARRIER_BYTES;
    int* const last = (int*)((char*)memory + (empty + STAGES * BARRIER_BYTES - shared_address(memory)));
    if (threadIdx.x == 0) {
        prefetch(p.a_map);
        prefetch(p.b_map);
        for (int slot = 0; slot < STAGES; slot++) {
            start_barrier(full + slot * BARRIER_BYTES, 1);
            start_barrier(empty + slot * BARRIER_BYTES, ARRIVALS);
        }
        publish_barriers();
    }
    if constexpr (CLUSTER > 1) synchronize_cluster();
    else __syncthreads();
    begin_kernel();
    const int block = CLUSTER > 1 ? block_of_cluster() : 0;
    const Index first_item = blockIdx.x / CLUSTER, items_step = gridDim.x / CLUSTER;
    if (threadIdx.x < 128) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce(p, tiles, full, empty, first_item, items_step, block);
    } else {
        take_registers<CONSUMER_REGISTERS>();
        consume(p, tiles, full, empty, last, first_item, items_step, block);
    }
    // No block ends while another may still arrive at its barriers.
    if constexpr (CLUSTER > 1) {
        __syncwarp();
        synchronize_cluster();
    }
}

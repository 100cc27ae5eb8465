// Code of all main loops of products by warpgroups: the ring of stages, and the operands of `wgmma` in shared memory.

// A stage of the ring, and the parity of the phase of its barriers.
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

// Tells the blocks that share an operand with this one that a warp no longer reads a stage of the ring.
DEVICE void release(Shared empty) {
    const int lane = threadIdx.x % 32;
    if constexpr (BLOCKS_OF_CLUSTER > 1) {
        const int own = CLUSTER_ACROSS > 1 && CLUSTER > 1 ? block_of_cluster() : 0, down = lane - CLUSTER_ACROSS;
        // First those with the same rows, then the others with the same columns.
        const int peer = CLUSTER_ACROSS == 1 ? lane : lane < CLUSTER_ACROSS ? own / CLUSTER_ACROSS * CLUSTER_ACROSS + lane : (down + (down >= own / CLUSTER_ACROSS)) * CLUSTER_ACROSS + own % CLUSTER_ACROSS;
        if (lane < PEERS) arrive_at(empty, peer);
    } else {
        if (lane == 0) arrive_at(empty);
    }
}

// Returns the matrix descriptor of 64 rows of an operand's tile, from a row and a k on. If k is contiguous, groups of 8 rows of 128 bytes
// follow each other. If rows are, groups of 8 along k follow each other, and boxes of 64 rows. Addresses have 18 bits here; the upper bits
// of an address in shared memory are the rank of the block in its cluster.
template <typename Operand>
DEVICE unsigned long long descriptor(Shared tile, int row, int k) {
    constexpr unsigned GROUP = 8 * DEPTH_BYTES, BOX = DEPTH * DEPTH_BYTES;
    constexpr unsigned long long LAYOUT = SWIZZLED | (unsigned long long)(GROUP / 16) << 32 | (unsigned long long)(BOX / 16) << 16;
    const int offset = row * DEPTH_BYTES + k * (Operand::ALONG_K ? (int)sizeof(typename Operand::Element) : DEPTH_BYTES);
    return LAYOUT + (tile % (1 << 18) / 16 + offset / 16);
}

DEVICE void hold_all(Sum (&sums)[DOWN][HALF]) {
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
#pragma unroll
        for (int j = 0; j < HALF; j++) hold(sums[i][j]);
    }
}

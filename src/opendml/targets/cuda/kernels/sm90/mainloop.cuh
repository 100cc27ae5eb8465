// Sums products of FLOAT16, or of bytes: a warpgroup multiplies the tiles of one stage after the other, as the copy engine has loaded them.

// Issues the products of the tiles of one stage.
DEVICE void multiply(Sum (&sums)[DOWN][HALF], Shared a_tile, Shared b_tile, bool adds) {
    constexpr int K = 32 / (int)sizeof(A::Element);
#pragma unroll
    for (int k = 0; k < DEPTH; k += K) {
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            multiply_warpgroup(sums[i], descriptor<A>(a_tile, 64 * i, k), descriptor<B>(b_tile, 0, k), adds || k > 0);
        }
    }
}

struct MainLoop {
    static constexpr int SHARED_BYTES = Shifts::SHARED_BYTES;  // beside the tiles

    Shared tiles, full, empty;
    char* memory;
    Shifts shifts;

    DEVICE_MEMBER MainLoop(const Parameters&, Shared tiles, Shared full, Shared empty, char* memory, int*)
        : tiles(tiles), full(full), empty(empty), memory(memory), shifts(memory + STAGES * STAGE_BYTES) {}

    // Adds the products of all steps along k, but for the last ones, which are in flight. Returns the slot that they still read.
    DEVICE_MEMBER int sum(Sum (&sums)[DOWN][HALF], Ring& ring, int steps, int first_row) {
        int before = 0;
        hold_all(sums);
#pragma unroll 1
        for (int step = 0; step < steps; step++, ring.next()) {
            wait_for_phase(full + ring.slot * BARRIER_BYTES, ring.parity);
            const Shared a_tile = tiles + ring.slot * STAGE_BYTES;
            begin_products();
            multiply(sums, a_tile + first_row * DEPTH_BYTES, a_tile + A_BYTES, step > 0);
            commit_products();
            shifts.take(memory + ring.slot * STAGE_BYTES);
            // The products of the step before are added when those of this one are under way.
            wait_for_products<1>();
            if (step > 0) release(empty + before * BARRIER_BYTES);
            before = ring.slot;
        }
        return before;
    }

    DEVICE_MEMBER void finish(Sum (&sums)[DOWN][HALF]) {
        wait_for_products<0>();
        hold_all(sums);
    }

    // Corrects the sums of products by the zero points of the operands.
    DEVICE_MEMBER void subtract(Sum (&sums)[DOWN][HALF], const Parameters& p, const Work& work, int first_row) {
        shifts.subtract(sums, p, work, first_row);
    }
};

// Units of groups in the shared memory of a block: a thread copies what it will use itself, so that it waits for nobody.

DEVICE char* slot_of(char* room, int k) { return room + (k * THREADS + threadIdx.x) * UNIT_BYTES; }

// Begins to copy the units of a thread from its k-th on, COUNT of them and none from `most` on.
template <int COUNT>
DEVICE void copy_units(char* room, const Parameters& p, const Tile& tile, Index first, Index end, int k, int most) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        if (k + i < most && is_inside(tile, first, end, k + i)) {
            copy_held(slot_of(room, k + i), p, unit_at(p, tile, first + (k + i) * TY + tile.ty));
        }
    }
}

template <int COUNT>
DEVICE void take_units(Held<VECTOR> (&held)[COUNT], char* room, const Tile& tile, Index first, Index end, int k, int most) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        if (k + i < most && is_inside(tile, first, end, k + i)) take_held<VECTOR>(held[i], slot_of(room, k + i));
    }
}

// Split k within a cluster: each block sums one slice of k of the same tile. OWNERS of the blocks store results, each OWN_COLUMNS columns.
// A block sends its sums to the owners of their columns, which add them in the order of the slices. An exchange through global memory takes
// thousands of cycles longer.

constexpr int OWN = OWN_COLUMNS / 2, OWN_UNITS = DOWN * OWN / 4, SENDERS = 128 * PARTS;  // sums of a thread, in units of 4
constexpr int RECEIVED_BYTES = (SLICES - 1) * OWN_UNITS * SENDERS * 16;
static_assert(OWN % 4 == 0);

// Returns where a thread finds a unit of the sums that a slice has sent to this block.
DEVICE constexpr int place_of(int slot, int unit, int thread) { return ((slot * OWN_UNITS + unit) * SENDERS + thread) * 16; }

// Replaces the first sums of a thread by the totals over all slices, for the columns that this block stores. Returns whether it stores any.
DEVICE bool join(Sum (&sums)[DOWN][HALF], Shared received, Shared barrier, const char* memory) {
    const int rank = block_of_cluster(), thread = threadIdx.x - 128;
#pragma unroll
    for (int owner = 0; owner < OWNERS; owner++) {
        if (owner == rank) continue;
        const int slot = rank < owner ? rank : rank - 1;
#pragma unroll
        for (int unit = 0; unit < OWN_UNITS; unit++) {
            const Sum* const from = sums[unit / (OWN / 4)] + owner * OWN + unit % (OWN / 4) * 4;
            const unsigned words[4] = {bits_as<unsigned>(from[0]), bits_as<unsigned>(from[1]), bits_as<unsigned>(from[2]), bits_as<unsigned>(from[3])};
            send(received + place_of(slot, unit, thread), barrier, owner, words);
        }
    }
    if (rank >= OWNERS) return false;
    wait_for_cluster(barrier, 0);
#pragma unroll
    for (int unit = 0; unit < OWN_UNITS; unit++) {
        Sum* const own = sums[unit / (OWN / 4)] + unit % (OWN / 4) * 4;
        Vector<Sum, 4> mine, total = {};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            mine.data[i] = own[i];
#pragma unroll
            for (int owner = 1; owner < OWNERS; owner++) mine.data[i] = owner == rank ? own[owner * OWN + i] : mine.data[i];
        }
#pragma unroll
        for (int slice = 0; slice < SLICES; slice++) {
            Vector<Sum, 4> other = mine;
            if (slice != rank) load(other, memory + place_of(slice < rank ? slice : slice - 1, unit, thread));
#pragma unroll
            for (int i = 0; i < 4; i++) total.data[i] += other.data[i];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) own[i] = total.data[i];
    }
    return true;
}

// Values that the blocks of a team publish to each other in global memory, round after round. All blocks are resident (a cooperative launch).
// A value lies in two words, each half beside the number of the round. A block that reads this number has the half, so no accesses need an
// order. Numbers continue from launch to launch, so slots are never cleared: a block reads its next number from its own slot of the first
// set. Rounds use two sets of slots in turn, because a block may be one round ahead.

template <typename Value, int LINES>
struct PublishedValues {
    static constexpr int BYTES = 16;

    int rank, blocks;
    unsigned number, round;
    char* slots;

    // Finds the slots of one of the LINES lines of the team.
    DEVICE_MEMBER PublishedValues(const Parameters& p, int line)
        : rank(blockIdx.x % (int)p.team), blocks((int)p.team), round(0),
          slots((char*)p.counters + ((long long)(blockIdx.x - rank) * 2 * LINES + line) * BYTES) {
        unsigned long long words[2];
        load_relaxed(words, slot(rank));
        number = (unsigned)words[0] + 1;
    }

    DEVICE_MEMBER char* slot(int block) const { return slots + (round % 2 * blocks + block) * LINES * BYTES; }

    DEVICE_MEMBER void publish(Value value) const {
        unsigned long long bits = 0;
        memcpy(&bits, &value, sizeof(value));
        store_relaxed(slot(rank), {bits << 32 | number, bits >> 32 << 32 | number});
    }

    // Waits for the value of a block in this round, and returns it.
    DEVICE_MEMBER Value find(int block) const {
        unsigned long long words[2];
        do load_relaxed(words, slot(block));
        while ((unsigned)words[0] != number || (unsigned)words[1] != number);
        const unsigned long long bits = words[1] >> 32 << 32 | words[0] >> 32;
        Value value;
        memcpy(&value, &bits, sizeof(value));
        return value;
    }

    DEVICE_MEMBER void next() { number++, round++; }
};

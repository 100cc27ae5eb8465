// What the blocks of a team leave to each other, round after round, in global memory; all of them are resident (a cooperative
// launch). A value lies in two words, each half beside the number of the round, so whoever finds that number has the half: nothing
// needs an order. Numbers go on from launch to launch, so nothing is cleared. Every second round has slots of its own, as a block
// may be one ahead; what a block has left in those of the first says where its numbers go on.

template <typename Value, int LINES>
struct Posts {
    static constexpr int BYTES = 16;

    int rank, blocks;
    unsigned number, round;
    char* slots;

    // For one of LINES lines that the team goes along.
    DEVICE_MEMBER Posts(const Parameters& p, int line)
        : rank(blockIdx.x % (int)p.team), blocks((int)p.team), round(0),
          slots((char*)p.counters + ((long long)(blockIdx.x - rank) * 2 * LINES + line) * BYTES) {
        unsigned long long words[2];
        look_at(words, slot(rank));
        number = (unsigned)words[0] + 1;
    }

    DEVICE_MEMBER char* slot(int block) const { return slots + (round % 2 * blocks + block) * LINES * BYTES; }

    DEVICE_MEMBER void post(Value value) const {
        unsigned long long bits = 0;
        memcpy(&bits, &value, sizeof(value));
        leave(slot(rank), {bits << 32 | number, bits >> 32 << 32 | number});
    }

    // What a block has left, or will.
    DEVICE_MEMBER Value find(int block) const {
        unsigned long long words[2];
        do look_at(words, slot(block));
        while ((unsigned)words[0] != number || (unsigned)words[1] != number);
        const unsigned long long bits = words[1] >> 32 << 32 | words[0] >> 32;
        Value value;
        memcpy(&value, &bits, sizeof(value));
        return value;
    }

    DEVICE_MEMBER void next() { number++, round++; }
};

// Loads the operands of a contraction to shared memory, in tiles of ROWS x DEPTH elements. A thread loads units of UNIT neighbours along k or
// along the rows, one after the other. COPIED operands do not pass registers. Of others, a thread joins QUAD neighbours along k. If units
// of these are four bytes along the rows, they are TURNED. Elements outside the operand, or whose guard is false, are 0.

// Transposes 4 x 4 bytes.
DEVICE void turn_bytes(unsigned (&words)[4]) {
    const unsigned low[2] = {__byte_perm(words[0], words[1], 0x5140), __byte_perm(words[2], words[3], 0x5140)};
    const unsigned high[2] = {__byte_perm(words[0], words[1], 0x7362), __byte_perm(words[2], words[3], 0x7362)};
    words[0] = __byte_perm(low[0], low[1], 0x5410);
    words[1] = __byte_perm(low[0], low[1], 0x7632);
    words[2] = __byte_perm(high[0], high[1], 0x5410);
    words[3] = __byte_perm(high[0], high[1], 0x7632);
}

template <typename Operand, bool COMPUTED = Operand::COMPUTED>
struct Loader {
    typedef typename Operand::Element Element;
    static constexpr bool ALONG_K = Operand::ALONG_K;
    static constexpr int DEPTH = Operand::DEPTH;
    static constexpr int UNIT = Operand::UNIT, QUAD = Operand::QUAD;
    static constexpr int ALONG_FAST = ALONG_K ? UNIT * QUAD : UNIT, FAST = (ALONG_K ? DEPTH : Operand::ROWS) / ALONG_FAST;
    static constexpr int ALONG_SLOW = ALONG_K ? 1 : QUAD, SLOW = (ALONG_K ? Operand::ROWS : DEPTH) / ALONG_SLOW;
    static constexpr int STEP = THREADS / FAST, EACH = (SLOW + STEP - 1) / STEP;
    static constexpr bool TURNED = !Operand::COPIED && !Operand::COMPUTED && UNIT > 1;
    static_assert(THREADS % FAST == 0 && (!Operand::COPIED || QUAD == 1) && (!TURNED || (UNIT == 4 && QUAD == 4 && !ALONG_K)));

    Offsets rows[ALONG_K ? EACH : 1];
    int there[ALONG_K ? EACH : 1];  // rows from here on
    Vector<Element, QUAD> kept[Operand::COPIED || Operand::COMPUTED || TURNED ? 1 : EACH];
    unsigned words[TURNED ? EACH : 1][4];

    DEVICE_MEMBER static int fast() { return threadIdx.x % FAST * ALONG_FAST; }
    DEVICE_MEMBER static int slow(int i) { return (threadIdx.x / FAST + i * STEP) * ALONG_SLOW; }
    DEVICE_MEMBER static bool has(int i) { return SLOW % STEP == 0 || slow(i) < SLOW * ALONG_SLOW; }
    DEVICE_MEMBER static Element* slot(Element* tile, int i) {
        return tile + (ALONG_K ? Operand::slot(slow(i), fast()) : Operand::slot(fast(), slow(i)));
    }

    // Finds the rows of this thread, from `first` on, of `count` rows.
    DEVICE_MEMBER void start(const Parameters& p, const Offsets& at, Index first, Index count) {
#pragma unroll
        for (int i = 0; i < (ALONG_K ? EACH : 1); i++) {
            const Index row = first + (ALONG_K ? slow(i) : fast()), left = count - row;
            there[i] = left < 0 ? 0 : left < UNIT ? (int)left : UNIT;
            rows[i] = Operand::at_row(p, at, left > 0 ? row : 0);
        }
    }

    // Begins to load the tile from k = `first` to `end`. `steps`, if not null, has the offsets of each k.
    DEVICE_MEMBER void begin(const Parameters& p, Element* tile, Index first, Index end, const Offsets* steps) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (!has(i)) continue;
            const int ahead = ALONG_K ? fast() : slow(i);
            const Index k = first + ahead;
            const int own = ALONG_K ? i : 0;
            if constexpr (Operand::COPIED) {
                const bool begins = k < end && there[own] > 0;
                const Offsets at = steps ? moved(rows[own], steps[ahead]) : Operand::at_k(p, rows[own], begins ? k : 0);
                bool guard;
                const char* from = Operand::place(p, at, guard);
                const int count = !ALONG_K ? there[own] : end - k < UNIT ? (int)(end - k) : UNIT;
                if (Operand::PARTIAL && begins && guard && count < UNIT) copy_part(slot(tile, i), from, count);
                else copy_async<UNIT * sizeof(Element)>((char*)slot(tile, i), from, begins && guard);
            } else {
#pragma unroll
                for (int j = 0; j < QUAD; j++) {
                    const bool is_there = k + j < end && there[own] > 0;
                    const Offsets at = steps ? moved(rows[own], steps[ahead + j]) : Operand::at_k(p, rows[own], is_there ? k + j : 0);
                    if constexpr (TURNED) {
                        bool guard;
                        words[i][j] = 0;
                        if (is_there) load(words[i][j], Operand::place(p, at, guard));
                    } else {
                        kept[i].data[j] = Element();
                        if (is_there) kept[i].data[j] = Operand::value(p, at);
                    }
                }
            }
        }
    }

    // Copies `count` elements of a unit, and stores zeros for the others.
    DEVICE_MEMBER static void copy_part(Element* to, const char* from, int count) {
        for (int i = 0; i < UNIT; i++) {
            to[i] = Element();
            if (i < count) load(to[i], from + i * sizeof(Element));
        }
    }

    // Stores the units that were loaded to registers.
    DEVICE_MEMBER void finish(const Parameters&, Element* tile) {
        if constexpr (!Operand::COPIED) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                if (!has(i)) continue;
                if constexpr (TURNED) {
                    turn_bytes(words[i]);
#pragma unroll
                    for (int row = 0; row < UNIT; row++) store((char*)(slot(tile, i) + Operand::slot(row, 0)), words[i][row]);
                } else {
                    store((char*)slot(tile, i), kept[i]);
                }
            }
        }
    }
};

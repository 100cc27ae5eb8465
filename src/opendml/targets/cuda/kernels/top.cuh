// The least elements of lines, in order. Words are keys and positions, so no two are equal. Tiles are sorted in shared memory by
// networks of comparisons. If all that is wanted of a line fits half a tile (NARROW_TOP), the first words of tiles make new
// tiles, until one is left; else tiles are put together in global memory. All blocks are resident where a line has several
// tiles (a cooperative launch).

struct alignas(sizeof(Element) * 2) Word {
    Element key;
    unsigned position;
};

DEVICE bool is_less(const Word& a, const Word& b) {
    return a.key < b.key || (a.key == b.key && a.position < b.position);
}

DEVICE Word nothing() {
    Word word;
    word.key = greatest<Element>;
    word.position = greatest<unsigned>;
    return word;
}

// What other blocks wrote, past this one's L1 cache.
template <typename Bits>
DEVICE Word load_word_of(const Word* from) {
    Bits bits[2];
    load_uncached(bits, from);
    return {(Element)bits[0], (unsigned)bits[1]};
}

DEVICE Word load_word(const Word* from) {
    if constexpr (sizeof(Element) == 4) return load_word_of<unsigned>(from);
    else return load_word_of<unsigned long long>(from);
}

// All blocks arrive, for the round-th time from 1 on, before one goes on.
DEVICE void meet(const Parameters& p, unsigned round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned* counter = (unsigned*)p.counters;
        arrive(counter);
        while (acquire(counter) < round * gridDim.x) {}
    }
    __syncthreads();
}

// The last block to come leaves the counters as they were.
DEVICE void leave(const Parameters& p) {
    unsigned* counters = (unsigned*)p.counters;
    if (threadIdx.x == 0 && atomicInc(counters + 1, gridDim.x - 1) == gridDim.x - 1) atomicExch(counters, 0u);
}

DEVICE void exchange(Word& a, Word& b, bool is_down) {
    if (is_less(b, a) == is_down) return;
    const Word before = a;
    a = b;
    b = before;
}

// Sorts parts of `size` words from the word `first` on, each of which goes up, then down: strides from half a tile down.
DEVICE void merge_tile(Word* words, long long first, long long size) {
    const int half = size / 2 < TILE / 2 ? (int)(size / 2) : TILE / 2;
    for (int stride = half; stride > 0; stride /= 2) {
        for (int pair = threadIdx.x; pair < TILE / 2; pair += THREADS) {
            const int low = 2 * pair - (pair & (stride - 1));
            exchange(words[low], words[low + stride], ((first + low) & size) != 0);
        }
        __syncthreads();
    }
}

DEVICE void sort_tile(Word* words, long long first) {
    __syncthreads();
    for (int size = 2; size <= TILE; size *= 2) merge_tile(words, first, size);
}

DEVICE void load_elements(Word* words, const Parameters& p, const Offsets& start, Index first) {
    for (int i = threadIdx.x; i < TILE; i += THREADS) {
        const Index unit = first + i;
        words[i] = nothing();
        if (unit < (Index)p.units) {
            words[i].key = element(p, in_group<1>(p, start, unit));
            words[i].position = (unsigned)unit;
        }
    }
}

DEVICE void put_words(const Parameters& p, const Offsets& start, const Word* words, long long first) {
    for (int i = threadIdx.x; i < TILE; i += THREADS) {
        if (first + i < p.rows) put(p, start, first + i, (Placed)words[i].position);
    }
}

// The first words of tiles make new tiles.
DEVICE void find_first(Word* words, const Parameters& p) {
    const int wanted = (int)p.rows;
    Word* from = nullptr;
    Word* to = (Word*)p.scratch;
    Word* other = to + p.items * p.slice;
    long long length = p.units;
    unsigned round = 0;
    while (true) {
        const long long tiles = (length + TILE - 1) / TILE;
        for (long long item = blockIdx.x; item < p.items * tiles; item += gridDim.x) {
            const Index line = (Index)(item / tiles);
            const long long first = item % tiles * TILE;
            const Offsets start = at_group(p, line);
            if (from == nullptr) {
                load_elements(words, p, start, (Index)first);
            } else {
                for (int i = threadIdx.x; i < TILE; i += THREADS) {
                    words[i] = first + i < length ? load_word(from + line * length + first + i) : nothing();
                }
            }
            sort_tile(words, 0);
            if (tiles == 1) put_words(p, start, words, 0);
            else for (int i = threadIdx.x; i < wanted; i += THREADS) to[item * wanted + i] = words[i];
            __syncthreads();
        }
        if (tiles == 1) break;
        meet(p, ++round);
        from = to;
        to = other;
        other = from;
        length = tiles * wanted;
    }
    if (round > 0) leave(p);
}

// Lines of p.slice words, a power of two.
DEVICE void sort_all(Word* words, const Parameters& p) {
    Word* all = (Word*)p.scratch;
    const long long tiles = p.slice / TILE;
    unsigned round = 0;
    for (long long size = TILE; size <= p.slice; size *= 2) {
        for (long long stride = size / 2; stride >= TILE; stride /= 2) {
            const long long count = p.items * (p.slice / 2);
            for (long long pair = (long long)blockIdx.x * THREADS + threadIdx.x; pair < count;
                 pair += (long long)gridDim.x * THREADS) {
                const long long low = 2 * pair - (pair & (stride - 1));
                Word a = load_word(all + low), b = load_word(all + low + stride);
                exchange(a, b, (low & (p.slice - 1) & size) != 0);
                all[low] = a;
                all[low + stride] = b;
            }
            meet(p, ++round);
        }
        for (long long item = blockIdx.x; item < p.items * tiles; item += gridDim.x) {
            const Index line = (Index)(item / tiles);
            const long long first = item % tiles * TILE;
            const Offsets start = at_group(p, line);
            if (size == TILE) {
                load_elements(words, p, start, (Index)first);
                sort_tile(words, first);
            } else {
                for (int i = threadIdx.x; i < TILE; i += THREADS) words[i] = load_word(all + item * TILE + i);
                __syncthreads();
                merge_tile(words, first, size);
            }
            if (size == p.slice) put_words(p, start, words, first);
            else for (int i = threadIdx.x; i < TILE; i += THREADS) all[item * TILE + i] = words[i];
            __syncthreads();
        }
        if (size < p.slice) meet(p, ++round);
    }
    if (round > 0) leave(p);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    __shared__ Word words[TILE];
    if constexpr (NARROW_TOP) find_first(words, p);
    else sort_all(words, p);
}

// Words of a key and a position, in the order of the keys and then of the positions, so that no two are equal. Networks of
// comparisons sort them in shared memory.

// As one number where there is one so wide: the key lies above the position.
struct alignas(2 * sizeof(Element)) Word {
    unsigned position;
    Element key;
};

DEVICE bool is_less(const Word& a, const Word& b) {
    if constexpr (sizeof(Word) == 8) return bits_as<unsigned long long>(a) < bits_as<unsigned long long>(b);
    else return is_before(a.key, a.position, b.key, b.position);
}

// Behind all others.
DEVICE Word nothing() { return {greatest<unsigned>, greatest<Element>}; }

DEVICE void exchange(Word& a, Word& b, bool is_down) {
    const bool is_turned = is_less(b, a) != is_down;
    const Word before = a;
    a = is_turned ? b : a;
    b = is_turned ? before : b;
}

// Where of neighbouring words each lies, so that those that threads want together are in different banks.
DEVICE int bank_of(int number) { return number ^ (number >> 3 & 15); }

// Of a merge of `count` words the strides from `low` << (BITS - 1) down to `low`: a thread has the words that these compare with
// each other. A word of number i is at(i); those go down whose number, from `first` on, has the bit `down`.
template <int BITS, typename Count, typename At>
DEVICE void merge_strides(At at, Count count, Count low, Count thread, Count threads, long long first, long long down) {
    for (Count unit = thread; unit < count >> BITS; unit += threads) {
        const Count rest = unit & (low - 1), number = ((unit - rest) << BITS) + rest;
        const bool is_down = ((first + number) & down) != 0;
        Word mine[1 << BITS];
#pragma unroll
        for (int i = 0; i < 1 << BITS; i++) mine[i] = at(number + i * low);
#pragma unroll
        for (int step = 1 << (BITS - 1); step > 0; step /= 2) {
#pragma unroll
            for (int i = 0; i < 1 << BITS; i++) {
                if (!(i & step)) exchange(mine[i], mine[i + step], is_down);
            }
        }
#pragma unroll
        for (int i = 0; i < 1 << BITS; i++) at(number + i * low) = mine[i];
    }
}

// The strides of a merge from `stride` down to `last`, of which `meet` parts those that threads leave to each other.
template <typename Count, typename At, typename Meet>
DEVICE void merge_words(
    At at, Count count, Count stride, Count last, Count thread, Count threads, long long first, long long down, Meet meet) {
    while (stride >= last) {
        if (stride >= 4 * last) merge_strides<3>(at, count, stride / 4, thread, threads, first, down);
        else if (stride == 2 * last) merge_strides<2>(at, count, last, thread, threads, first, down);
        else merge_strides<1>(at, count, last, thread, threads, first, down);
        stride = stride >= 4 * last ? stride / 8 : 0;
        meet();
    }
}

// The same of the words of a block, all strides.
template <typename At>
DEVICE void merge_in_block(At at, int count, int stride, long long first, long long down) {
    merge_words(at, count, stride, 1, (int)threadIdx.x, THREADS, first, down, [] { __syncthreads(); });
}

// Sorts words of a block until parts of `size` go up and down in turn.
template <typename At>
DEVICE void sort_in_block(At at, int count, int size, long long first) {
    __syncthreads();
    for (int part = 2; part <= size; part *= 2) merge_in_block(at, count, part / 2, first, part);
}

// Words of a key and a position, ordered by key and then by position, so that no two are equal. Networks of comparisons sort them in
// shared memory.

// If a number is as wide as a word, words are compared as one: the key lies above the position.
struct alignas(2 * sizeof(Element)) Word {
    unsigned position;
    Element key;
};

DEVICE bool is_less(const Word& a, const Word& b) {
    if constexpr (sizeof(Word) == 8) return bits_as<unsigned long long>(a) < bits_as<unsigned long long>(b);
    else return is_before(a.key, a.position, b.key, b.position);
}

// Returns a word behind all others.
DEVICE Word nothing() { return {greatest<unsigned>, greatest<Element>}; }

DEVICE void exchange(Word& a, Word& b, bool is_down) {
    const bool is_turned = is_less(b, a) != is_down;
    const Word before = a;
    a = is_turned ? b : a;
    b = is_turned ? before : b;
}

// Returns the place of a word. Words that threads read together lie in different banks.
DEVICE int bank_of(int number) { return number ^ (number >> 3 & 15); }

// Merges `count` words by the strides from `low` << (BITS - 1) down to `low`. A thread has all words that these strides compare with each
// other. at(i) is the word of number i. Words whose number, counted from `first` on, has the bit `down` are sorted in descending order.
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

// Merges words by the strides from `stride` down to `last`. Threads `meet` before they read the words of others.
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

// Merges the words of a block by all strides from `stride` down.
template <typename At>
DEVICE void merge_in_block(At at, int count, int stride, long long first, long long down) {
    merge_words(at, count, stride, 1, (int)threadIdx.x, THREADS, first, down, [] { __syncthreads(); });
}

// Sorts words of a block until parts of `size` are ascending and descending in turn.
template <typename At>
DEVICE void sort_in_block(At at, int count, int size, long long first) {
    __syncthreads();
    for (int part = 2; part <= size; part *= 2) merge_in_block(at, count, part / 2, first, part);
}

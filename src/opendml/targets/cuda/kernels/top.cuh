// Finds the least elements of lines, in order, without sorting the others. SPAN threads go along a line, or a slice of it, KEEP elements each
// at a time. Elements that do not exceed a bound go to a buffer of CAPACITY words in shared memory. When it holds LIMIT words, a lower bound is
// found, digit by digit of the words. As many words as are wanted do not exceed it, and hardly more. Only these stay. The words in the buffer
// may depend on the order of threads. The least words do not.
//
// With TEAM, several blocks share a line, and each has a slice of it. The last block to be done takes in what all of them have found. If
// ACROSS, threads beside each other have different lines.

constexpr int TOGETHER = THREADS / SPAN, WARPS = THREADS / 32, PARTS = KEEP / VECTOR, CHUNK = SPAN * KEEP;
constexpr int NEXT = ACROSS ? TOGETHER : 1, LANES = 32 / NEXT;  // lanes of a warp that have the same line
constexpr int KEY_DIGITS = sizeof(Element);

// The state of a line: the least bound of the first elements, and the number of words. During a search by digits: how many of the words in
// question are wanted, how many there are, and their digit.
struct Line {
    Element bound;
    unsigned count, wanted, open, digit;
};

__shared__ Line lines[TOGETHER];
__shared__ uint4 counts[TOGETHER][64];  // of the words in question with each digit

// The line of a thread, the number of the thread within it, and the words of the line.
struct Place {
    Word* words;
    int line, member;
};

DEVICE unsigned digit_of(const Word& word, int number) {
    if (number < KEY_DIGITS) return word.key >> (8 * (KEY_DIGITS - 1 - number)) & 255;
    return word.position >> (8 * (KEY_DIGITS + 3 - number)) & 255;
}

// Sets a digit of the least word, whose further bits are zero, and of the greatest word, whose further bits are one.
DEVICE void set_digit(Word& low, Word& high, int number, unsigned digit) {
    if (number < KEY_DIGITS) {
        const int shift = 8 * (KEY_DIGITS - 1 - number);
        low.key |= (Element)digit << shift;
        high.key ^= (Element)(255 - digit) << shift;
    } else {
        const int shift = 8 * (KEY_DIGITS + 3 - number);
        low.position |= digit << shift;
        high.position ^= (255 - digit) << shift;
    }
}

// Lowers the bound of a line by the least element of each of its threads. Each warp finds the element that its share of `wanted` elements
// do not exceed. The greatest of these elements over all warps is the bound.
DEVICE void find_first_bound(const Place& place, Word& bound, Element least, unsigned wanted) {
    constexpr unsigned PARTS_OF_LINE = SPAN / LANES;
    const unsigned share = (wanted + PARTS_OF_LINE - 1) / PARTS_OF_LINE, lane = threadIdx.x % 32 / NEXT;
    if (share > LANES) return;
#pragma unroll
    for (int size = 2; size <= LANES; size *= 2) {
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2) {
            const Element other = __shfl_xor_sync(~0u, least, stride * NEXT);
            least = !(lane & stride) == !(lane & size) ? minimum(least, other) : maximum(least, other);
        }
    }
    if (lane == share - 1) atomicMax(&lines[place.line].bound, least);
    __syncthreads();
    if (lines[place.line].bound < bound.key) bound = {greatest<unsigned>, lines[place.line].bound};
}

// Finds the digit of the last word that is wanted, from the counts of digits. One warp calls it.
DEVICE void find_digit(Line& line, uint4* counts) {
    const int lane = threadIdx.x % 32;
    const uint4 low = counts[2 * lane], high = counts[2 * lane + 1];
    const unsigned each[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    unsigned own = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) own += each[i];
    unsigned end = own;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const unsigned before = __shfl_up_sync(~0u, end, distance);
        if (lane >= distance) end += before;
    }
    const unsigned wanted = line.wanted;
    __syncwarp();
    counts[2 * lane] = counts[2 * lane + 1] = {};
    unsigned before = end - own;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (before < wanted && wanted <= before + each[i]) {
            line.wanted = wanted - before;
            line.open = each[i];
            line.digit = 8 * lane + i;
        }
        before += each[i];
    }
}

// Keeps at most `most` words of each line, among them the `wanted` least ones, and lowers the bound to exclude the others.
DEVICE void keep_least(const Place& place, Word& bound, unsigned wanted, unsigned most) {
    Line& line = lines[place.line];
    const unsigned count = minimum(line.count, (unsigned)CAPACITY);
    Word low = {0, 0}, high = nothing();
    unsigned least = count;  // words up to `high`
    if (place.member == 0) line.wanted = wanted;
    int number = 0;
    for (; TOGETHER == 1 ? least > most : __syncthreads_or(least > most); number++) {
        const bool is_open = least > most;
        for (unsigned i = place.member; is_open && i < count; i += SPAN) {
            const Word word = place.words[i];
            if (is_less(word, low) || is_less(high, word)) continue;
            atomicAdd((unsigned*)counts[place.line] + digit_of(word, number), 1u);
        }
        __syncthreads();
        for (int other = threadIdx.x / 32; other < TOGETHER; other += WARPS) find_digit(lines[other], counts[other]);
        __syncthreads();
        if (!is_open) continue;
        set_digit(low, high, number, line.digit);
        least = wanted - line.wanted + line.open;
    }
    if (number == 0) return;
    if (place.member == 0) line.count = 0;
    constexpr int BATCH = 4;
    // Words that stay move to the front, where words have been read.
    for (int first = 0; first < (TOGETHER == 1 ? (int)count : CAPACITY); first += BATCH * SPAN) {
        Word mine[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const unsigned from = first + i * SPAN + place.member;
            mine[i] = from < count ? place.words[from] : nothing();
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            if (!is_less(high, mine[i]) && is_less(mine[i], nothing())) place.words[atomicAdd(&line.count, 1u)] = mine[i];
        }
    }
    __syncthreads();
    if (is_less(high, bound)) bound = high;
}

// Takes in one batch of keys and positions after the other. Missing keys are the greatest number.
template <typename Load, typename Position>
DEVICE void take_in(
    const Place& place, Word& bound, unsigned wanted, Index batches, Load load_keys, Position position_of) {
    Line& line = lines[place.line];
    Element keys[KEEP];
    unsigned left = 0;  // bits of the elements for which the buffer was full
    bool is_full = false;
    auto put_words = [&](unsigned chosen) {
        left = 0;
#pragma unroll
        for (int i = 0; i < KEEP; i++) {
            const Word word = {position_of(i), keys[i]};
            if (!(chosen >> i & 1) || is_less(bound, word)) continue;
            const unsigned at = atomicAdd(&line.count, 1u);
            if (at < CAPACITY) place.words[at] = word;
            else left |= 1u << i;
            is_full |= at >= LIMIT;
        }
    };
    for (Index batch = 0;;) {
        // A warp waits for no other until the buffer is full.
        for (is_full = false; batch < batches && !__any_sync(~0u, is_full); batch++) {
            load_keys(keys, batch);
            Element least = keys[0];
#pragma unroll
            for (int i = 1; i < KEEP; i++) least = minimum(least, keys[i]);
            if (batch == 0) find_first_bound(place, bound, least, wanted);
            if (least <= bound.key) put_words(~0u);
        }
        if (!__syncthreads_or(left != 0 || batch < batches)) return;
        keep_least(place, bound, wanted, MOST);
        put_words(left);
    }
}

// Takes in the elements of a slice.
DEVICE void take_elements(const Place& place, Word& bound, const Parameters& p, const Offsets& start, Index begin, Index end) {
    constexpr int STEP = SPAN * PARTS;
    Kept kept;
    load_kept(kept, p, start);
    CollectiveInputs<VECTOR> collective[PARTS];
    Index next = begin + place.member;
    auto load_units = [&] {
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const Index unit = next + part * SPAN;
            if (unit < end) load_collective_inputs<VECTOR>(collective[part], p, in_group<VECTOR>(p, start, unit));
        }
    };
    auto load_keys = [&](Element (&keys)[KEEP], Index) {
#pragma unroll
        for (int i = 0; i < KEEP; i++) {
            const bool there = next + i / VECTOR * SPAN < end;
            keys[i] = there ? key_of<VECTOR>(p, collective[i / VECTOR], kept, i % VECTOR) : greatest<Element>;
        }
        next += STEP;
        load_units();
    };
    auto position_of = [&](int i) {
        const Index unit = next - STEP + i / VECTOR * SPAN;
        return unit < end ? (unsigned)(unit * VECTOR + i % VECTOR) : greatest<unsigned>;
    };
    load_units();
    take_in(place, bound, (unsigned)p.wanted, ((Index)p.slice_units + STEP - 1) / STEP, load_keys, position_of);
}

// Returns whether this block is the last of its team. Then it takes in the words that all blocks have found.
DEVICE bool gather(const Place& place, Word& bound, const Parameters& p, Index line) {
    __shared__ bool is_last;
    const int team = (int)p.team, wanted = (int)p.wanted, rank = blockIdx.x % team;
    const bool there = line < (Index)p.items;
    Word* const page = (Word*)p.scratch + (long long)line * team * wanted;
    const int count = lines[place.line].count;
    for (int i = place.member; there && i < wanted; i += SPAN) page[rank * wanted + i] = i < count ? place.words[i] : nothing();
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicInc((unsigned*)p.counters + blockIdx.x / team, team - 1) == team - 1;
    if (place.member == 0) lines[place.line].count = lines[place.line].bound = 0;
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
    unsigned positions[KEEP];
    auto load_keys = [&](Element (&keys)[KEEP], Index batch) {
#pragma unroll
        for (int i = 0; i < KEEP; i++) {
            const int from = (int)batch * CHUNK + i * SPAN + place.member;
            const bool is_word = there && from < team * wanted;
            const Word word = is_word ? load_uncached<Word>((const char*)(page + from)) : nothing();
            keys[i] = word.key;
            positions[i] = word.position;
        }
    };
    const Index batches = (team * wanted + CHUNK - 1) / CHUNK;
    take_in(place, bound, wanted, batches, load_keys, [&](int i) { return positions[i]; });
    keep_least(place, bound, wanted, SORTED);
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 memory[];
    Word* const words = reinterpret_cast<Word*>(memory);
    const int block = TEAM ? blockIdx.x / (int)p.team : blockIdx.x, rank = TEAM ? blockIdx.x % (int)p.team : 0;
    Place place;
    place.line = ACROSS ? threadIdx.x % TOGETHER : threadIdx.x / SPAN;
    place.member = ACROSS ? threadIdx.x / TOGETHER : threadIdx.x % SPAN;
    place.words = words + place.line * CAPACITY;
    const Index line = (Index)block * TOGETHER + place.line, begin = (Index)rank * (Index)p.slice_units;
    const bool there = line < (Index)p.items;
    const Offsets start = at_group(p, there ? line : 0);
    const Index slice_end = begin + (Index)p.slice_units, units = there ? (Index)p.units : 0;
    for (int i = threadIdx.x; i < TOGETHER * 64; i += THREADS) counts[i / 64][i % 64] = {};
    if (place.member == 0) lines[place.line].count = lines[place.line].bound = 0;
    __syncthreads();
    Word bound = {greatest<unsigned> - 1, greatest<Element>};  // nothing() alone exceeds it
    take_elements(place, bound, p, start, begin, slice_end < units ? slice_end : units);
    const unsigned wanted = (unsigned)p.wanted;
    keep_least(place, bound, wanted, TEAM ? wanted : SORTED);
    if constexpr (TEAM) {
        if (!gather(place, bound, p, line)) return;
    }
    for (int i = lines[place.line].count + place.member; i < SORTED; i += SPAN) place.words[i] = nothing();
    auto at = [&](int number) -> Word& { return words[number / SORTED * CAPACITY + bank_of(number % SORTED)]; };
    sort_in_block(at, TOGETHER * SORTED, SORTED / 2, 0);
    merge_in_block(at, TOGETHER * SORTED, SORTED / 2, 0, 0);
    for (int i = place.member; there && i < wanted; i += SPAN) {
        put(p, start, i, (Placed)place.words[bank_of(i)].position);
    }
}

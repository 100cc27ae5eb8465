// Sorts whole lines, of which the first elements are wanted. Words are sorted in shared memory, a tile at a time, and merged in global memory.
// If a line has several tiles, all blocks are resident (a cooperative launch). A line has p.line_words words, a power of two.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    extern __shared__ uint4 memory[];
    Word* const words = reinterpret_cast<Word*>(memory);
    auto at = [&](int number) -> Word& { return words[bank_of(number)]; };
    Word* const all = (Word*)p.scratch;
    const long long tiles = p.line_words / TILE;
    Meeting all_blocks(p);
    for (long long size = TILE; size <= p.line_words; size *= 2) {
        merge_words(
            [&](long long number) -> Word& { return all[number]; }, p.items * p.line_words, size / 2, (long long)TILE,
            (long long)blockIdx.x * THREADS + threadIdx.x, (long long)gridDim.x * THREADS, 0, size < p.line_words ? size : 0,
            [&] { all_blocks.meet(p); });
        for (long long item = blockIdx.x; item < p.items * tiles; item += gridDim.x) {
            const Index line = (Index)(item / tiles);
            const long long first = item % tiles * TILE;
            const Offsets start = at_group(p, line);
            if (size == TILE) {
                Kept kept;
                load_kept(kept, p, start);
                for (int i = threadIdx.x; i < TILE; i += THREADS) {
                    const Index unit = (Index)first + i;
                    CollectiveInputs<1> collective;
                    if (unit < (Index)p.units) {
                        load_collective_inputs<1>(collective, p, in_group<1>(p, start, unit));
                        at(i) = {(unsigned)unit, key_of<1>(p, collective, kept, 0)};
                    } else {
                        at(i) = nothing();
                    }
                }
                sort_in_block(at, TILE, TILE, first);
            } else {
                for (int i = threadIdx.x; i < TILE; i += THREADS) at(i) = all[item * TILE + i];
                __syncthreads();
                merge_in_block(at, TILE, TILE / 2, first, size);
            }
            for (int i = threadIdx.x; i < TILE; i += THREADS) {
                if (size < p.line_words) all[item * TILE + i] = at(i);
                else if (first + i < p.wanted) put(p, start, first + i, (Placed)at(i).position);
            }
            __syncthreads();
        }
        if (size < p.line_words) all_blocks.meet(p);
    }
    if (all_blocks.round > 0) all_blocks.end(p);
}

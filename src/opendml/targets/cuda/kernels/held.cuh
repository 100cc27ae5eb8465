// Groups that one or more blocks hold in their shared memory: read once, written once. Several blocks on each multiprocessor
// overlap their loads, sums and stores.

constexpr int CHUNK = KEEP < 4 ? KEEP : 4, CHUNKS = (KEEP + CHUNK - 1) / CHUNK;
constexpr int STORED_TOGETHER = CHUNKS > 4 ? 1 : CHUNKS;  // chunks; more would take long to compile

// What all groups need of the rows that the block will meet, from that of unit `first` on. Returns the first row's number.
DEVICE Index load_rows(Shared& shared, const Parameters& p, Index first) {
    const Index from = divide(first * (COLUMNS ? TX * VECTOR : VECTOR), p.row_length), last = p.rows - 1;
    for (int i = threadIdx.x; i < ROWS; i += THREADS) {
        const Index row = from + i;
        load_row(shared.rows[i], p, at_row(p, Offsets(), row < last ? row : last));
    }
    return from;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel();
    __shared__ Shared shared;
    extern __shared__ uint4 memory[];
    char* room = reinterpret_cast<char*>(memory);
    Exchange exchange(p);
    const Index first = exchange.rank * (KEEP * TY);
    const Index end = first + KEEP * TY < (Index)p.units ? first + KEEP * TY : (Index)p.units;
    const Index row = ROWS > 0 ? load_rows(shared, p, first) : 0;
    for (Index item = exchange.team; item < (Index)p.items; item += exchange.teams) {
        Tile tile = tile_of(p, item);
        Held<VECTOR> held[CHUNK];
        Origin origin;
        Given given[LANES];
#pragma unroll
        for (int k = 0; k < KEEP; k += CHUNK) {
            copy_units<CHUNK>(room, p, tile, first, end, k, KEEP);
            commit_copies();
        }
        forget_place(tile);
        load_origin(origin, p, tile);
        load_columns(given, p, tile);
        if (tile.finishes) load_given(tile.given, p, tile.group);
        for (int attempt = FIRST_ATTEMPT;; attempt++) {
            share_units(shared, p, tile, given, origin, attempt, [&](auto add, auto exact) {
                auto add_chunk = [&](int k) {
                    take_units(held, room, tile, first, end, k, KEEP);
                    add(held, [&](int i) { return k + i < KEEP && is_inside(tile, first, end, k + i); });
                };
                if constexpr (decltype(exact)::value) {
                    // All copies have arrived.
#pragma unroll 1
                    for (int k = 0; k < KEEP; k += CHUNK) add_chunk(k);
                } else {
                    each<CHUNKS>([&](auto chunk) {
                        wait_for_copies<CHUNKS - 1 - decltype(chunk)::value>();
                        add_chunk(chunk * CHUNK);
                    });
                }
            });
            if (!end_attempt(shared, p, tile, exchange, attempt)) break;
        }
        forget_place(tile);
        Kept kept[LANES];
        load_kept(kept, shared, tile);
#pragma unroll STORED_TOGETHER
        for (int k = 0; k < KEEP; k += CHUNK) {
            take_units(held, room, tile, first, end, k, KEEP);
            store_units(shared, kept, p, tile, first + k * TY, end, held, row);
        }
    }
    exchange.end(p);
}

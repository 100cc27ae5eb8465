// Loads the operands of a product of two matrices. Along k there may be two loops (LOOPS_K), of which the inner one has a multiple of
// DEPTH elements.

// Loads COUNT rows of an operand's tile from `row` on, and DEPTH elements along k, from a position along each loop: one box, or boxes of ELEMENTS rows if rows are contiguous.
// Each of SHARING blocks loads a part for all of them (`to_blocks`): `part` is the number of its own.
template <typename Operand, int COUNT, int SHARING>
DEVICE void load_tile(Shared to, const TensorMap& map, Shared barrier, int (&at)[Operand::RANK], Index row, Index k, Index outer, int part, unsigned short to_blocks) {
    if constexpr (LOOPS_K > 1) at[2] = (int)outer;
    if constexpr (Operand::ALONG_K) {
        const int first = SHARING == 1 ? 0 : part * (COUNT / SHARING);
        at[0] = (int)k, at[1] = (int)row + first;
        load_box(to + first * DEPTH_BYTES, map, barrier, at, to_blocks);
    } else {
        at[1] = (int)k;
#pragma unroll
        for (int first = 0; first < COUNT; first += ELEMENTS) {
            if (SHARING > 1 && first / ELEMENTS % SHARING != part) continue;
            at[0] = (int)row + first;
            load_box(to + first * DEPTH_BYTES, map, barrier, at, to_blocks);
        }
    }
}

// Returns how many elements come before a position along k.
DEVICE unsigned elements_before(const Parameters& p, Index k) { return (unsigned)(k < (Index)p.k ? k : (Index)p.k); }

// Loads the tiles of both operands, one step along k after the other.
struct Loader {
    Index row, column, k, outer = 0;
    int a_at[A::RANK], b_at[B::RANK];

    DEVICE_MEMBER Loader(const Parameters& p, const Work& work, int) : row(work.row), column(work.column), k(work.first) {
        A::find_batch(p, work.batch, a_at);
        B::find_batch(p, work.batch, b_at);
        if constexpr (LOOPS_K > 1) {
            outer = divide(k, p.inner_k);
            k -= outer * (Index)p.inner_k.count;
        }
    }

    // Begins to load the tile of either operand, or of both.
    DEVICE_MEMBER void load(const Parameters& p, Shared a_tile, Shared barrier, int block, bool of_a, bool of_b) {
        if (of_a) load_tile<A, ROWS, CLUSTER_ACROSS>(a_tile, p.a_map, barrier, a_at, row, k, outer, block % CLUSTER_ACROSS, sharing_rows(block));
        if (of_b) load_tile<B, COLUMNS_OF_TILE, CLUSTER>(a_tile + A_BYTES, p.b_map, barrier, b_at, column, k, outer, block / CLUSTER_ACROSS, sharing_columns(block));
    }

    DEVICE_MEMBER void next(const Parameters& p) {
        k += DEPTH;
        if (LOOPS_K > 1 && k == (Index)p.inner_k.count) k = 0, outer++;
    }
};

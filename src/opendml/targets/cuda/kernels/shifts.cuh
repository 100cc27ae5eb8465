// Zero points of integers of 8 bits. To subtract them before multiplying would need a ninth bit. (a - p) (b - q) is a b - a q - p b + p q, so
// the elements of rows of a and of columns of b are summed beside the products. All integers wrap.

// Adds the four integers of a word to a sum.
template <typename Element>
DEVICE int add_bytes(unsigned word, int sum) {
    if constexpr (has_sign<Element>) return __dp4a((int)word, 0x01010101, sum);
    else return (int)__dp4a(word, 0x01010101u, (unsigned)sum);
}

// Returns the sum over the four lanes that share a row, or a column.
DEVICE int add_quad(int sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
}

struct Shifts {
    static constexpr int OWN_ROWS = 2 * DOWN, OWN_COLUMNS = 2 * ACROSS;

    int of_rows[OWN_ROWS] = {}, of_columns[ACROSS] = {};

    // 16 rows, 32 elements of each.
    DEVICE_MEMBER void take_a(int piece, const unsigned (&a)[4]) {
        if constexpr (!B::SHIFTED) return;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int& sum = of_rows[2 * piece + i];
            sum = add_bytes<A::Element>(a[i], add_bytes<A::Element>(a[i + 2], sum));
        }
    }

    // 16 columns.
    DEVICE_MEMBER void take_b(int piece, const unsigned (&b)[4]) {
        if constexpr (!A::SHIFTED) return;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int& sum = of_columns[2 * piece + i];
            sum = add_bytes<B::Element>(b[2 * i], add_bytes<B::Element>(b[2 * i + 1], sum));
        }
    }

    // Makes sums of `count` products each, in the tile from a row and a column on, those of differences.
    DEVICE_MEMBER void subtract(int (&sums)[SUMS], const Parameters& p, const Offsets& at, Index row, Index column, Index count) {
        if constexpr (!A::SHIFTED && !B::SHIFTED) return;
        int a_shifts[OWN_ROWS], b_shifts[OWN_COLUMNS], columns[OWN_COLUMNS];
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++) {
            const Index own = row + row_of(i / 2 * 4 * ACROSS + i % 2 * 2);
            a_shifts[i] = A::shift(p, A::at_row(p, at, own < (Index)p.m ? own : 0));
            of_rows[i] = add_quad(of_rows[i]);
        }
#pragma unroll
        for (int i = 0; i < ACROSS; i++) of_columns[i] = add_quad(of_columns[i]);
#pragma unroll
        for (int i = 0; i < OWN_COLUMNS; i++) {
            const Index own = column + column_of(i / 2 * 4 + i % 2);
            b_shifts[i] = B::shift(p, B::at_row(p, at, own < (Index)p.n ? own : 0));
            columns[i] = __shfl_sync(~0u, of_columns[i / 2], (threadIdx.x % 4 * 2 + i % 2) * 4);
        }
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            const int down = i / (4 * ACROSS) * 2 + i % 4 / 2, across = i / 4 % ACROSS * 2 + i % 2;
            const unsigned a = a_shifts[down], b = b_shifts[across];
            const unsigned more = a * (unsigned)columns[across] + b * ((unsigned)of_rows[down] - a * (unsigned)count);
            sums[i] = (int)((unsigned)sums[i] - more);
        }
    }
};

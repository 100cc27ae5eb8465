// Multiplies by FMAs. A thread has TM rows and TN columns of a tile, in groups of four. Integers wrap.

DEVICE float add_product(float a, float b, float sum) { return multiply_add(a, b, sum); }
DEVICE int add_product(int a, int b, int sum) { return (int)((unsigned)a * (unsigned)b + (unsigned)sum); }
DEVICE unsigned add_product(unsigned a, unsigned b, unsigned sum) { return a * b + sum; }

constexpr int SUMS = TM * TN;
// Products that are added to one another before they are added to the others, so that the error of a sum of k products grows with
// k / PART. Sums of integers are exact.
constexpr int PART = (Sum)0.5f != 0 ? 128 : 0;

DEVICE int row_of(int sum) {
    const int i = sum / TN;
    return i / 4 * (ROWS / (TM / 4)) + threadIdx.x / (COLUMNS_OF_TILE / TN) * 4 + i % 4;
}

DEVICE int column_of(int sum) {
    const int j = sum % TN;
    return j / 4 * (COLUMNS_OF_TILE / (TN / 4)) + threadIdx.x % (COLUMNS_OF_TILE / TN) * 4 + j % 4;
}

DEVICE void multiply(Sum (&sums)[SUMS], Shifts&, const A::Element* a_tile, const B::Element* b_tile) {
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        Vector<A::Element, 4> a[TM / 4];
        Vector<B::Element, 4> b[TN / 4];
#pragma unroll
        for (int i = 0; i < TM / 4; i++) load(a[i], (const char*)(a_tile + A::slot(row_of(4 * i * TN), k)));
#pragma unroll
        for (int j = 0; j < TN / 4; j++) load(b[j], (const char*)(b_tile + B::slot(column_of(4 * j), k)));
#pragma unroll
        for (int i = 0; i < TM; i++) {
#pragma unroll
            for (int j = 0; j < TN; j++) {
                sums[i * TN + j] = add_product(a[i / 4].data[i % 4], b[j / 4].data[j % 4], sums[i * TN + j]);
            }
        }
    }
}

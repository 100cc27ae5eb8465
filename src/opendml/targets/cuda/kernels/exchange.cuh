// How the blocks that share a tile add up their moments.

struct Exchange : Meeting {
    DEVICE_MEMBER Exchange(const Parameters& p) : Meeting(p) {}

    // The sums of all blocks, for the threads that take them.
    DEVICE_MEMBER void add(Moments (&sums)[REDUCED], const Parameters& p) {
        constexpr int count = REDUCED * WIDTH * 2;
        double* const found = (double*)page(p, count * sizeof(double));
        if (takes_sums()) {
            each<REDUCED>([&](auto j) {
                double* slot = found + rank * count + (j * WIDTH + finished_group()) * 2;
                slot[0] = sums[j].sum;
                slot[1] = sums[j].squares;
            });
        }
        meet(p);
        if (takes_sums()) {
            each<REDUCED>([&](auto j) {
                sums[j] = sum_of<32>(blocks, [&](int block, int which) {
                    const double* from = found + block * count + (j * WIDTH + finished_group()) * 2 + which;
                    return load_uncached<double>((const char*)from);
                });
            });
        }
    }
};

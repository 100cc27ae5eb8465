// Zero points of operands that have none.

struct Shifts {
    DEVICE_MEMBER void take_a(int, const unsigned (&)[4]) {}
    DEVICE_MEMBER void take_b(int, const unsigned (&)[4]) {}

    template <typename Sums>
    DEVICE_MEMBER void subtract(Sums&, const Parameters&, const Offsets&, Index, Index, Index) {}
};

// Zero points of operands that have none.

struct Shifts {
    static constexpr int SHARED_BYTES = 0;

    DEVICE_MEMBER explicit Shifts(char*) {}
    DEVICE_MEMBER void take(const char*) {}
    DEVICE_MEMBER void subtract(Sum (&)[DOWN][HALF], const Parameters&, const Work&, int) {}
};

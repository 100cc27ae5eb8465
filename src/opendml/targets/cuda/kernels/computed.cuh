// Loads operands that are computed from tensors in memory, such as activated or dequantized ones. A thread reads units of UNIT neighbours
// while the previous tile is multiplied, then computes their elements and stores them in shared memory. Units beyond the end are read
// from the beginning of the tensor and become 0: loads without branches stay in flight together.

template <typename Operand>
struct Loader<Operand, true> : Loader<Operand, false> {
    typedef Loader<Operand, false> Base;
    typedef typename Operand::Element Element;
    using Base::ALONG_K;
    using Base::EACH;
    using Base::UNIT;
    static constexpr bool TOGETHER = ALONG_K == Operand::BY_ROW;  // neighbours are neighbours in shared memory, too

    typename Operand::Read found[EACH];
    int counts[EACH];  // elements within the tensor

    DEVICE_MEMBER void begin(const Parameters& p, Element*, Index first, Index end, const Offsets* steps) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (!Base::has(i)) continue;
            const int ahead = ALONG_K ? Base::fast() : Base::slow(i), own = ALONG_K ? i : 0;
            const Index k = first + ahead;
            const bool begins = k < end && Base::there[own] > 0;
            const Offsets at = steps ? moved(Base::rows[own], steps[ahead]) : Operand::at_k(p, Base::rows[own], begins ? k : 0);
            const int left = !ALONG_K ? Base::there[own] : end - k < UNIT ? (int)(end - k) : UNIT;
            counts[i] = begins ? left : 0;
            Operand::read(found[i], p, at, counts[i]);
        }
    }

    DEVICE_MEMBER void finish(const Parameters& p, Element* tile) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (!Base::has(i)) continue;
            Vector<Element, UNIT> unit;
#pragma unroll
            for (int lane = 0; lane < UNIT; lane++) {
                unit.data[lane] = Operand::value(p, found[i], lane);
                if (Operand::PARTIAL && lane >= counts[i]) unit.data[lane] = Element();
            }
            if (counts[i] <= 0) unit = {};
            Element* const to = Base::slot(tile, i);
            if constexpr (TOGETHER) {
                store((char*)to, unit);
            } else {
#pragma unroll
                for (int lane = 0; lane < UNIT; lane++) to[ALONG_K ? Operand::slot(0, lane) : Operand::slot(lane, 0)] = unit.data[lane];
            }
        }
    }
};

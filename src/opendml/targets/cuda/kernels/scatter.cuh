// Scatters positions of elements, of which the greatest holds, or values, which are added as integers. So results do not depend on the order
// of threads. A thread has one element. Neighbouring threads have elements of one line, or of neighbouring lines if ACROSS. Panels of lines
// follow each other, so that their places stay in the L2 cache meanwhile.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    begin_kernel(p.lets_next_begin);
    const Index number = (Index)blockIdx.x * THREADS + threadIdx.x;
    const Index units = (Index)p.units, width = (Index)p.panel;
    if (number >= (Index)p.items * units) return;
    const Index panel = number / (width * units), rest = number - panel * (width * units);
    const Index outer = rest / (ACROSS ? width : units), inner = rest - outer * (ACROSS ? width : units);
    const Index line = panel * width + (ACROSS ? inner : outer), unit = ACROSS ? outer : inner;
    const Offsets start = at_group(p, line);
    Placed value = (Placed)unit;
    const long long place = (long long)element(p, in_group<1>(p, start, unit), value);
    if ((unsigned long long)place < (unsigned long long)p.places) put(p, start, place, value);
}

// Positions to the places that elements say, of which the greatest holds; or values, which are added as integers. So the order
// in which threads come does not matter. A thread has one element; neighbours are of one line, or of neighbouring lines if
// ACROSS.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    const Index number = (Index)blockIdx.x * THREADS + threadIdx.x;
    const Index lines = (Index)p.items, units = (Index)p.units;
    if (number >= lines * units) return;
    const Index outer = number / (ACROSS ? lines : units), rest = number - outer * (ACROSS ? lines : units);
    const Index line = ACROSS ? rest : outer, unit = ACROSS ? outer : rest;
    const Offsets start = at_group(p, line);
    Placed value = (Placed)unit;
    const long long place = (long long)element(p, in_group<1>(p, start, unit), value);
    if ((unsigned long long)place < (unsigned long long)p.rows) put(p, start, place, value);
}

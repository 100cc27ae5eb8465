// Running sums and products: SPAN threads share a line, KEEP neighbouring elements each, and go along it together.

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ Parameters p) {
    constexpr int TOGETHER = THREADS / SPAN;
    __shared__ Scanned room[2][THREADS];
    const int member = threadIdx.x % SPAN, place = threadIdx.x / SPAN;
    const Index item = (Index)blockIdx.x * TOGETHER + place;
    const bool there = item < (Index)p.items;
    const Offsets at = at_item(p, there ? item : 0);
    const Index units = there ? (Index)p.units : 0, all_units = (Index)p.units;
    const auto unit_at = [&](Index number) { return REVERSE ? all_units - 1 - number : number; };
    Scanned running = IDENTITY;
    for (Index first = 0; first < all_units; first += SPAN * KEEP) {
        Scanned values[KEEP];
        Scanned total = IDENTITY;
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const Index number = first + member * KEEP + k;
            const Scanned value = number < units ? scanned(p, in_group<1>(p, at, unit_at(number))) : IDENTITY;
            values[k] = EXCLUSIVE ? total : put_together(total, value);
            total = put_together(total, value);
        }
        Scanned before = running;
        if constexpr (SPAN > 1) {
            // Totals of all threads up to each.
            int which = 0;
            room[0][threadIdx.x] = total;
            __syncthreads();
#pragma unroll
            for (int distance = 1; distance < SPAN; distance *= 2) {
                Scanned sum = room[which][threadIdx.x];
                if (member >= distance) sum = put_together(room[which][threadIdx.x - distance], sum);
                which = 1 - which;
                room[which][threadIdx.x] = sum;
                __syncthreads();
            }
            if (member > 0) before = put_together(running, room[which][threadIdx.x - 1]);
            running = put_together(running, room[which][place * SPAN + SPAN - 1]);
            __syncthreads();
        } else {
            running = put_together(running, total);
        }
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const Index number = first + member * KEEP + k;
            if (number < units) {
                store_elements(p, in_group<1>(p, at, unit_at(number)), put_together(before, values[k]));
            }
        }
    }
}

// Units of V neighbours of which only the first `count` may be there. WHOLE: they lie together, aligned.

template <bool WHOLE, typename T, int V>
DEVICE void load_lanes(Vector<T, V>& to, const char* from, long long step, int count) {
    to = {};
    if (WHOLE && count == V) {
        load(to, from);
    } else {
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            if (lane < count) load(to.data[lane], from + lane * step);
        }
    }
}

template <bool WHOLE, typename T, int V>
DEVICE void store_lanes(char* to, const Vector<T, V>& from, long long step, int count) {
    if (WHOLE && count == V) {
        store(to, from);
    } else {
#pragma unroll
        for (int lane = 0; lane < V; lane++) {
            if (lane < count) store(to + lane * step, from.data[lane]);
        }
    }
}

// Thread-block clusters: barriers, and the shared memory of the other blocks.

DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// A double at the same place in the shared memory of block `rank`.
DEVICE double load_from_block(const double* address, int rank) {
    unsigned local = (unsigned)__cvta_generic_to_shared(address), remote;
    double value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
    asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(value) : "r"(remote) : "memory");
    return value;
}

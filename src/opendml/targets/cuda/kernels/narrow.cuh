// Arithmetic for results that are stored as FLOAT16: the machine's approximations, which are good to 22 bits.

DEVICE float quotient(float a, float b) { return __fdividef(a, b); }
DEVICE float near_quotient(float a, float b) { return quotient(a, b); }
DEVICE double quotient(double a, double b) { return a / b; }

DEVICE float exponential(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504f));
    return result;
}

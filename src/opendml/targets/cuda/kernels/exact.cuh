// Arithmetic for results of more than FLOAT16.

DEVICE float quotient(float a, float b) { return a / b; }
DEVICE double quotient(double a, double b) { return a / b; }

// Within 1 ULP, where b and the result are normal numbers.
DEVICE float near_quotient(float a, float b) {
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(b));
    const float result = a * reciprocal;
    return multiply_add(multiply_add(-result, b, a), reciprocal, result);
}

// Quotients, and the exponential of narrow functions.

DEVICE float quotient(float a, float b) { return a / b; }
DEVICE double quotient(double a, double b) { return a / b; }

// 1 / x within 1 ULP, where both are normal numbers.
DEVICE float rough_reciprocal(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// Within 2 ULP, and 1 ULP, where b and the result are normal numbers.
DEVICE float rough_quotient(float a, float b) { return a * rough_reciprocal(b); }

DEVICE float near_quotient(float a, float b) {
    const float reciprocal = rough_reciprocal(b), result = a * reciprocal;
    return multiply_add(multiply_add(-result, b, a), reciprocal, result);
}

// For what FLOAT16 results are made of, the machine's approximations: they are good to 22 bits.
DEVICE float narrow_quotient(float a, float b) { return __fdividef(a, b); }

DEVICE float power_of_two(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

DEVICE float exponential(float x) { return power_of_two(x * 1.44269504f); }

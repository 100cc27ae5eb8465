// Quotients and square roots, and the exponential of narrow functions.

DEVICE float quotient(float a, float b) { return a / b; }
DEVICE double quotient(double a, double b) { return a / b; }

// a / b within 2 ULP, if b and the result are normal numbers.
DEVICE float rough_quotient(float a, float b) { return a * rough_reciprocal(b); }

// a / b within 1 ULP, if b and the result are normal numbers.
DEVICE float near_quotient(float a, float b) {
    const float reciprocal = rough_reciprocal(b), result = a * reciprocal;
    return multiply_add(multiply_add(-result, b, a), reciprocal, result);
}

// sqrt(x) within 2 ULP, of zero and normal numbers; NaN of negative ones.
DEVICE float rough_square_root(float x) { return x * minimum(rough_reciprocal_root(x), 0x1p64f); }

// sqrt(x) within 1 ULP, of zero and normal numbers; NaN of negative ones.
DEVICE float near_square_root(float x) {
    const float reciprocal = minimum(rough_reciprocal_root(x), 0x1p64f), result = x * reciprocal;
    return multiply_add(multiply_add(-result, result, x), 0.5f * reciprocal, result);
}

// a / b with 22 correct bits, for results of FLOAT16.
DEVICE float narrow_quotient(float a, float b) { return __fdividef(a, b); }

// exp(x) by the approximation of the hardware, for results of FLOAT16.
DEVICE float exponential(float x) { return power_of_two(x * 1.44269504f); }

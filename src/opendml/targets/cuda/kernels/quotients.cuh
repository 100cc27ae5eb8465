// Quotients and square roots, and the exponential of narrow functions.

DEVICE float quotient(float a, float b) { return a / b; }
DEVICE double quotient(double a, double b) { return a / b; }

// Within 2 ULP, and 1 ULP, where b and the result are normal numbers.
DEVICE float rough_quotient(float a, float b) { return a * rough_reciprocal(b); }

DEVICE float near_quotient(float a, float b) {
    const float reciprocal = rough_reciprocal(b), result = a * reciprocal;
    return multiply_add(multiply_add(-result, b, a), reciprocal, result);
}

// The same; of zero it is zero, of less NaN.
DEVICE float rough_square_root(float x) { return x * minimum(rough_reciprocal_root(x), 0x1p64f); }

DEVICE float near_square_root(float x) {
    const float reciprocal = minimum(rough_reciprocal_root(x), 0x1p64f), result = x * reciprocal;
    return multiply_add(multiply_add(-result, result, x), 0.5f * reciprocal, result);
}

// For what FLOAT16 results are made of, the machine's approximations: they are good to 22 bits.
DEVICE float narrow_quotient(float a, float b) { return __fdividef(a, b); }

DEVICE float exponential(float x) { return power_of_two(x * 1.44269504f); }

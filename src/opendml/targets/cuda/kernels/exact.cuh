// Arithmetic for results of more than FLOAT16.

DEVICE float quotient(float a, float b) { return a / b; }
DEVICE double quotient(double a, double b) { return a / b; }

// exp and log of our own: plain IEEE operations in one written order, so every compiler, library and instruction set
// gives the same bits (libm promises no such thing). Loops over them vectorise; native is built without contraction.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace fermata::sampling {

// e^x for x <= 0; exactly 0 below -87 (e^-87 = 1.6e-38, the end of normal floats). Relative error below 2e-7.
// x = n*ln2 + r with |r| <= ln2/2; e^r by its Taylor polynomial of degree 7 (next term: 0.3466^8/8! = 5e-9).
inline float exp_of_negative(float x) {
    const float clamped = x < -87.0f ? -87.0f : x;
    const float shifted = clamped * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the sum's last bits are round(x/ln2)
    const float n = shifted - 12582912.0f;
    const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
    float e = 1.98412698e-4f;
    e = e * r + 1.38888889e-3f;
    e = e * r + 8.33333333e-3f;
    e = e * r + 4.16666667e-2f;
    e = e * r + 1.66666667e-1f;
    e = e * r + 0.5f;
    e = e * r + 1.0f;
    e = e * r + 1.0f;
    const std::uint32_t scale = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
    const float scaled = e * std::bit_cast<float>(scale);
    return x < -87.0f ? 0.0f : scaled;
}

// Natural logarithm of a positive finite number. x = m * 2^k, m in [sqrt(1/2), sqrt(2)), then
// ln m = 2 (f + f^3/3 + f^5/5 + ...), f = (m-1)/(m+1), |f| <= 0.172; twelve terms leave 0.172^25/25 < 1e-20.
inline double log_of_positive(double x) {
    int k = 0;
    double m = std::frexp(x, &k);  // exact
    if (m < 0.70710678118654752) {
        m *= 2;
        --k;
    }
    const double f = (m - 1) / (m + 1);
    const double square = f * f;
    double sum = 0;
    for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
    return k * 0.69314718055994531 + 2 * f * sum;
}

}  // namespace fermata::sampling

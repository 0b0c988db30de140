#include "native/cpu/rotary.hpp"

#include <cmath>
#include <cstdint>

namespace fermata::cpu {
namespace {

// On |r| <= pi / 4. Taylor polynomials: the first term left out is below 2^-60 of the result.
double sine_near_zero(double r) noexcept {
    const double z = r * r;
    double p = 1.0 / 355687428096000.0;  // 1/17!
    p = 1.0 / 1307674368000.0 - z * p;   // 1/15!
    p = 1.0 / 6227020800.0 - z * p;
    p = 1.0 / 39916800.0 - z * p;
    p = 1.0 / 362880.0 - z * p;
    p = 1.0 / 5040.0 - z * p;
    p = 1.0 / 120.0 - z * p;
    p = 1.0 / 6.0 - z * p;
    return r - r * z * p;
}

double cosine_near_zero(double r) noexcept {
    const double z = r * r;
    double p = 1.0 / 6402373705728000.0;  // 1/18!
    p = 1.0 / 20922789888000.0 - z * p;   // 1/16!
    p = 1.0 / 87178291200.0 - z * p;
    p = 1.0 / 479001600.0 - z * p;
    p = 1.0 / 3628800.0 - z * p;
    p = 1.0 / 40320.0 - z * p;
    p = 1.0 / 720.0 - z * p;
    p = 1.0 / 24.0 - z * p;
    p = 0.5 - z * p;
    return 1.0 - z * p;
}

}  // namespace

void sine_cosine(double x, float& sine, float& cosine) noexcept {
    // pi / 2 in three parts; the first two have 33 bits, so their products with n < 2^20 are exact.
    constexpr double first = 1.57079632673412561417, second = 6.07710050630396597660e-11, third = 2.02226624879595063154e-21;
    const double shift = 6755399441055744.0;  // 1.5 * 2^52: rounds to an integer
    const double n = (x * 0.63661977236758134308 + shift) - shift;
    const double r = ((x - n * first) - n * second) - n * third;
    const double s = sine_near_zero(r), c = cosine_near_zero(r);
    switch (static_cast<std::int64_t>(n) & 3) {
        case 0: sine = static_cast<float>(s), cosine = static_cast<float>(c); break;
        case 1: sine = static_cast<float>(c), cosine = static_cast<float>(-s); break;
        case 2: sine = static_cast<float>(-s), cosine = static_cast<float>(-c); break;
        default: sine = static_cast<float>(-c), cosine = static_cast<float>(s); break;
    }
}

}  // namespace fermata::cpu

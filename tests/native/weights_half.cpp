// Conversions of 16-bit floats over all values, against arithmetic from the definition (ldexp), not bit tricks.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "native/weights/half.hpp"

using namespace fermata;

namespace {

// The value of a 16-bit float with `mantissa_bits` of fraction and an exponent bias of `bias`; finite ones only.
double value_of(unsigned bits, int mantissa_bits, int bias) {
    const unsigned magnitude = bits & 0x7fffu;
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const int fraction = static_cast<int>(magnitude & ((1u << mantissa_bits) - 1u));
    const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa_bits)
                                       : std::ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return (bits & 0x8000u) != 0 ? -value : value;
}

struct format {
    int mantissa_bits, bias;
    unsigned infinity;
    float (*widen)(std::uint16_t) noexcept;
    std::uint16_t (*narrow)(float) noexcept;
};

constexpr format f16_format{10, 15, 0x7c00, &f16_to_f32, &f32_to_f16};
constexpr format bf16_format{7, 127, 0x7f80, &bf16_to_f32, &f32_to_bf16};

void check_all_values(const format& f) {
    unsigned wrong = 0;
    for (unsigned bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float wide = f.widen(half);
        const unsigned magnitude = bits & 0x7fffu;
        if (magnitude > f.infinity) {
            wrong += !std::isnan(wide) || !std::isnan(f.widen(f.narrow(wide)));
        } else if (magnitude == f.infinity) {
            wrong += !std::isinf(wide) || std::signbit(wide) != (bits > 0x7fff) || f.narrow(wide) != half;
        } else {
            wrong += static_cast<double>(wide) != value_of(bits, f.mantissa_bits, f.bias);
            wrong += std::signbit(wide) != (bits > 0x7fff);
            wrong += f.narrow(wide) != half;
        }
    }
    CHECK(wrong == 0);
}

// Between each two neighbours: a hair below the middle goes down, above goes up, the middle to the even one.
void check_rounding(const format& f) {
    unsigned wrong = 0;
    for (unsigned bits = 0; bits < f.infinity; ++bits) {
        const double low = value_of(bits, f.mantissa_bits, f.bias);
        const double high = bits + 1 == f.infinity ? low + (low - value_of(bits - 1, f.mantissa_bits, f.bias))
                                                   : value_of(bits + 1, f.mantissa_bits, f.bias);
        const double middle = (low + high) / 2;
        const auto exact = static_cast<float>(middle);  // one bit more than the narrow format: exact
        if (static_cast<double>(exact) != middle) continue;  // bf16's smallest step: below float's own
        const float below = std::nextafter(exact, 0.0f);
        const float above = std::nextafter(exact, std::numeric_limits<float>::infinity());
        const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
        wrong += f.narrow(exact) != even;
        wrong += f.narrow(below) != bits;
        wrong += f.narrow(above) != bits + 1;
        wrong += f.narrow(-exact) != (even | 0x8000u);
        wrong += f.narrow(-above) != ((bits + 1) | 0x8000u);
    }
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("half: all 65536 values widen exactly and come back") {
    check_all_values(f16_format);
    check_all_values(bf16_format);
}

TEST_CASE("half: narrowing rounds to nearest, ties to even, over every gap") {
    check_rounding(f16_format);
    check_rounding(bf16_format);
}

TEST_CASE("half: edges") {
    CHECK(f32_to_f16(65504.0f) == 0x7bff);
    CHECK(f32_to_f16(65519.996f) == 0x7bff);
    CHECK(f32_to_f16(65520.0f) == 0x7c00);  // the tie beyond the largest goes to infinity
    CHECK(f32_to_f16(1e30f) == 0x7c00);
    CHECK(f32_to_f16(std::ldexp(1.0f, -25)) == 0);       // half the smallest: to even
    CHECK(f32_to_f16(std::ldexp(1.25f, -25)) == 1);
    CHECK(f32_to_f16(std::numeric_limits<float>::denorm_min()) == 0);
    CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
    // A NaN whose payload is in the low bits stays a NaN.
    const float payload = std::bit_cast<float>(0x7f800001u);
    CHECK(std::isnan(bf16_to_f32(f32_to_bf16(payload))));
    CHECK(std::isnan(f16_to_f32(f32_to_f16(payload))));
}

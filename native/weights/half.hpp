// Conversions between float32 and the two 16-bit formats, exact: to float32 every value incl. subnormals, infinities
// and NaN payloads; from float32 round to nearest, ties to even, as IEEE 754 (and every CPU's conversion
// instruction) has it. Integer arithmetic only, so the results depend on no rounding mode or flush-to-zero setting.
#pragma once

#include <bit>
#include <cstdint>

namespace fermata {

constexpr float bf16_to_f32(std::uint16_t value) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

constexpr std::uint16_t f32_to_bf16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    // A NaN whose payload sits in the low half would round to infinity: keep it a (quiet) NaN.
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float f16_to_f32(std::uint16_t value) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x8000u) << 16;
    const std::uint32_t magnitude = value & 0x7fffu;
    if (magnitude >= 0x7c00u)  // infinity or NaN
        return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude >= 0x0400u)  // normal: move the exponent's bias from 15 to 127
        return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
    if (magnitude == 0) return std::bit_cast<float>(sign);
    // Subnormal: magnitude * 2^-24. Shift the leading one to bit 10, lowering the exponent as it goes.
    const auto shift = static_cast<std::uint32_t>(std::countl_zero(magnitude)) - 21u;
    const std::uint32_t mantissa = (magnitude << shift) & 0x3ffu;
    return std::bit_cast<float>(sign | ((113u - shift) << 23) | (mantissa << 13));
}

constexpr std::uint16_t f32_to_f16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint32_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    std::uint32_t result = 0;
    if (magnitude > 0x7f800000u) {  // NaN, made quiet
        result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
        result = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {  // 2^-14 and above: normal
        const std::uint32_t odd = (magnitude >> 13) & 1u;
        result = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
    } else if (magnitude > 0x33000000u) {  // above 2^-25: subnormal (or the smallest normal after rounding)
        const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        const std::uint32_t shift = 126u - (magnitude >> 23);  // 14 .. 24
        const std::uint32_t half = 1u << (shift - 1u);
        const std::uint32_t odd = (mantissa >> shift) & 1u;
        result = (mantissa + half - 1u + odd) >> shift;
    }
    return static_cast<std::uint16_t>(sign | result);
}

}  // namespace fermata

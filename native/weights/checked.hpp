// Arithmetic on sizes from untrusted files.
#pragma once

#include <cstdint>
#include <optional>

namespace fermata::weights {

constexpr std::optional<std::uint64_t> checked_product(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
    return result;
}

constexpr std::optional<std::uint64_t> checked_sum(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
    return result;
}

}  // namespace fermata::weights

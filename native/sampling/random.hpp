// Random numbers by address, not by sequence: each draw is a pure function of (seed, choice, logical position,
// purpose), so a replayed, resumed or re-batched run draws the same numbers (M6).
//
// The function is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11):
// key = seed, counter = (position, choice, purpose, 0).
#pragma once

#include <array>
#include <cstdint>

namespace fermata::sampling {

enum class purpose : std::uint32_t { token = 0, draft = 1, accept = 2 };

inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return counter;
}

// Uniform in [0, 1), 53 bits.
inline double uniform(std::uint64_t seed, std::uint32_t choice, std::uint32_t position, purpose why) {
    const auto bits = philox4x32({position, choice, static_cast<std::uint32_t>(why), 0},
                                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const std::uint64_t mantissa = ((std::uint64_t{bits[0]} << 32) | bits[1]) >> 11;
    return static_cast<double>(mantissa) * 0x1.0p-53;
}

}  // namespace fermata::sampling

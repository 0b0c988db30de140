// The hashes that make up the oracle, shared by the model and its reference so that they agree on definitions and on
// nothing else: the model gets its inputs from memory, the reference from tokens.
#pragma once

#include <cstdint>
#include <span>

#include "messages/vocabulary.hpp"

namespace fermata::oracle {

inline constexpr std::uint64_t empty_prefix = 0x6A09E667F3BCC908u;
inline constexpr std::uint64_t empty_digest = 0xBB67AE8584CAA73Bu;

// The finaliser of splitmix64: bijective, every input bit moves every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

constexpr std::uint64_t extend_prefix(std::uint64_t prefix, token_id token) {
    return mix(prefix + 0x9E3779B97F4A7C15u * (static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)) + 1));
}

// The place of a word of KV: layer, word within the token's entry, and the page's index in its sequence. Never the
// page's number: a copy elsewhere must mean the same.
constexpr std::uint64_t place_salt(std::uint64_t page_index, std::uint64_t layer, std::uint64_t word) {
    return mix(page_index * 0xD6E8FEB86659FD93u + layer * 0xA0761D6478BD642Fu + word * 0xE7037ED1A0B428DBu + 1);
}

// Layer 0, word 0 is the prefix hash itself under the salt, so that it can be read back; the rest can't be inverted.
constexpr std::uint64_t kv_word(std::uint64_t prefix, std::uint64_t page_index, std::uint64_t layer,
                                std::uint64_t word) {
    const std::uint64_t salted = prefix ^ place_salt(page_index, layer, word);
    return layer == 0 && word == 0 ? salted : mix(salted);
}

constexpr std::uint64_t fold(std::uint64_t digest, std::uint64_t word) {
    return (digest ^ word) * 0x9FB21C651E98DF25u + (digest >> 32);
}

constexpr std::uint64_t state_word(std::uint64_t prefix, std::uint64_t word) {
    return word == 0 ? prefix : mix(prefix + word * 0x8EBC6AF09C88C6E3u);
}

constexpr std::uint64_t seed_of(std::uint64_t prefix, std::uint64_t digest) { return mix(prefix ^ mix(digest)); }

// Logits: pseudo-random in [0, 8) and a clear argmax of 12 at `seed` mod vocabulary.
inline void write_logits(std::uint64_t seed, std::span<float> out) {
    const auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32) | 1u;
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(out.size()); ++i) {
        std::uint32_t x = (i + low) * high;
        x ^= x >> 15;
        x *= 0x85EBCA77u;
        x ^= x >> 13;
        out[i] = static_cast<float>(static_cast<std::int32_t>(x >> 8)) * (8.0f / 16777216.0f);
    }
    out[seed % out.size()] = 12.0f;
}

}  // namespace fermata::oracle

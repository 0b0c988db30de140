// UTF-8, once for everybody: what a well-formed sequence is, and how a code point is written. Well-formed means no overlong
// forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fermata::utf8 {

// Bytes (1 to 4) of the well-formed sequence that starts at `at`; 0 if there is none.
constexpr std::size_t sequence(std::string_view bytes, std::size_t at) {
    if (at >= bytes.size()) return 0;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[at + i])); };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xC2 && lead < 0xE0 ? 2U : lead >= 0xE0 && lead < 0xF0 ? 3U : lead >= 0xF0 && lead < 0xF5 ? 4U : 0U;
    if (length == 0 || bytes.size() - at < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    const unsigned second = byte(1);
    const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    const bool no_character = (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);
    return overlong || no_character ? 0 : length;
}

// The first byte that begins no well-formed sequence; npos: there is none.
constexpr std::size_t first_invalid(std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = sequence(bytes, at);
        if (length == 0) return at;
        at += length;
    }
    return std::string_view::npos;
}

constexpr bool is_valid(std::string_view bytes) { return first_invalid(bytes) == std::string_view::npos; }

// `point` is a code point: at most 0x10FFFF, no surrogate.
inline void append(std::string& out, char32_t point) {
    const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
    const auto follow = [&](int shift) { put(0x80 | ((point >> shift) & 0x3F)); };
    if (point < 0x80) return put(point);
    if (point < 0x800) {
        put(0xC0 | (point >> 6));
    } else if (point < 0x10000) {
        put(0xE0 | (point >> 12));
        follow(6);
    } else {
        put(0xF0 | (point >> 18));
        follow(12);
        follow(6);
    }
    follow(0);
}

}  // namespace fermata::utf8

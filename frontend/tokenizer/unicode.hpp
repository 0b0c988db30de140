// Characters of UTF-8 text and the classes that splitting rules ask for. A byte that is no part of a well-formed
// character is a character of its own, one byte long, of the class of U+FFFD.
#pragma once

#include <utf8proc.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "messages/utf8.hpp"

namespace fermata::text {

struct character {
    char32_t code = 0xFFFD;
    std::uint32_t length = 1;  // bytes
    bool valid = false;        // false: one byte that is not UTF-8
};

namespace detail {
character decode_multibyte(std::string_view text, std::size_t at) noexcept;
}

// The character at text[at]; `at` is inside the text.
inline character character_at(std::string_view text, std::size_t at) noexcept {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) return {lead, 1, true};
    return detail::decode_multibyte(text, at);
}

// The character that ends at text[at - 1]; `at` > 0.
character character_before(std::string_view text, std::size_t at) noexcept;

inline bool is_valid_utf8(std::string_view text) noexcept { return utf8::is_valid(text); }
inline void append_utf8(std::string& out, char32_t code) { utf8::append(out, code); }

// General categories as bits; `space` is the property White_Space.
namespace category {
inline constexpr std::uint16_t letter = 1, mark = 2, number = 4, punctuation = 8, symbol = 16, space = 32,
                               decimal = 64, other = 128, connector = 256;
}

namespace detail {
std::uint16_t classify_beyond_ascii(char32_t code) noexcept;
std::array<std::uint16_t, 128> make_ascii_classes() noexcept;
inline const std::array<std::uint16_t, 128> ascii_classes = make_ascii_classes();
}  // namespace detail

inline std::uint16_t classes_of(char32_t code) noexcept {
    return code < 0x80 ? detail::ascii_classes[code] : detail::classify_beyond_ascii(code);
}

inline bool is_space(char32_t code) noexcept { return (classes_of(code) & category::space) != 0; }

// \w of regular expressions: letters, marks, decimal and letter numbers, connector punctuation, the two joiners.
bool is_word_character(char32_t code) noexcept;

}  // namespace fermata::text

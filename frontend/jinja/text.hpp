// UTF-8 text with the habits of Python's str: code points are what is counted, cased, stripped and classified.
//
// All functions expect valid UTF-8 (see valid_utf8) and return valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "messages/utf8.hpp"

namespace fermata::jinja::text {

inline bool valid_utf8(std::string_view s) noexcept { return utf8::is_valid(s); }
std::size_t count(std::string_view s) noexcept;  // code points

// The code point at byte `at`, which moves behind it. `at` must be below s.size().
char32_t decode(std::string_view s, std::size_t& at) noexcept;
inline void append(std::string& to, char32_t point) { utf8::append(to, point); }
// Byte offset of the code point with this index; s.size() when there are fewer.
std::size_t offset(std::string_view s, std::size_t index) noexcept;
// Bytes of the code point that starts with this byte.
inline std::size_t width(char lead) noexcept {
  auto const b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}
// Start of the code point that ends at byte `end` (> 0).
std::size_t previous(std::string_view s, std::size_t end) noexcept;

bool is_space(char32_t c) noexcept;
bool is_printable(char32_t c) noexcept;  // as repr() sees it
bool is_alpha(char32_t c) noexcept;
bool is_decimal(char32_t c) noexcept;
bool is_digit(char32_t c) noexcept;
bool is_numeric(char32_t c) noexcept;
inline bool is_alnum(char32_t c) noexcept { return is_alpha(c) || is_numeric(c); }
inline bool is_word(char32_t c) noexcept { return is_alnum(c) || c == U'_'; }  // \w of Python's re
bool is_lower(char32_t c) noexcept;
bool is_upper(char32_t c) noexcept;
bool is_title(char32_t c) noexcept;
bool is_identifier_start(char32_t c) noexcept;
bool is_identifier_part(char32_t c) noexcept;

std::string upper(std::string_view s);
std::string lower(std::string_view s);
std::string title(std::string_view s);
std::string capitalize(std::string_view s);
std::string swapcase(std::string_view s);
std::string casefold(std::string_view s);

std::string_view strip_left(std::string_view s) noexcept;   // white space
std::string_view strip_right(std::string_view s) noexcept;  // white space
inline std::string_view strip(std::string_view s) noexcept { return strip_left(strip_right(s)); }
std::string_view strip_left(std::string_view s, std::string_view characters) noexcept;
std::string_view strip_right(std::string_view s, std::string_view characters) noexcept;

// Byte offset of the first `needle` at or after `from`, npos without one. Linear in the worst case, which
// std::string_view::find is not.
std::size_t find(std::string_view s, std::string_view needle, std::size_t from = 0) noexcept;

// Length in bytes of the line break at byte `at` as str.splitlines knows them, 0 when there is none.
std::size_t line_break(std::string_view s, std::size_t at) noexcept;

// repr() of a string: quotes, escapes.
void append_quoted(std::string& to, std::string_view s);

}  // namespace fermata::jinja::text

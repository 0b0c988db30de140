// Tables behind Python's str methods: case maps that grow a character, and classes that general categories don't give.
// Sorted by code point.
#pragma once

#include <array>

namespace fermata::jinja::unicode {

struct special_case {
  char32_t point;
  char const* mapped;  // UTF-8
};

struct code_range {
  char32_t first;
  char32_t last;  // inclusive
};

extern std::array<special_case, 102> const upper_specials;
extern std::array<special_case, 48> const title_specials;
extern std::array<code_range, 20> const digits_not_decimal;
extern std::array<code_range, 72> const numeric_letters;
extern std::array<code_range, 5> const uppercase_not_lu;
extern std::array<code_range, 24> const lowercase_not_ll;

}  // namespace fermata::jinja::unicode

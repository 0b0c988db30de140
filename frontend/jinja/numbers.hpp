// Python's numbers: text to number and back, comparison between kinds, the arithmetic of floats' edge cases. Integers have
// any size up to integer_bits_max bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

bool is_integer(value const& v) noexcept;  // int or bool, of any size
bool is_number(value const& v) noexcept;   // those and floats
// float(v) of a number; faults when an integer is too large.
double to_real(value const& number);
// -1, 0, 1; 2 when a NaN is involved. Exact between integers and floats.
int compare_numbers(value const& a, value const& b) noexcept;

// repr() of a float: the shortest digits that read back the same.
std::string real_to_text(double d);
// str() of an integer.
std::string integer_to_text(value const& v);
// Digits of |v| in base 2, 8, 10 or 16.
std::string integer_digits(value const& v, unsigned base, bool capitals);
bool is_negative(value const& integer) noexcept;

// float() of a text without surrounding blanks; nothing when it is none.
std::optional<double> real_from_text(std::string_view s);
// int(text, base) with Python's syntax: blanks around, a sign, underscores between digits, a prefix. base 0: as a literal.
// missing when it is none.
value integer_from_text(std::string_view s, int base);
value integer_from_unsigned(std::uint64_t u);
// int(float): towards zero. Faults on infinity and NaN.
value integer_from_real(double d);

}  // namespace fermata::jinja

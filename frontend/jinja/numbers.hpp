// Python's numbers: text to number and back, arithmetic with Python's rounding rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

// repr() of a float: the shortest digits that read back the same.
std::string real_to_text(double d);
// float() of a text without surrounding blanks; nothing when it is none.
std::optional<double> real_from_text(std::string_view s);
// An integer literal of a template (0x, 0o, 0b, decimal; no underscores).
value integer_from_literal(std::string_view digits);
// int(text, base) with Python's syntax: blanks around, a sign, underscores between digits, a prefix. missing when it is none.
value integer_from_text(std::string_view s, int base);
value integer_from_unsigned(std::uint64_t u);
int compare_numbers(std::int64_t i, double d) noexcept;  // exact: -1, 0, 1, or 2 for NaN
bool same_number(std::int64_t i, double d) noexcept;
// int(float): towards zero. Faults on infinity and NaN.
value integer_from_real(double d);

}  // namespace fermata::jinja

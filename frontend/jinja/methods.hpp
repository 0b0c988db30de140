// What methods and filters of text share, and the tables that builtins are looked up in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/jinja/builtins.hpp"
#include "frontend/jinja/runtime.hpp"

namespace fermata::jinja {

inline constexpr std::size_t npos = std::string_view::npos;

// dict.fromkeys, which is called on the type and on any dict.
value dict_fromkeys(runtime& rt, value const& self, arguments& args);

std::vector<builtin> const& text_methods();
std::vector<builtin> const& text_filters();
std::vector<builtin> const& value_filters();
std::vector<builtin> const& sequence_filters();
std::vector<builtin> const& selecting_filters();

// str.islower, str.isupper: at least one cased character, and all of them of that case.
bool all_lower(std::string_view s) noexcept;
bool all_upper(std::string_view s) noexcept;

// str.replace; `times` below 0 means all.
std::string replaced(runtime& rt, std::string_view s, std::string_view old, std::string_view fresh, std::int64_t times);

// str.split and its relations. Pieces point into `s`.
using text_pieces = std::vector<std::string_view>;
text_pieces split_left(runtime& rt, std::string_view s, std::string_view separator, std::size_t most);
text_pieces split_right(runtime& rt, std::string_view s, std::string_view separator, std::size_t most);
text_pieces split_blanks(runtime& rt, std::string_view s, std::size_t most);
text_pieces split_blanks_right(runtime& rt, std::string_view s, std::size_t most);
text_pieces split_lines(runtime& rt, std::string_view s, bool keep_ends);
// Byte offset of the last occurrence, npos without one.
std::size_t last_find(runtime& rt, std::string_view s, std::string_view needle);

}  // namespace fermata::jinja

// Text on its way out: JSON strings and numbers. Everything appends to a string that the caller keeps, so that a
// streamed token costs no allocation of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "frontend/json_text.hpp"

namespace fermata::openai {

using fermata::append_json_string;
using fermata::json_string;

// Shortest decimal form that reads back the same; NaN is `null`, infinities are -9999 and 9999 (OpenAI's way to
// write "impossible").
void append_json_number(std::string& out, float value);
void append_json_number(std::string& out, double value);
void append_json_number(std::string& out, std::uint64_t value);
void append_json_number(std::string& out, std::int64_t value);

// Bytes as text; where they aren't UTF-8 each byte is written \xNN (as OpenAI writes tokens that are part of a character).
std::string printable_token(std::string_view bytes);

}  // namespace fermata::openai

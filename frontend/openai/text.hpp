// Text on its way out: JSON strings, numbers, UTF-8. Everything appends to a string that the caller keeps, so that a
// streamed token costs no allocation of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fermata::openai {

// Length (1 to 4) of the UTF-8 sequence that starts at `at`, 0 if it isn't one.
std::size_t utf8_sequence(std::string_view bytes, std::size_t at);

void append_utf8(std::string& out, std::uint32_t code_point);

// A JSON string, quotes included. Bytes that aren't UTF-8 become U+FFFD, so the result is always valid JSON.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

// Shortest decimal form that reads back the same; NaN is `null`, infinities are -9999 and 9999 (OpenAI's way to
// write "impossible").
void append_json_number(std::string& out, float value);
void append_json_number(std::string& out, double value);
void append_json_number(std::string& out, std::uint64_t value);
void append_json_number(std::string& out, std::int64_t value);

// Bytes as text; where they aren't UTF-8 each byte is written \xNN (as OpenAI writes tokens that are part of a character).
std::string printable_token(std::string_view bytes);

}  // namespace fermata::openai

// Strings of JSON, written: for answers, logs and templates alike.
#pragma once

#include <string>
#include <string_view>

namespace fermata {

enum class json_bytes : bool {
    utf8,   // characters beyond ASCII as they are
    ascii,  // as \uXXXX, in pairs where need be
};

// A JSON string, quotes included. Bytes that aren't UTF-8 become U+FFFD, so the result is always valid JSON.
void append_json_string(std::string& out, std::string_view text, json_bytes form = json_bytes::utf8);
std::string json_string(std::string_view text);

}  // namespace fermata

#include "frontend/json_text.hpp"

#include "messages/utf8.hpp"

namespace fermata {
namespace {

void append_hex(std::string& out, char32_t unit) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[(unit >> shift) & 15];
}

void append_ascii_escape(std::string& out, unsigned char c) {
    switch (c) {
        case '"': out += "\\\""; return;
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        case '\b': out += "\\b"; return;
        case '\f': out += "\\f"; return;
        default: append_hex(out, c);
    }
}

// The code point of a well-formed sequence of 2 to 4 bytes.
char32_t point_of(std::string_view sequence) {
    char32_t point = static_cast<unsigned char>(sequence[0]) & (0x7Fu >> sequence.size());
    for (const char each : sequence.substr(1)) point = (point << 6) | (static_cast<unsigned char>(each) & 0x3Fu);
    return point;
}

void append_escape(std::string& out, char32_t point) {
    if (point < 0x10000) return append_hex(out, point);
    append_hex(out, 0xD800 + ((point - 0x10000) >> 10));
    append_hex(out, 0xDC00 + ((point - 0x10000) & 0x3FF));
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, json_bytes form) {
    const bool ascii = form == json_bytes::ascii;
    out += '"';
    std::size_t plain = 0;  // start of the run not yet copied
    for (std::size_t at = 0; at < text.size();) {
        const auto c = static_cast<unsigned char>(text[at]);
        if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\') {
            ++at;
            continue;
        }
        const std::size_t length = utf8::sequence(text, at);
        if (length > 0 && c >= 0x7F && !ascii) {
            at += length;
            continue;
        }
        out.append(text.substr(plain, at - plain));
        if (length == 0)
            ascii ? append_escape(out, 0xFFFD) : utf8::append(out, 0xFFFD);
        else if (length == 1)
            append_ascii_escape(out, c);
        else
            append_escape(out, point_of(text.substr(at, length)));
        at += length == 0 ? 1 : length;
        plain = at;
    }
    out.append(text.substr(plain));
    out += '"';
}

std::string json_string(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

}  // namespace fermata

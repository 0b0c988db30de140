#include "frontend/openai/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace fermata::openai {

std::size_t utf8_sequence(std::string_view bytes, std::size_t at) {
    auto const byte = [&](std::size_t i) -> unsigned {
        return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u;
    };
    auto const follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
    unsigned const first = byte(0);
    if (at >= bytes.size()) return 0;
    if (first < 0x80) return 1;
    if (first < 0xC2) return 0;
    if (first < 0xE0) return follows(1) ? 2 : 0;
    if (first < 0xF0) {
        if (!follows(1) || !follows(2)) return 0;
        if (first == 0xE0 && byte(1) < 0xA0) return 0;
        if (first == 0xED && byte(1) >= 0xA0) return 0;  // surrogates
        return 3;
    }
    if (first > 0xF4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) >= 0x90) return 0;
    return 4;
}

void append_utf8(std::string& out, std::uint32_t point) {
    auto const put = [&](std::uint32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0 | (point >> 6));
        put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        put(0xE0 | (point >> 12));
        put(0x80 | ((point >> 6) & 0x3F));
        put(0x80 | (point & 0x3F));
    } else {
        put(0xF0 | (point >> 18));
        put(0x80 | ((point >> 12) & 0x3F));
        put(0x80 | ((point >> 6) & 0x3F));
        put(0x80 | (point & 0x3F));
    }
}

namespace {

constexpr char hex_digits[] = "0123456789abcdef";

void append_escaped(std::string& out, unsigned char c) {
    switch (c) {
        case '"': out += "\\\""; return;
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        case '\b': out += "\\b"; return;
        case '\f': out += "\\f"; return;
        default: break;
    }
    out += "\\u00";
    out += hex_digits[c >> 4];
    out += hex_digits[c & 15];
}

template <class Number>
void append_chars(std::string& out, Number value) {
    std::array<char, 40> buffer;
    auto const result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    out.append(buffer.data(), result.ptr);
}

template <class Real>
void append_real(std::string& out, Real value) {
    if (std::isnan(value)) {
        out += "null";
    } else if (std::isinf(value)) {
        out += value < 0 ? "-9999.0" : "9999.0";
    } else {
        auto const before = out.size();
        append_chars(out, value);
        // "5" would read back as an integer in languages that tell them apart.
        if (out.find_first_of(".eE", before) == std::string::npos) out += ".0";
    }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
    out += '"';
    std::size_t plain = 0;  // start of the run not yet copied
    for (std::size_t i = 0; i < text.size();) {
        auto const c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != 0x7F) {
            ++i;
            continue;
        }
        auto const length = c < 0x80 ? 0 : utf8_sequence(text, i);
        if (length != 0) {
            i += length;
            continue;
        }
        out.append(text.substr(plain, i - plain));
        if (c < 0x80)
            append_escaped(out, c);
        else
            out += "\xEF\xBF\xBD";
        plain = ++i;
    }
    out.append(text.substr(plain));
    out += '"';
}

std::string json_string(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

void append_json_number(std::string& out, float value) { append_real(out, value); }
void append_json_number(std::string& out, double value) { append_real(out, value); }
void append_json_number(std::string& out, std::uint64_t value) { append_chars(out, value); }
void append_json_number(std::string& out, std::int64_t value) { append_chars(out, value); }

std::string printable_token(std::string_view bytes) {
    std::string out;
    for (std::size_t i = 0; i < bytes.size();) {
        auto const length = utf8_sequence(bytes, i);
        if (length != 0) {
            out.append(bytes.substr(i, length));
            i += length;
            continue;
        }
        auto const c = static_cast<unsigned char>(bytes[i++]);
        out += "\\x";
        out += hex_digits[c >> 4];
        out += hex_digits[c & 15];
    }
    return out;
}

}  // namespace fermata::openai

#include "frontend/openai/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "messages/utf8.hpp"

namespace fermata::openai {

namespace {

template <class Number>
void append_chars(std::string& out, Number value) {
    std::array<char, 40> buffer;
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    out.append(buffer.data(), result.ptr);
}

template <class Real>
void append_real(std::string& out, Real value) {
    if (std::isnan(value)) {
        out += "null";
    } else if (std::isinf(value)) {
        out += value < 0 ? "-9999.0" : "9999.0";
    } else {
        const auto before = out.size();
        append_chars(out, value);
        // "5" would read back as an integer in languages that tell them apart.
        if (out.find_first_of(".eE", before) == std::string::npos) out += ".0";
    }
}

}  // namespace

void append_json_number(std::string& out, float value) { append_real(out, value); }
void append_json_number(std::string& out, double value) { append_real(out, value); }
void append_json_number(std::string& out, std::uint64_t value) { append_chars(out, value); }
void append_json_number(std::string& out, std::int64_t value) { append_chars(out, value); }

std::string printable_token(std::string_view bytes) {
    std::string out;
    for (std::size_t i = 0; i < bytes.size();) {
        const auto length = utf8::sequence(bytes, i);
        if (length != 0) {
            out.append(bytes.substr(i, length));
            i += length;
            continue;
        }
        const auto c = static_cast<unsigned char>(bytes[i++]);
        out += "\\x";
        for (const int digit : {c >> 4, c & 15}) out += "0123456789abcdef"[digit];
    }
    return out;
}

}  // namespace fermata::openai

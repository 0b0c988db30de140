#include "native/weights/error.hpp"

namespace fermata::weights {

std::string shown(std::string_view text) { return "'" + escaped(text) + "'"; }

std::string escaped(std::string_view text) {
    constexpr std::size_t bytes_max = 96;
    constexpr char digits[] = "0123456789abcdef";
    std::string result;
    for (const char c : text.substr(0, bytes_max)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
            result += c;
        } else {
            result += "\\x";
            result += digits[byte >> 4];
            result += digits[byte & 15];
        }
    }
    if (text.size() > bytes_max) result += "...";
    return result;
}

void fail(std::string_view file, std::string_view what) {
    throw model_file_error(std::string(file) + ": " + std::string(what));
}

void fail_at(std::string_view file, std::size_t offset, std::string_view what) {
    fail(file, "at byte " + std::to_string(offset) + ": " + std::string(what));
}

}  // namespace fermata::weights

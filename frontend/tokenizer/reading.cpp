#include "frontend/tokenizer/reading.hpp"

#include "frontend/tokenizer/unicode.hpp"

namespace fermata::text {

std::string too_many(std::string_view what, std::size_t count, std::size_t most) {
    return std::to_string(count) + " " + std::string(what) + ", at most " + std::to_string(most) + " are read";
}

std::string shown(std::string_view text) {
    std::string out;
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size(); ++count) {
        if (count == 40) return out + "...";
        const character c = character_at(text, at);
        const bool printable = c.valid && (classes_of(c.code) & category::other) == 0 && c.code >= 0x20;
        append_utf8(out, printable ? c.code : U'\uFFFD');
        at += c.length;
    }
    return out;
}

}  // namespace fermata::text

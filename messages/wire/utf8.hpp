// Whether bytes are well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
#pragma once

#include <cstddef>
#include <string_view>

namespace fermata::wire {

constexpr bool is_utf8(std::string_view text) {
    std::size_t i = 0;
    auto at = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    while (i < text.size()) {
        const unsigned c = at(i);
        if (c < 0x80) {
            ++i;
            continue;
        }
        const std::size_t more = c >= 0xc2 && c <= 0xdf ? 1u : (c & 0xf0) == 0xe0 ? 2u : c >= 0xf0 && c <= 0xf4 ? 3u : 0u;
        if (more == 0 || text.size() - i <= more) return false;
        for (std::size_t k = 1; k <= more; ++k)
            if ((at(i + k) & 0xc0) != 0x80) return false;
        const unsigned second = at(i + 1);
        if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second >= 0xa0) || (c == 0xf0 && second < 0x90) ||
            (c == 0xf4 && second >= 0x90))
            return false;
        i += more + 1;
    }
    return true;
}

}  // namespace fermata::wire

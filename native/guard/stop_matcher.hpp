// Finds the first end of any stop string in a stream of bytes that arrives token by token; a match may span tokens.
//
// One Knuth-Morris-Pratt matcher a string: memory is four bytes a byte of stop string, feeding never allocates, and
// the state is a function of the bytes fed, so it can be rebuilt from a ledger at any time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::guard {

class stop_matcher {
public:
    stop_matcher() = default;
    // Empty strings are left out: they would end every answer before it begins.
    explicit stop_matcher(const std::vector<std::string>& stops);

    bool empty() const noexcept { return patterns_.empty(); }
    // True when a stop string ends within `bytes`. Afterwards the state stands right behind that end.
    bool feed(std::string_view bytes);

private:
    struct pattern {
        std::string text;
        std::vector<std::uint32_t> fallback;  // [i]: longest proper border of the first i bytes
        std::uint32_t matched = 0;            // bytes of `text` that the stream ends with
    };
    std::vector<pattern> patterns_;
};

}  // namespace fermata::guard

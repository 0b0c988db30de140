// Regular expressions of tokenizer files: written for Oniguruma (its Ruby syntax, UTF-8), matched by PCRE2.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/tokenizer/splitting.hpp"

namespace fermata::text {

// The same expression for PCRE2. Differences carried over: what \s, \h and \p{Script} mean, and `$`, `^` at every
// line. Throws unsupported_tokenizer for what PCRE2 would silently read otherwise (sets in sets, &&).
// The outcome begins with pcre2_options, which are not part of the expression.
inline constexpr std::string_view pcre2_options = "(*LF)(?m)";
std::string oniguruma_to_pcre2(std::string_view expression);

// Text with every byte that is no UTF-8 replaced by U+FFFD; origins[i] is the byte of the text that byte i came
// from, with the text's size at the end.
void repair_utf8(std::string_view text, std::string& repaired, std::vector<std::uint32_t>& origins);

class regex_matcher {
public:
    explicit regex_matcher(std::string_view expression);
    // All matches from left to right as byte ranges of the text, empty ones included.
    void for_each_match(std::string_view text, const std::function<void(piece)>& found) const;

private:
    struct compiled;
    std::shared_ptr<const compiled> compiled_;
};

}  // namespace fermata::text

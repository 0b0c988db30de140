// Tokens that are found in text before anything else is done to it: special tokens, and ordinary ones that a model
// was given beside its vocabulary. Matching goes from left to right and takes the longest at each place, as the
// `tokenizers` library does.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary.hpp"

namespace fermata::text {

struct added_token {
    token_id id = no_token;
    std::string content;
    bool special = false;
    bool normalized = false;   // looked for in the normalized text, by its normalized content
    bool single_word = false;  // only where no word character is beside it
    bool left_strip = false;   // takes the spaces before it along
    bool right_strip = false;  // and those after it
};

class added_token_matcher {
public:
    struct found {
        token_id id = no_token;  // no_token: plain text
        std::size_t begin = 0, end = 0;
    };

    // Tokens with empty content are never found. Of two with the same content the later one counts.
    void add(const added_token& token);
    bool empty() const noexcept { return tokens_.empty(); }

    // The stretches of the text in order, covering it, without empty ones. Special tokens are looked for only if
    // asked.
    void split(std::string_view text, bool parse_special, std::vector<found>& out) const;

private:
    struct node {
        std::int32_t child = -1, sibling = -1;
        std::int32_t token = -1;  // index into tokens_
        unsigned char byte = 0;
    };
    std::int32_t child_of(std::int32_t parent, unsigned char byte) const noexcept;
    std::int32_t match_at(std::string_view text, std::size_t at, bool parse_special, std::size_t& end) const noexcept;
    bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) const noexcept;

    std::vector<added_token> tokens_;
    std::vector<node> nodes_;
    std::array<std::int32_t, 256> roots_ = make_roots();
    static std::array<std::int32_t, 256> make_roots() {
        std::array<std::int32_t, 256> roots{};
        roots.fill(-1);
        return roots;
    }
};

}  // namespace fermata::text

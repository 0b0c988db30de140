#include "frontend/tokenizer/added_tokens.hpp"

#include <algorithm>

#include "frontend/tokenizer/unicode.hpp"

namespace fermata::text {

std::int32_t added_token_matcher::child_of(std::int32_t parent, unsigned char byte) const noexcept {
    std::int32_t at = nodes_[static_cast<std::size_t>(parent)].child;
    while (at >= 0 && nodes_[static_cast<std::size_t>(at)].byte != byte) at = nodes_[static_cast<std::size_t>(at)].sibling;
    return at;
}

void added_token_matcher::add(const added_token& token) {
    if (token.content.empty()) return;
    const auto make = [this](unsigned char byte, std::int32_t sibling) {
        nodes_.push_back({-1, sibling, -1, byte});
        return static_cast<std::int32_t>(nodes_.size()) - 1;
    };
    const auto first = static_cast<unsigned char>(token.content[0]);
    if (roots_[first] < 0) roots_[first] = make(first, -1);
    std::int32_t at = roots_[first];
    for (std::size_t i = 1; i < token.content.size(); ++i) {
        const auto byte = static_cast<unsigned char>(token.content[i]);
        std::int32_t next = child_of(at, byte);
        if (next < 0) {
            next = make(byte, nodes_[static_cast<std::size_t>(at)].child);
            nodes_[static_cast<std::size_t>(at)].child = next;
        }
        at = next;
    }
    nodes_[static_cast<std::size_t>(at)].token = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back(token);
}

// The longest token that begins at `at`: its index, and where it ends; -1 without one.
std::int32_t added_token_matcher::match_at(std::string_view text, std::size_t at, bool parse_special,
                                           std::size_t& end) const noexcept {
    std::int32_t best = -1;
    std::int32_t node = roots_[static_cast<unsigned char>(text[at])];
    for (std::size_t i = at; node >= 0;) {
        const std::int32_t token = nodes_[static_cast<std::size_t>(node)].token;
        ++i;
        if (token >= 0 && (parse_special || !tokens_[static_cast<std::size_t>(token)].special)) {
            best = token;
            end = i;
        }
        if (i == text.size()) break;
        node = child_of(node, static_cast<unsigned char>(text[i]));
    }
    return best;
}

bool added_token_matcher::stands_alone(std::string_view text, std::size_t begin, std::size_t end) const noexcept {
    if (begin > 0) {
        const character c = character_before(text, begin);
        if (c.valid && is_word_character(c.code)) return false;
    }
    if (end == text.size()) return true;
    const character c = character_at(text, end);
    return !(c.valid && is_word_character(c.code));
}

void added_token_matcher::split(std::string_view text, bool parse_special, std::vector<found>& out) const {
    out.clear();
    std::size_t behind = 0;  // all before is in `out`
    for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
        std::size_t match_end = at;
        const std::int32_t index = match_at(text, at, parse_special, match_end);
        if (index < 0) {
            ++at;
            continue;
        }
        const added_token& token = tokens_[static_cast<std::size_t>(index)];
        std::size_t begin = at, end = match_end;
        at = match_end;
        if (token.single_word && !stands_alone(text, begin, end)) continue;
        if (token.left_strip) {
            while (begin > behind) {
                const character c = character_before(text, begin);
                if (!is_space(c.code)) break;
                begin -= c.length;
            }
        }
        if (token.right_strip) {
            while (end < text.size() && is_space(character_at(text, end).code)) end += character_at(text, end).length;
        }
        // A token before may have taken this one's leading spaces: then it begins where that one ended.
        begin = std::max(begin, behind);
        if (behind < begin) out.push_back({no_token, behind, begin});
        out.push_back({token.id, begin, std::max(begin, end)});
        behind = std::max(begin, end);
    }
    if (behind < text.size()) out.push_back({no_token, behind, text.size()});
}

}  // namespace fermata::text

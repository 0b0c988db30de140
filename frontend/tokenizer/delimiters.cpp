#include "frontend/tokenizer/delimiters.hpp"

#include <algorithm>

namespace fermata::text {

// Whether the next stretch becomes part of the piece before it.
bool piece_builder::merges_into_last(bool is_delimiter) const {
    if (out_.size() == first_) return false;
    switch (what_) {
        case delimiter::contiguous: return is_delimiter == last_was_delimiter_;
        case delimiter::merged_with_previous: return is_delimiter && !last_was_delimiter_;
        // Read from the end, a delimiter joins what follows it unless that is a delimiter too: so read from the
        // beginning, text joins a delimiter before it.
        case delimiter::merged_with_next: return !is_delimiter && last_was_delimiter_;
        default: return false;
    }
}

void piece_builder::add(std::uint32_t begin, std::uint32_t end, bool is_delimiter) {
    if (what_ == delimiter::removed && is_delimiter) return;
    if (merges_into_last(is_delimiter)) {
        out_.back().end = end;
    } else {
        out_.push_back({begin, end});
    }
    last_was_delimiter_ = is_delimiter;
}

void piece_builder::finish() {
    const auto begin = out_.begin() + static_cast<std::ptrdiff_t>(first_);
    out_.erase(std::remove_if(begin, out_.end(), [](const piece& p) { return p.begin == p.end; }), out_.end());
}

}  // namespace fermata::text

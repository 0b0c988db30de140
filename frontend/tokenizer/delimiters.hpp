// From matches to pieces: what each `delimiter` does, shared by all steps that find delimiters.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/tokenizer/splitting.hpp"

namespace fermata::text {

// Takes, in order, the stretches that cover a piece, each said to be a delimiter or not, and appends what stays.
// Empty stretches take part in the merging (as in `tokenizers`) and are dropped from the outcome by finish().
class piece_builder {
public:
    piece_builder(delimiter what, std::vector<piece>& out) : what_(what), out_(out), first_(out.size()) {}

    void add(std::uint32_t begin, std::uint32_t end, bool is_delimiter);
    void finish();

private:
    bool merges_into_last(bool is_delimiter) const;

    delimiter what_;
    std::vector<piece>& out_;
    std::size_t first_;         // where this builder's pieces begin in out_
    bool last_was_delimiter_ = false;
};

}  // namespace fermata::text

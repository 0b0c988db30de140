// tokenizer.json as it is read: the two large tables, vocabulary and merges, go straight into rows, everything else
// into a small JSON value. A file of ten megabytes would otherwise become a million nodes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "frontend/tokenizer/bpe.hpp"

namespace fermata::text {

struct tokenizer_json {
    nlohmann::json rest;            // without model.vocab and model.merges
    token_store texts;              // of the vocabulary, in the file's order
    std::vector<std::uint64_t> ids;  // as long; not checked
    token_store merges;             // left and right of each merge in turn
    bool has_vocabulary = false, has_merges = false;
};

// Throws tokenizer_error with the place: not JSON, more than 64 levels deep, a table that is none.
tokenizer_json read_tokenizer_json(std::string_view text);

}  // namespace fermata::text

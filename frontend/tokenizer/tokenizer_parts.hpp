// What a tokenizer is made of; filled in by the readers (vocabulary_reader.cpp, json_reader.cpp) and read-only after.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/tokenizer/added_tokens.hpp"
#include "frontend/tokenizer/bpe.hpp"
#include "frontend/tokenizer/normalizing.hpp"
#include "frontend/tokenizer/splitting.hpp"
#include "frontend/tokenizer/tokenizer.hpp"

namespace fermata::text {

struct tokenizer::parts {
    enum flag : std::uint8_t { present = 1, special = 2, ends_answer = 4 };

    std::string kind;
    std::shared_ptr<token_store> tokens = std::make_shared<token_store>();  // bytes by id
    std::vector<std::uint8_t> flags;                                        // by id
    std::optional<token_index> by_bytes;  // every token; of two with the same bytes the special one
    std::optional<bpe_model> model;
    added_token_matcher added;             // looked for in the text as given
    added_token_matcher added_normalized;  // in the normalized text
    normalizer normal;
    splitter split;
    bool prefix_space = false;  // a space is put before every piece that doesn't begin with one...
    splitter split_after_prefix;  // ...and then it is split once more
    token_id bos = no_token, eos = no_token, unknown = no_token;
    std::vector<token_id> end_of_generation;
    std::vector<token_id> prefix, suffix;
    std::vector<named_template> templates;

    bool is_id(token_id id) const noexcept {
        return id >= 0 && static_cast<std::size_t>(id) < flags.size();
    }
    bool has(token_id id, flag f) const noexcept {
        return is_id(id) && (flags[static_cast<std::size_t>(id)] & f) != 0;
    }
    token_id find(std::string_view bytes) const noexcept { return by_bytes ? by_bytes->find(bytes) : no_token; }
    void index_by_bytes();
    // Marks ids as ending an answer: sorted, without those that are no tokens.
    void set_end_of_generation(std::vector<token_id> ids);
};

}  // namespace fermata::text

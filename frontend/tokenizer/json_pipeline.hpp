// The parts of tokenizer.json that say what happens to text: normalizer, pre_tokenizer, post_processor.
#pragma once

#include <functional>

#include "frontend/tokenizer/json_place.hpp"
#include "frontend/tokenizer/tokenizer_parts.hpp"

namespace fermata::text {

void read_normalizer(const json_place& from, tokenizer::parts& parts);

// Must contain ByteLevel: else this is no byte-level tokenizer and unsupported_tokenizer is thrown.
void read_pre_tokenizer(const json_place& from, tokenizer::parts& parts);

// What is put around a text. `find`: the id of a token by its text, no_token if there is none.
void read_post_processor(const json_place& from, const std::function<token_id(const std::string&)>& find,
                         tokenizer::parts& parts);

}  // namespace fermata::text

// What a model file says about text, as plain data: the seam between the readers of model files (native) and
// the text layer (frontend). Nothing here interprets a token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fermata {

using token_id = std::int32_t;
inline constexpr token_id no_token = -1;

// The values are those of GGUF's `tokenizer.ggml.token_type`.
enum class token_type : std::uint8_t {
    undefined = 0,
    normal = 1,
    unknown = 2,
    control = 3,       // special: never plain text, not part of the answer's text
    user_defined = 4,  // added: recognised in plain text too
    unused = 5,
    byte = 6,
};

// A vocabulary as a GGUF file stores it. Token texts are in the byte-level alphabet of GPT-2 (except control and
// user-defined ones, which are literal). Merges are "left right" in rank order.
struct vocabulary_description {
    std::string model;          // tokenizer.ggml.model, e.g. "gpt2"
    std::string pre_tokenizer;  // tokenizer.ggml.pre, e.g. "smollm"; empty when absent
    std::vector<std::string> tokens;
    std::vector<token_type> types;  // as long as tokens, or empty
    std::vector<std::string> merges;
    token_id bos = no_token, eos = no_token, eot = no_token, unknown = no_token, padding = no_token;
    std::vector<token_id> end_of_generation;  // ids the file states as ends of an answer (eos, eot, eom)
    bool add_bos = false, add_eos = false, add_space_prefix = false;
    std::string chat_template;  // empty when the file has none
};

}  // namespace fermata

// Byte-level BPE tokenizers: text to token ids and back.
//
// A `tokenizer` is made once from what a model ships, a GGUF vocabulary or a Hugging Face tokenizer.json, and never
// changes afterwards; any number of threads may use one at the same time. Invariants:
// - Input is bytes. Bytes that are no UTF-8 are tokenised one by one; for the splitting rules such a byte counts as
//   U+FFFD. decode(encode(x)) == x for every byte string x, where the tokenizer has no normalizer and its vocabulary
//   a token for every byte. (Some lack a few control characters; those are left out, as `tokenizers` does.)
// - The same text gives the same ids, always: among merges the lowest rank goes first, then the leftmost.
// - Encoding takes O(n log n) whatever the text.
// The pipeline (added tokens, normalizer, splitting, merging) is that of the `tokenizers` library.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary.hpp"

namespace fermata::text {

// A tokenizer file that is broken, or ids that are not the tokenizer's. The message is one line with the place.
class tokenizer_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// A tokenizer of a kind that Fermata does not read; the message names the kind.
class unsupported_tokenizer : public tokenizer_error {
public:
    using tokenizer_error::tokenizer_error;
};

struct encode_options {
    bool parse_special = false;  // recognise special tokens in the text; else their text is plain text
    bool add_special = false;    // add what the model adds at the start and the end
};

// One token and the bytes [begin, end) of the text it stands for; what add_special adds stands for none. The tokens
// of one character that the vocabulary has in parts cover its bytes in order.
struct token_span {
    token_id id = no_token;
    std::size_t begin = 0, end = 0;
};

// The files of a model folder that say something about text, as their contents; empty where there is none.
struct tokenizer_files {
    std::string_view tokenizer_json;
    std::string_view tokenizer_config_json;
    std::string_view special_tokens_map_json;
    std::string_view generation_config_json;
    std::string_view chat_template_jinja;
};

// A chat template with its name ("default", "tool_use", ...).
struct named_template {
    std::string name, text;
};

class tokenizer {
public:
    // Both throw tokenizer_error or unsupported_tokenizer.
    static std::shared_ptr<const tokenizer> from_vocabulary(const vocabulary_description& vocabulary);
    static std::shared_ptr<const tokenizer> from_files(const tokenizer_files& files);
    static std::shared_ptr<const tokenizer> from_tokenizer_json(std::string_view json);

    ~tokenizer();
    tokenizer(const tokenizer&) = delete;
    tokenizer& operator=(const tokenizer&) = delete;

    // Text of at most text_bytes_max bytes; tokenizer_error beyond.
    static constexpr std::size_t text_bytes_max = std::size_t{1} << 28;
    std::vector<token_id> encode(std::string_view text, encode_options options = {}) const;
    std::vector<token_span> encode_with_offsets(std::string_view text, encode_options options = {}) const;

    // The exact bytes of the tokens in a row. Special tokens give nothing unless asked. Ids that are no token of
    // this tokenizer: tokenizer_error.
    std::string decode(std::span<const token_id> tokens, bool with_special = false) const;

    // The bytes that one token stands for, special ones included; empty for ids without a token (rows that pad a
    // vocabulary). Valid as long as the tokenizer. Ids outside [0, vocabulary_size()): tokenizer_error.
    std::string_view token_bytes(token_id id) const;
    bool has_token(token_id id) const noexcept;   // false outside the vocabulary and for padding rows
    bool is_special(token_id id) const noexcept;  // control tokens: no part of an answer's text
    // The token written exactly so, special ones included; no_token when there is none.
    token_id find(std::string_view bytes) const noexcept;

    std::size_t vocabulary_size() const noexcept;  // largest id + 1
    token_id bos() const noexcept;                 // no_token when there is none
    token_id eos() const noexcept;
    token_id unknown() const noexcept;
    bool normalizes() const noexcept;  // text is changed before it is split; its length may change with it
    // Every id that ends an answer, ascending: what the files state, and control tokens that by name end a turn.
    std::span<const token_id> end_of_generation() const noexcept;
    // What add_special puts before the text.
    std::span<const token_id> added_prefix() const noexcept;

    std::string_view kind() const noexcept;           // e.g. "smollm"; "tokenizer.json" for one read from that
    std::string_view chat_template() const noexcept;  // empty when the model has none
    std::span<const named_template> chat_templates() const noexcept;  // all, the default one first

    struct parts;  // known to the readers alone
    explicit tokenizer(std::unique_ptr<const parts> p);

private:
    std::unique_ptr<const parts> parts_;
};

}  // namespace fermata::text

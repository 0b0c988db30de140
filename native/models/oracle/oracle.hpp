// The oracle: a model family for tests whose right output is known from the tokens alone. Its "KV" of a token is a
// hash of the prefix up to it, the layer and the page's place in the sequence; its StateImage is filled from a
// rolling hash of the prefix; its next token is a hash over the state and the covered page contents, reread every
// step. A stale page, a wrong or dirty state, a copy that was missed or a page reused too early changes the output.
//
// With state_bytes = 0 it is an attention-only model: the rolling hash is then read back from the last token's KV.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "messages/vocabulary.hpp"
#include "native/model.hpp"

namespace fermata::oracle {

enum class verify_mode : std::uint8_t {
    all,   // every covered page is reread for each token
    tail,  // the page being written and the one before it
};

struct options {
    std::size_t state_bytes = 256;  // 0, or a multiple of 8: one StateImage
    std::uint32_t layers = 2;       // 1 .. 1024
    std::uint32_t kv_bytes = 8;     // of one token in one layer; a multiple of 8
    std::uint32_t delay_us = 0;     // simulated device time of a unit
    verify_mode verify = verify_mode::all;
    std::uint32_t vocabulary = 65536;
    std::uint32_t page_tokens = 64;
    std::uint32_t context_tokens = 131072;
    bool operator==(const options&) const = default;
};

// Reads `oracle[:key=value,...]`; keys state_bytes, layers, kv_bytes, delay_us, verify, vocab, context. What the text
// doesn't name keeps the value in `defaults`. Throws std::invalid_argument saying what was wrong and what would be
// right.
options parse(std::string_view spec, options defaults = {});
// True when a model argument means this family.
bool is_spec(std::string_view spec);

std::unique_ptr<model> make(const options& how);

// The same model computed from tokens alone, without pages, states or units: the independent right answer.
class reference {
public:
    explicit reference(const options& how);
    void feed(token_id token);
    // After at least one token: what `run` must give for the position fed last.
    token_id next() const;
    void logits(std::span<float> out) const;  // as long as the vocabulary

private:
    std::uint64_t seed() const;
    options how_;
    std::uint64_t prefix_ = 0;
    std::uint64_t digest_ = 0, page_digest_ = 0;  // tail: from the start of the page before, and of this page
    std::uint64_t fed_ = 0;
};

// The greedy continuation of `prompt` (not empty) by n tokens.
std::vector<token_id> expected(const options& how, std::span<const token_id> prompt, std::size_t n);

}  // namespace fermata::oracle

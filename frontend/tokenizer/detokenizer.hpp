// From tokens to text as they arrive. Two filters in a row, each pure and owned by one choice of one request:
// - `incremental_detokenizer` turns tokens into text that ends at a character's end, so that no reader ever sees half
//   a character. What it has given out, in total, is a prefix of the exact bytes.
// - `stop_text_filter` holds back text that may yet turn out to be the beginning of a stop string.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/tokenizer/tokenizer.hpp"

namespace fermata::text {

class incremental_detokenizer {
public:
    // `with_special`: special tokens give their text too.
    explicit incremental_detokenizer(std::shared_ptr<const tokenizer> words, bool with_special = false);

    // The text that became complete with this token; often the token's own, empty while a character is incomplete.
    // Bytes that can be part of no character come out as U+FFFD, one for each maximal ill-formed part (as Unicode
    // and Python do), so the text is always valid UTF-8. Ids without a token (rows that only pad a model's output) have
    // no text.
    std::string push(token_id token);
    std::string push(std::span<const token_id> tokens);

private:
    std::shared_ptr<const tokenizer> words_;
    std::string held_;  // at most 3 bytes between calls
    bool with_special_;
};

class stop_text_filter {
public:
    // Empty stop strings are ignored. `include_stop`: the stop string itself is part of the text.
    explicit stop_text_filter(std::vector<std::string> stops, bool include_stop = false);

    // The text that is certain to be no part of a stop string. Once a stop string is complete everything after its
    // beginning is dropped and `stopped()` holds; pushes after that give nothing. Among stop strings that complete
    // in one push the one that begins first counts, among those the longest.
    std::string push(std::string_view text);

    // The answer ended without a stop string: what was held back is text after all.
    std::string finish();

    bool stopped() const noexcept { return stop_.has_value(); }
    std::string_view stop() const noexcept { return stop_ ? std::string_view(stops_[*stop_]) : std::string_view(); }

private:
    std::vector<std::string> stops_;
    std::string held_;
    std::optional<std::size_t> stop_;
    bool include_stop_;
};

}  // namespace fermata::text

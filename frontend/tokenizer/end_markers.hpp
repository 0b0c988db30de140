// Which tokens end an answer. A file states some; those of well-known names end one in every model that has them, for
// files seldom state all of theirs. The one place that knows these names.
#pragma once

#include <string_view>
#include <vector>

#include "messages/vocabulary.hpp"

namespace fermata::text {

// A token that isn't plain text (control or user-defined; an added token of tokenizer.json).
struct added_name {
    token_id id = no_token;
    std::string_view text;
};

// `stated`: by the file, whatever their names; may hold no_token. Unsorted, possibly twice the same.
std::vector<token_id> ends_of_answer(std::vector<token_id> stated, const std::vector<added_name>& added);

// Whether ends_of_answer may ask for a token of this text.
bool is_end_marker(std::string_view text) noexcept;

}  // namespace fermata::text

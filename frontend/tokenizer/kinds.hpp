// The kinds of byte-level BPE that a GGUF file names in `tokenizer.ggml.pre`: how each splits text, and what else
// goes with the name. GGUF states neither the expressions nor the normalizer, so the name is all there is.
#pragma once

#include <string_view>

#include "frontend/tokenizer/normalizing.hpp"
#include "frontend/tokenizer/splitting.hpp"

namespace fermata::text {

struct tokenizer_kind {
    std::string_view name;    // as the file says it
    std::string_view family;  // the kind that it is another name for
    bool ignore_merges = false;
    splitter split;
    normalizer normal;
};

// Throws unsupported_tokenizer naming the kind and the kinds there are.
tokenizer_kind kind_of_tokenizer(std::string_view name);

}  // namespace fermata::text

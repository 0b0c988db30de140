// How text is cut into pieces before merging: no token ever spans two pieces. A `splitter` is a list of steps, each
// cutting every piece of the step before; it is made once and used by many threads.
//
// The usual rules are scanners written by hand (linear whatever the text); other regular expressions go to PCRE2.
// A step sees one piece at a time, as if nothing stood before or after it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::text {

// Bytes [begin, end) of a text; texts are at most tokenizer::text_bytes_max long.
struct piece {
    std::uint32_t begin = 0, end = 0;
    friend bool operator==(const piece&, const piece&) = default;
};

// What becomes of a delimiter: `tokenizers` names.
enum class delimiter { removed, isolated, merged_with_previous, merged_with_next, contiguous };

class split_step {
public:
    virtual ~split_step() = default;
    // Appends the pieces of text[in.begin, in.end) to `out`; no empty ones.
    virtual void cut(std::string_view text, piece in, std::vector<piece>& out) const = 0;
};

using split_step_pointer = std::shared_ptr<const split_step>;

// --- The rules of known families, as scanners. ---

// GPT-2: contractions in lower case, " ?" runs of letters, of numbers, of others, spaces but the last.
split_step_pointer split_gpt2();

// The cl100k line (Llama 3, Qwen): contractions in any case, one optional leading character before letters, numbers
// of at most `digits_max`, newlines kept with what they end. `marks`: combining marks count as letters.
split_step_pointer split_cl100k(std::uint32_t digits_max, bool marks);

// Every character of a set by itself, or (`runs`) every run of them; what is between stays together.
enum class character_set { number, punctuation, space, newline };
split_step_pointer split_characters(character_set set, delimiter what, bool runs = false);

// Runs of characters of a set, \s?[...]+ or [...]+. The ranges include both ends, ascend and do not meet; they must
// outlive the step.
struct code_point_range {
    char32_t first, last;
};
split_step_pointer split_runs(std::span<const code_point_range> set, bool leading_space);
split_step_pointer split_letter_runs();       // \s?\p{L}+
split_step_pointer split_punctuation_runs();  // \s?\p{P}+
split_step_pointer split_trailing_space();    // \s+$

// --- Anything else. ---

// A regular expression in the syntax of Oniguruma as `tokenizers` uses it. Known expressions become the scanners
// above. Throws unsupported_tokenizer for syntax that can't be carried over, tokenizer_error for a broken one.
// `invert`: what does not match is the delimiter.
split_step_pointer split_regex(std::string_view expression, delimiter what, bool invert);
split_step_pointer split_literal(std::string_view literal, delimiter what, bool invert);

// A step that looks at the text as it is written in the byte-level alphabet, one character a byte. Falcon splits so.
split_step_pointer split_in_alphabet(split_step_pointer step);

class splitter {
public:
    splitter() = default;
    explicit splitter(std::vector<split_step_pointer> steps) : steps_(std::move(steps)) {}

    // The pieces of the text in order, in `out` (cleared first); `scratch` is working space.
    void split(std::string_view text, std::vector<piece>& out, std::vector<piece>& scratch) const;

private:
    std::vector<split_step_pointer> steps_;
};

}  // namespace fermata::text

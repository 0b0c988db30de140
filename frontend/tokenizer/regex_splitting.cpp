// Splitting by regular expressions other than the known ones: Oniguruma's syntax carried over to PCRE2.
//
// Compiled once, matched by many threads: a compiled expression is read-only, match data and the JIT's stack belong
// to a thread. A piece too hard for the JIT's stack is matched again by the interpreter under limits of its own;
// only an expression that backtracks without end fails then, with a tokenizer_error.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include "frontend/tokenizer/delimiters.hpp"
#include "frontend/tokenizer/oniguruma.hpp"
#include "frontend/tokenizer/splitting.hpp"
#include "frontend/tokenizer/tokenizer.hpp"
#include "frontend/tokenizer/unicode.hpp"

namespace fermata::text {

namespace {

constexpr std::size_t jit_stack_bytes_max = std::size_t{16} << 20;
constexpr std::uint32_t interpreter_heap_kib_max = 1u << 20;
constexpr std::uint32_t match_steps_max = 100'000'000;

// What one thread needs for matching.
class match_workspace {
public:
    match_workspace()
        : data_(pcre2_match_data_create(1, nullptr)),
          context_(pcre2_match_context_create(nullptr)),
          stack_(pcre2_jit_stack_create(32 * 1024, jit_stack_bytes_max, nullptr)) {
        if (data_ == nullptr || context_ == nullptr || stack_ == nullptr) throw std::bad_alloc();
        pcre2_set_match_limit(context_, match_steps_max);
        pcre2_set_heap_limit(context_, interpreter_heap_kib_max);
        pcre2_jit_stack_assign(context_, nullptr, stack_);
    }
    ~match_workspace() {
        pcre2_jit_stack_free(stack_);
        pcre2_match_context_free(context_);
        pcre2_match_data_free(data_);
    }
    match_workspace(const match_workspace&) = delete;
    match_workspace& operator=(const match_workspace&) = delete;

    // The first match at or after `from`, or false.
    bool match(const pcre2_code* code, std::string_view subject, std::size_t from, piece& found) {
        const auto* bytes = reinterpret_cast<PCRE2_SPTR>(subject.data());
        int rc = pcre2_match(code, bytes, subject.size(), from, PCRE2_NO_UTF_CHECK, data_, context_);
        if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
            rc = pcre2_match(code, bytes, subject.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data_, context_);
        }
        if (rc == PCRE2_ERROR_NOMATCH) return false;
        if (rc < 0) throw tokenizer_error("the tokenizer's regular expression gives up on the text: " + describe(rc));
        const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data_);
        found = {static_cast<std::uint32_t>(range[0]), static_cast<std::uint32_t>(range[1])};
        return true;
    }

    static std::string describe(int error) {
        std::array<PCRE2_UCHAR, 128> buffer{};
        pcre2_get_error_message(error, buffer.data(), buffer.size());
        return reinterpret_cast<const char*>(buffer.data());
    }

private:
    pcre2_match_data* data_;
    pcre2_match_context* context_;
    pcre2_jit_stack* stack_;
};

match_workspace& this_threads_workspace() {
    thread_local match_workspace workspace;
    return workspace;
}

}  // namespace

struct regex_matcher::compiled {
    explicit compiled(const std::string& expression) {
        int error = 0;
        PCRE2_SIZE where = 0;
        code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &where, nullptr);
        if (code == nullptr) {
            where -= std::min<std::size_t>(where, pcre2_options.size());
            throw tokenizer_error("broken regular expression, byte " + std::to_string(where) + ": " +
                                  match_workspace::describe(error));
        }
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without the JIT matching is slow, not wrong
    }
    ~compiled() { pcre2_code_free(code); }
    compiled(const compiled&) = delete;
    compiled& operator=(const compiled&) = delete;

    pcre2_code* code = nullptr;
};

regex_matcher::regex_matcher(std::string_view expression)
    : compiled_(std::make_shared<const compiled>(oniguruma_to_pcre2(expression))) {}

// As the iterator of `tokenizers` goes: an empty match right behind the last match moves on by a character.
void regex_matcher::for_each_match(std::string_view text, const std::function<void(piece)>& found) const {
    std::string repaired;
    std::vector<std::uint32_t> origins;
    const bool valid = is_valid_utf8(text);
    if (!valid) repair_utf8(text, repaired, origins);
    const std::string_view subject = valid ? text : std::string_view(repaired);
    const auto original = [&](std::uint32_t at) { return valid ? at : origins[at]; };

    match_workspace& workspace = this_threads_workspace();
    std::size_t from = 0;
    std::optional<std::size_t> last_end;
    piece match;
    while (from <= subject.size() && workspace.match(compiled_->code, subject, from, match)) {
        if (match.begin == match.end && last_end == match.end) {
            from += from < subject.size() ? character_at(subject, from).length : 1;
            continue;
        }
        from = match.end;
        last_end = match.end;
        found({original(match.begin), original(match.end)});
    }
}

namespace {

// The stretches that matches and what is between them make of a text, handed on as delimiters or not.
template <class ForEachMatch>
void cut_by_matches(piece in, delimiter what, bool invert, std::vector<piece>& out, const ForEachMatch& for_each) {
    piece_builder pieces(what, out);
    std::uint32_t behind = 0;
    for_each([&](piece match) {
        if (match.begin != behind) pieces.add(in.begin + behind, in.begin + match.begin, invert);
        pieces.add(in.begin + match.begin, in.begin + match.end, !invert);
        behind = match.end;
    });
    if (in.begin + behind < in.end) pieces.add(in.begin + behind, in.end, invert);
    pieces.finish();
}

class regex_step final : public split_step {
public:
    regex_step(std::string_view expression, delimiter what, bool invert)
        : matcher_(expression), what_(what), invert_(invert) {}

    void cut(std::string_view text, piece in, std::vector<piece>& out) const override {
        const std::string_view part = text.substr(in.begin, in.end - in.begin);
        cut_by_matches(in, what_, invert_, out, [&](const auto& found) { matcher_.for_each_match(part, found); });
    }

private:
    regex_matcher matcher_;
    delimiter what_;
    bool invert_;
};

class literal_step final : public split_step {
public:
    literal_step(std::string_view literal, delimiter what, bool invert)
        : literal_(literal), what_(what), invert_(invert) {}

    void cut(std::string_view text, piece in, std::vector<piece>& out) const override {
        const std::string_view part = text.substr(in.begin, in.end - in.begin);
        cut_by_matches(in, what_, invert_, out, [&](const auto& found) {
            for (auto at = part.find(literal_); at != part.npos; at = part.find(literal_, at + literal_.size())) {
                found(piece{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + literal_.size())});
            }
        });
    }

private:
    std::string literal_;
    delimiter what_;
    bool invert_;
};

struct known_expression {
    std::string_view expression;
    split_step_pointer (*make)();
};

// Expressions that match everything: isolated delimiters, or "what doesn't match is removed", mean the same.
constexpr known_expression covering_expressions[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", [] { return split_gpt2(); }},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     [] { return split_cl100k(3, false); }},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     [] { return split_cl100k(1, false); }},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     [] { return split_cl100k(1, true); }},
};

constexpr known_expression isolating_expressions[] = {
    {R"([\r\n])", [] { return split_characters(character_set::newline, delimiter::isolated); }},
    {R"(\s?\p{L}+)", [] { return split_letter_runs(); }},
    {R"(\s?\p{P}+)", [] { return split_punctuation_runs(); }},
    {R"(\s+$)", [] { return split_trailing_space(); }},
    {R"(\p{N})", [] { return split_characters(character_set::number, delimiter::isolated); }},
};

}  // namespace

split_step_pointer split_regex(std::string_view expression, delimiter what, bool invert) {
    const bool covers = (what == delimiter::isolated && !invert) || (what == delimiter::removed && invert);
    if (covers) {
        for (const auto& known : covering_expressions) {
            if (known.expression == expression) return known.make();
        }
    }
    if (what == delimiter::isolated && !invert) {
        for (const auto& known : isolating_expressions) {
            if (known.expression == expression) return known.make();
        }
    }
    return std::make_shared<regex_step>(expression, what, invert);
}

split_step_pointer split_literal(std::string_view literal, delimiter what, bool invert) {
    if (literal.empty()) throw tokenizer_error("an empty pattern splits nothing");
    return std::make_shared<literal_step>(literal, what, invert);
}

}  // namespace fermata::text

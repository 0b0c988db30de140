// The splitting rules of known model families, written by hand: each looks at a character a bounded number of times,
// so a megabyte of anything is linear. The regular expression that a scanner stands for is quoted above it.
#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "frontend/tokenizer/byte_alphabet.hpp"
#include "frontend/tokenizer/delimiters.hpp"
#include "frontend/tokenizer/splitting.hpp"
#include "frontend/tokenizer/unicode.hpp"

namespace fermata::text {

namespace {

// A place in a piece, with the character there.
class cursor {
public:
    cursor(std::string_view text, std::uint32_t at) : text_(text), at_(at) { load(); }

    bool done() const noexcept { return at_ == text_.size(); }
    std::uint32_t at() const noexcept { return at_; }
    char32_t code() const noexcept { return here_.code; }
    bool in(std::uint16_t classes) const noexcept { return !done() && (classes_ & classes) != 0; }
    bool outside(std::uint16_t classes) const noexcept { return !done() && (classes_ & classes) == 0; }
    void next() noexcept {
        at_ += here_.length;
        load();
    }

private:
    void load() noexcept {
        if (done()) return;
        here_ = character_at(text_, at_);
        classes_ = classes_of(here_.code);
    }

    std::string_view text_;
    std::uint32_t at_;
    character here_;
    std::uint16_t classes_ = 0;
};

void skip_in(cursor& c, std::uint16_t classes) {
    while (c.in(classes)) c.next();
}

void skip_outside(cursor& c, std::uint16_t classes) {
    while (c.outside(classes)) c.next();
}

bool is_newline(char32_t code) { return code == '\r' || code == '\n'; }

// The bytes of a contraction ('s 't 're 've 'm 'll 'd) at an apostrophe, 0 if there is none. In any case U+017F,
// whose capital is S, counts as an s.
std::uint32_t contraction_length(std::string_view text, std::uint32_t at, bool any_case) {
    const auto letter = [&](std::uint32_t i) -> char {
        if (i >= text.size()) return '\0';
        const char byte = text[i];
        return any_case && byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
    };
    switch (letter(at + 1)) {
        case 's':
        case 't':
        case 'm':
        case 'd': return 2;
        case 'r':
        case 'v': return letter(at + 2) == 'e' ? 3 : 0;
        case 'l': return letter(at + 2) == 'l' ? 3 : 0;
        default: return any_case && text.substr(at + 1, 2) == "\u017F" ? 3 : 0;
    }
}

// The end of a run of spaces that begins here, by `\s+(?!\S)|\s+`: all of it at the end of the text, else all but
// its last character, which goes with what follows, unless it is the only one.
std::uint32_t end_of_spaces(cursor c) {
    const std::uint32_t begin = c.at();
    std::uint32_t last = begin;
    while (c.in(category::space)) {
        last = c.at();
        c.next();
    }
    return c.done() || last == begin ? c.at() : last;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::uint32_t next_gpt2(std::string_view text, std::uint32_t at) {
    using namespace category;
    cursor c(text, at);
    if (c.code() == '\'') {
        if (const auto length = contraction_length(text, at, false)) return at + length;
    }
    if (c.code() == ' ') {
        cursor after = c;
        after.next();
        if (after.outside(space)) c = after;
    }
    if (c.in(letter)) {
        skip_in(c, letter);
    } else if (c.in(number)) {
        skip_in(c, number);
    } else if (c.outside(space | letter | number)) {
        skip_outside(c, space | letter | number);
    } else {
        return end_of_spaces(c);
    }
    return c.at();
}

// The end of `\s*[\r\n]+` from here: behind the last newline of the run of spaces; nothing (begin) without one.
std::uint32_t end_of_lines(cursor c) {
    std::uint32_t end = c.at();
    while (c.in(category::space)) {
        const bool newline = is_newline(c.code());
        c.next();
        if (newline) end = c.at();
    }
    return end;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?L+|\p{N}{1,digits}| ?[^\s L\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// where L is \p{L} or, with marks, [\p{L}\p{M}].
std::uint32_t next_cl100k(std::string_view text, std::uint32_t at, std::uint32_t digits_max, std::uint16_t letters) {
    using namespace category;
    cursor c(text, at);
    if (c.code() == '\'') {
        if (const auto length = contraction_length(text, at, true)) return at + length;
    }
    // One character that is no newline, letter or number (a mark, too) may stand before letters.
    cursor word = c;
    if (c.outside(letter | number) && !is_newline(c.code())) {
        word.next();
        if (!word.in(letters)) word = c;
    }
    if (word.in(letters)) {
        skip_in(word, letters);
        return word.at();
    }
    if (c.in(number)) {
        for (std::uint32_t i = 0; i < digits_max && c.in(number); ++i) c.next();
        return c.at();
    }
    const std::uint16_t not_other = space | number | letters;
    cursor others = c;
    if (c.code() == ' ') others.next();
    if (others.outside(not_other)) {
        skip_outside(others, not_other);
        while (!others.done() && is_newline(others.code())) others.next();
        return others.at();
    }
    const std::uint32_t lines = end_of_lines(c);
    return lines > at ? lines : end_of_spaces(c);
}

// A step that covers all of the text with matches, so that every delimiter is a piece of its own.
template <class Next>
class covering_step final : public split_step {
public:
    explicit covering_step(Next next) : next_(next) {}

    void cut(std::string_view text, piece in, std::vector<piece>& out) const override {
        const std::string_view part = text.substr(in.begin, in.end - in.begin);
        for (std::uint32_t at = 0; at < part.size();) {
            const std::uint32_t end = next_(part, at);
            out.push_back({in.begin + at, in.begin + end});
            at = end;
        }
    }

private:
    Next next_;
};

template <class Next>
split_step_pointer covering(Next next) {
    return std::make_shared<covering_step<Next>>(next);
}

// A step whose delimiters are found by `find(part, at)`: the end of the match at `at`, or `at` when there is none.
template <class Find>
class finding_step final : public split_step {
public:
    finding_step(delimiter what, Find find) : what_(what), find_(std::move(find)) {}

    void cut(std::string_view text, piece in, std::vector<piece>& out) const override {
        const std::string_view part = text.substr(in.begin, in.end - in.begin);
        piece_builder pieces(what_, out);
        std::uint32_t text_begin = 0;
        for (std::uint32_t at = 0; at < part.size();) {
            const std::uint32_t end = find_(part, at);
            if (end == at) {
                at += character_at(part, at).length;
                continue;
            }
            if (text_begin < at) pieces.add(in.begin + text_begin, in.begin + at, false);
            pieces.add(in.begin + at, in.begin + end, true);
            text_begin = at = end;
        }
        if (text_begin < part.size()) pieces.add(in.begin + text_begin, in.end, false);
        pieces.finish();
    }

private:
    delimiter what_;
    Find find_;
};

template <class Find>
split_step_pointer finding(delimiter what, Find find) {
    return std::make_shared<finding_step<Find>>(what, std::move(find));
}

bool contains(std::span<const code_point_range> set, char32_t code) {
    const auto after = std::upper_bound(set.begin(), set.end(), code,
                                        [](char32_t c, const code_point_range& range) { return c < range.first; });
    return after != set.begin() && code <= std::prev(after)->last;
}

// The step Punctuation of `tokenizers` goes by tables of Unicode 8; these came later.
constexpr code_point_range younger_punctuation[] = {
    {0x61D, 0x61D}, {0x9FD, 0x9FD}, {0xA76, 0xA76}, {0xC77, 0xC77}, {0xC84, 0xC84}, {0x1B7D, 0x1B7E},
    {0x2E43, 0x2E4F}, {0x2E52, 0x2E5D}, {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89},
    {0x1144B, 0x1144F}, {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9},
    {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46}, {0x11A9A, 0x11A9C},
    {0x11A9E, 0x11AA2}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11FFF, 0x11FFF},
    {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};

bool is_punctuation(char32_t code) {
    if (code < 0x80) return (classes_of(code) & (category::punctuation | category::symbol)) != 0;  // $+<=>^`|~ too
    if (code == 0x166D || code == 0x111C9) return true;  // since become something else
    return (classes_of(code) & category::punctuation) != 0 && !contains(younger_punctuation, code);
}

bool belongs(character_set set, char32_t code) {
    switch (set) {
        case character_set::number: return (classes_of(code) & category::number) != 0;
        case character_set::punctuation: return is_punctuation(code);
        case character_set::space: return is_space(code);
        case character_set::newline: return is_newline(code);
    }
    return false;
}

// The end of `\s?X+` (or X+) at `at`; `at` when there is none. X may contain spaces itself.
template <class InSet>
std::uint32_t end_of_run(std::string_view part, std::uint32_t at, bool leading_space, const InSet& in_set) {
    cursor c(part, at);
    if (leading_space && is_space(c.code())) {
        cursor after = c;
        after.next();
        if (!after.done() && in_set(after.code())) c = after;
    }
    if (!in_set(c.code())) return at;
    while (!c.done() && in_set(c.code())) c.next();
    return c.at();
}

}  // namespace

split_step_pointer split_gpt2() { return covering(next_gpt2); }

split_step_pointer split_cl100k(std::uint32_t digits_max, bool marks) {
    const auto letters = static_cast<std::uint16_t>(category::letter | (marks ? category::mark : 0));
    return covering([digits_max, letters](std::string_view part, std::uint32_t at) {
        return next_cl100k(part, at, digits_max, letters);
    });
}

split_step_pointer split_characters(character_set set, delimiter what, bool runs) {
    return finding(what, [set, runs](std::string_view part, std::uint32_t at) {
        cursor c(part, at);
        do {
            if (!belongs(set, c.code())) break;
            c.next();
        } while (runs && !c.done());
        return c.at();
    });
}

split_step_pointer split_runs(std::span<const code_point_range> set, bool leading_space) {
    return finding(delimiter::isolated, [set, leading_space](std::string_view part, std::uint32_t at) {
        return end_of_run(part, at, leading_space, [set](char32_t code) { return contains(set, code); });
    });
}

split_step_pointer split_letter_runs() {
    return finding(delimiter::isolated, [](std::string_view part, std::uint32_t at) {
        return end_of_run(part, at, true, [](char32_t code) { return (classes_of(code) & category::letter) != 0; });
    });
}

split_step_pointer split_punctuation_runs() {
    return finding(delimiter::isolated, [](std::string_view part, std::uint32_t at) {
        return end_of_run(part, at, true,
                          [](char32_t code) { return (classes_of(code) & category::punctuation) != 0; });
    });
}

namespace {

// \s+$: spaces up to the end of the piece, or up to a line feed in it. A piece with line feeds has the `$` of
// Oniguruma before each; the spaces before it are taken greedily, line feeds included, as far as one still follows.
class trailing_space_step final : public split_step {
public:
    void cut(std::string_view text, piece in, std::vector<piece>& out) const override {
        const std::string_view part = text.substr(in.begin, in.end - in.begin);
        piece_builder pieces(delimiter::isolated, out);
        std::uint32_t text_begin = 0;
        for (cursor c(part, 0); !c.done();) {
            if (!c.in(category::space)) {
                c.next();
                continue;
            }
            const std::uint32_t begin = c.at();
            std::uint32_t end = begin;  // of the match
            while (c.in(category::space)) {
                if (c.code() == '\n' && c.at() > begin) end = c.at();
                c.next();
            }
            if (c.done()) end = static_cast<std::uint32_t>(part.size());
            if (end == begin) continue;
            if (text_begin < begin) pieces.add(in.begin + text_begin, in.begin + begin, false);
            pieces.add(in.begin + begin, in.begin + end, true);
            text_begin = end;
        }
        if (text_begin < part.size()) pieces.add(in.begin + text_begin, in.end, false);
        pieces.finish();
    }
};

}  // namespace

namespace {

class alphabet_step final : public split_step {
public:
    explicit alphabet_step(split_step_pointer step) : step_(std::move(step)) {}

    void cut(std::string_view text, piece in, std::vector<piece>& out) const override {
        const std::string written = bytes_to_alphabet(text.substr(in.begin, in.end - in.begin));
        std::vector<piece> pieces;
        step_->cut(written, {0, static_cast<std::uint32_t>(written.size())}, pieces);
        // Pieces ascend, so one walk over the characters counts the bytes before each of their ends.
        std::uint32_t at = 0, bytes = in.begin;
        const auto byte_of = [&](std::uint32_t end) {
            for (; at < end; ++bytes) at += character_at(written, at).length;
            return bytes;
        };
        for (const piece& p : pieces) {
            const std::uint32_t begin = byte_of(p.begin);
            out.push_back({begin, byte_of(p.end)});
        }
    }

private:
    split_step_pointer step_;
};

}  // namespace

split_step_pointer split_in_alphabet(split_step_pointer step) { return std::make_shared<alphabet_step>(std::move(step)); }

split_step_pointer split_trailing_space() { return std::make_shared<trailing_space_step>(); }

void splitter::split(std::string_view text, std::vector<piece>& out, std::vector<piece>& scratch) const {
    out.clear();
    if (text.empty()) return;
    out.push_back({0, static_cast<std::uint32_t>(text.size())});
    for (const auto& step : steps_) {
        scratch.clear();
        for (const piece& p : out) step->cut(text, p, scratch);
        out.swap(scratch);
    }
}

}  // namespace fermata::text

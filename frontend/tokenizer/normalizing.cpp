#include "frontend/tokenizer/normalizing.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "frontend/tokenizer/oniguruma.hpp"
#include "frontend/tokenizer/splitting.hpp"
#include "frontend/tokenizer/unicode.hpp"

namespace fermata::text {

traced_text::traced_text(std::string_view original, bool trace) : bytes(original), traced(trace) {
    if (!traced) return;
    begin.resize(bytes.size());
    end.resize(bytes.size());
    std::iota(begin.begin(), begin.end(), 0u);
    std::iota(end.begin(), end.end(), 1u);
}

void text_rewriter::keep(std::size_t begin, std::size_t end) {
    to_.bytes.append(from_.bytes, begin, end - begin);
    if (to_.traced) {
        const auto b = static_cast<std::ptrdiff_t>(begin), e = static_cast<std::ptrdiff_t>(end);
        to_.begin.insert(to_.begin.end(), from_.begin.begin() + b, from_.begin.begin() + e);
        to_.end.insert(to_.end.end(), from_.end.begin() + b, from_.end.begin() + e);
    }
    at_ = end;
}

void text_rewriter::put(std::string_view bytes, std::size_t begin, std::size_t end) {
    to_.bytes.append(bytes);
    if (to_.traced) {
        const std::uint32_t left = begin < from_.begin.size() ? from_.begin[begin] : from_.end.empty() ? 0 : from_.end.back();
        const std::uint32_t right = end > begin ? from_.end[end - 1] : left;
        to_.begin.insert(to_.begin.end(), bytes.size(), left);
        to_.end.insert(to_.end.end(), bytes.size(), right);
    }
    at_ = end;
}

namespace {

// Code points that are the second half of a canonical composition although they are starters, Hangul aside.
constexpr std::array<char32_t, 23> composing_starters{
    0x09BE, 0x09D7, 0x0B3E,  0x0B56,  0x0B57,  0x0BBE,  0x0BD7,  0x0CC2,  0x0CD5,  0x0CD6,  0x0D3E,
    0x0D57, 0x0DCF, 0x0DDF,  0x102E,  0x1B35,  0x11127, 0x1133E, 0x11357, 0x114B0, 0x114BA, 0x114BD,
    0x115AF};

bool composes_backwards(char32_t code) {
    if (code >= 0x1161 && code <= 0x11C2) return true;
    return std::find(composing_starters.begin(), composing_starters.end(), code) != composing_starters.end();
}

// `tokenizers` normalizes by the tables of Unicode 9, and models have learned from what it gave them. These are the
// code points that came later and would decompose, compose or reorder by the tables used here; they stay as they are.
constexpr std::array<code_point_range, 46> younger_than_unicode_9{{
    {0x7FD, 0x7FD}, {0x898, 0x89F}, {0x8CA, 0x8D3}, {0x9FE, 0x9FE}, {0xC3C, 0xC3C}, {0xD3B, 0xD3C},
    {0xEBA, 0xEBA}, {0x1715, 0x1715}, {0x1ABF, 0x1ACE}, {0x1DF6, 0x1DFA}, {0x32FF, 0x32FF},
    {0xA7F2, 0xA7F4}, {0xA82C, 0xA82C}, {0xAB69, 0xAB69}, {0x10781, 0x10785}, {0x10787, 0x107B0},
    {0x107B2, 0x107BA}, {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}}};

bool stays_as_it_is(char32_t code) {
    if (code < younger_than_unicode_9.front().first) return false;
    const auto after = std::upper_bound(younger_than_unicode_9.begin(), younger_than_unicode_9.end(), code,
                                        [](char32_t c, const code_point_range& range) { return c < range.first; });
    return after != younger_than_unicode_9.begin() && code <= std::prev(after)->last;
}

std::uint8_t combining_class(char32_t code) {
    if (code < 0x300 || stays_as_it_is(code)) return 0;
    return static_cast<std::uint8_t>(utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class);
}

class normal_form_step final : public normalizing_step {
public:
    explicit normal_form_step(normal_form form)
        : composes_(form == normal_form::nfc || form == normal_form::nfkc),
          options_(static_cast<utf8proc_option_t>(
              UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
              (form == normal_form::nfkc || form == normal_form::nfkd ? UTF8PROC_COMPAT : 0))) {}

    void apply(traced_text& text) const override {
        if (std::all_of(text.bytes.begin(), text.bytes.end(), [](char c) { return static_cast<signed char>(c) >= 0; })) {
            return;
        }
        text_rewriter out(text);
        std::vector<utf8proc_int32_t> codes;
        std::string written;
        for (std::size_t at = 0; at < text.bytes.size();) {
            const std::size_t end = end_of_segment(text.bytes, at, codes);
            write_segment(codes, written);
            if (codes.empty() || written == std::string_view(text.bytes).substr(at, end - at)) {
                out.keep(at, end);
            } else {
                out.put(written, at, end);
            }
            at = end;
        }
        text = out.take();
    }

private:
    // Decomposes into `codes`; the number of code points.
    std::size_t decompose(char32_t code, std::vector<utf8proc_int32_t>& codes) const {
        if (code < 0x80 || stays_as_it_is(code)) {
            codes.push_back(static_cast<utf8proc_int32_t>(code));
            return 1;
        }
        std::array<utf8proc_int32_t, 32> buffer{};  // the longest decomposition has 18
        int last_boundclass = 0;
        const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), buffer.data(),
                                               static_cast<utf8proc_ssize_t>(buffer.size()), options_, &last_boundclass);
        if (n <= 0 || n > static_cast<utf8proc_ssize_t>(buffer.size())) {
            codes.push_back(static_cast<utf8proc_int32_t>(code));
            return 1;
        }
        codes.insert(codes.end(), buffer.begin(), buffer.begin() + n);
        return static_cast<std::size_t>(n);
    }

    // A segment is what can change together: a character and those after it that reorder or compose with it. Its
    // decomposition is left in `codes`, empty for a byte that is no UTF-8.
    std::size_t end_of_segment(std::string_view text, std::size_t at, std::vector<utf8proc_int32_t>& codes) const {
        codes.clear();
        const character first = character_at(text, at);
        if (!first.valid) return at + 1;
        decompose(first.code, codes);
        for (at += first.length; at < text.size();) {
            const character next = character_at(text, at);
            if (!next.valid || next.code < 0x300) break;
            const std::size_t before = codes.size();
            decompose(next.code, codes);
            const auto leading = static_cast<char32_t>(codes[before]);
            if (combining_class(leading) == 0 && !composes_backwards(leading)) {
                codes.resize(before);
                break;
            }
            at += next.length;
        }
        return at;
    }

    void write_segment(std::vector<utf8proc_int32_t>& codes, std::string& written) const {
        written.clear();
        if (codes.size() > 1) reorder_and_compose(codes);
        for (const auto code : codes) append_utf8(written, static_cast<char32_t>(code));
    }

    // The library's own reordering is quadratic in a row of marks, so the sorting is done here.
    void reorder_and_compose(std::vector<utf8proc_int32_t>& codes) const {
        const auto class_of = [](utf8proc_int32_t code) { return combining_class(static_cast<char32_t>(code)); };
        for (auto run = codes.begin(); run != codes.end();) {
            if (class_of(*run) == 0) {
                ++run;
                continue;
            }
            const auto end = std::find_if(run, codes.end(), [&](auto code) { return class_of(code) == 0; });
            std::stable_sort(run, end, [&](auto a, auto b) { return class_of(a) < class_of(b); });
            run = end;
        }
        if (!composes_) return;
        const auto n = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                                static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
        if (n >= 0) codes.resize(static_cast<std::size_t>(n));
    }

    bool composes_;
    utf8proc_option_t options_;
};

// A step that looks at one character at a time: what it becomes is appended to `to`.
template <class Change>
class character_step final : public normalizing_step {
public:
    explicit character_step(Change change) : change_(change) {}

    void apply(traced_text& text) const override {
        text_rewriter out(text);
        std::string to;
        bool changed = false;
        for (std::size_t at = 0; at < text.bytes.size();) {
            const character c = character_at(text.bytes, at);
            to.clear();
            const bool stays = !c.valid || !change_(c.code, to);
            if (stays) {
                out.keep(at, at + c.length);
            } else {
                out.put(to, at, at + c.length);
                changed = true;
            }
            at += c.length;
        }
        if (changed) text = out.take();
    }

private:
    Change change_;
};

template <class Change>
normalizing_step_pointer by_character(Change change) {
    return std::make_shared<character_step<Change>>(change);
}

class replace_step final : public normalizing_step {
public:
    replace_step(std::shared_ptr<const regex_matcher> matcher, std::string_view literal, std::string_view with)
        : matcher_(std::move(matcher)), literal_(literal), with_(with) {}

    void apply(traced_text& text) const override {
        text_rewriter out(text);
        bool changed = false;
        const auto replace = [&](piece match) {
            changed = true;
            out.keep(out.at(), match.begin);
            out.put(with_, match.begin, match.end);
        };
        if (matcher_) {
            matcher_->for_each_match(text.bytes, replace);
        } else {
            for (auto at = text.bytes.find(literal_); at != std::string::npos; at = text.bytes.find(literal_, at + literal_.size())) {
                replace({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + literal_.size())});
            }
        }
        if (!changed) return;
        out.keep(out.at(), text.bytes.size());
        text = out.take();
    }

private:
    std::shared_ptr<const regex_matcher> matcher_;
    std::string literal_, with_;
};

class prepend_step final : public normalizing_step {
public:
    explicit prepend_step(std::string_view what) : what_(what) {}
    void apply(traced_text& text) const override {
        if (text.bytes.empty()) return;
        text_rewriter out(text);
        out.put(what_, 0, 0);
        out.keep(0, text.bytes.size());
        text = out.take();
    }

private:
    std::string what_;
};

class strip_step final : public normalizing_step {
public:
    strip_step(bool left, bool right) : left_(left), right_(right) {}
    void apply(traced_text& text) const override {
        std::size_t begin = 0, end = text.bytes.size();
        while (left_ && begin < end) {
            const character c = character_at(text.bytes, begin);
            if (!is_space(c.code)) break;
            begin += c.length;
        }
        while (right_ && begin < end) {
            const character c = character_before(text.bytes, end);
            if (!is_space(c.code)) break;
            end -= c.length;
        }
        if (begin == 0 && end == text.bytes.size()) return;
        text_rewriter out(text);
        out.keep(begin, end);
        text = out.take();
    }

private:
    bool left_, right_;
};

// The mapping of a single code point to lower case. One code point has two in full mapping: U+0130.
bool lower_case(char32_t code, std::string& to) {
    if (code == 0x130) {
        to = "i\u0307";
        return true;
    }
    const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
    if (lower == code) return false;
    append_utf8(to, lower);
    return true;
}

}  // namespace

normalizing_step_pointer normalize_to(normal_form form) { return std::make_shared<normal_form_step>(form); }
normalizing_step_pointer normalize_lowercase() { return by_character(lower_case); }

normalizing_step_pointer normalize_replace(std::string_view literal, std::string_view with) {
    if (literal.empty()) return normalize_prepend("");
    return std::make_shared<replace_step>(nullptr, literal, with);
}

normalizing_step_pointer normalize_replace_regex(std::string_view expression, std::string_view with) {
    return std::make_shared<replace_step>(std::make_shared<const regex_matcher>(expression), "", with);
}

normalizing_step_pointer normalize_prepend(std::string_view what) { return std::make_shared<prepend_step>(what); }
normalizing_step_pointer normalize_strip(bool left, bool right) { return std::make_shared<strip_step>(left, right); }

normalizing_step_pointer normalize_strip_accents() {
    return by_character([](char32_t code, std::string&) {
        return (classes_of(code) & category::mark) != 0 && !stays_as_it_is(code);
    });
}

}  // namespace fermata::text

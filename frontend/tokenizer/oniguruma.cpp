#include "frontend/tokenizer/oniguruma.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "frontend/tokenizer/tokenizer.hpp"
#include "frontend/tokenizer/unicode.hpp"

namespace fermata::text {

namespace {

// The members of White_Space, inside brackets. PCRE2's own \s counts U+180E too.
constexpr std::string_view space_members =
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view hexadecimal_members = "0-9a-fA-F";
// PCRE2's own \w leaves out marks, and its \b goes by it. Oniguruma's counts six numbers of Latin-1 besides.
constexpr std::string_view word_members =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

struct renamed_property {
    std::string_view theirs, ours;
};

// Long names and POSIX names of properties; general categories of one or two letters are the same in both.
constexpr std::array<renamed_property, 17> renamed_properties{{
    {"letter", "L"},
    {"mark", "M"},
    {"number", "N"},
    {"punctuation", "P"},
    {"symbol", "S"},
    {"separator", "Z"},
    {"other", "C"},
    {"alpha", "Alphabetic"},
    {"alphabetic", "Alphabetic"},
    {"lowercase", "Lowercase"},
    {"uppercase", "Uppercase"},
    {"lower", "Lowercase"},
    {"upper", "Uppercase"},
    {"digit", "Nd"},
    {"any", "Any"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
}};

std::string lower_without_fill(std::string_view name) {
    std::string lower;
    for (const char c : name) {
        if (c == '_' || c == ' ' || c == '-') continue;
        lower.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
    }
    return lower;
}

class translator {
public:
    explicit translator(std::string_view in) : in_(in) {}

    std::string run() {
        // Oniguruma's ^ and $ hold at every line, and only \n ends a line; a dot is anything but \n.
        out_ = pcre2_options;
        while (at_ < in_.size()) {
            const char c = in_[at_];
            if (c == '\\') {
                escape();
            } else if (c == '[') {
                open_bracket();
            } else if (c == ']' && in_brackets_ && !first_in_brackets_) {
                in_brackets_ = false;
                copy(1);
            } else {
                if (in_brackets_ && in_.substr(at_, 2) == "&&") refuse("&& inside brackets");
                if (!in_brackets_ && c == '(') check_flags();
                copy(1);
            }
        }
        return std::move(out_);
    }

private:
    [[noreturn]] void refuse(std::string_view what) const {
        throw unsupported_tokenizer("regular expression with " + std::string(what) + " at byte " +
                                    std::to_string(at_) + " is not supported");
    }

    // (?m) means another thing here and there.
    void check_flags() const {
        if (in_.substr(at_, 2) != "(?") return;
        for (std::size_t i = at_ + 2; i < in_.size() && (std::isalpha(static_cast<unsigned char>(in_[i])) || in_[i] == '-'); ++i) {
            if (in_[i] == 'm') refuse("the flag m");
        }
    }

    void copy(std::size_t bytes) {
        out_.append(in_.substr(at_, bytes));
        at_ += bytes;
        first_in_brackets_ = false;
    }

    void open_bracket() {
        if (in_brackets_) {
            if (in_.substr(at_, 2) != "[:") refuse("brackets inside brackets");
            const auto end = in_.find(":]", at_);
            if (end == in_.npos) refuse("an open [: in brackets");
            copy(end + 2 - at_);
            return;
        }
        in_brackets_ = true;
        copy(in_.substr(at_, 2) == "[^" ? 2 : 1);
        first_in_brackets_ = true;
    }

    void members(std::string_view set, bool negated) {
        if (!in_brackets_) {
            out_.append(negated ? "[^" : "[").append(set).append("]");
        } else if (negated) {
            refuse("\\W or \\H inside brackets");
        } else {
            out_.append(set);
        }
        at_ += 2;
        first_in_brackets_ = false;
    }

    void escape() {
        if (at_ + 1 == in_.size()) throw tokenizer_error("broken regular expression: a \\ at its end");
        switch (in_[at_ + 1]) {
            case 's': return members(space_members, false);
            case 'S': return in_brackets_ ? not_space_in_brackets() : members(space_members, true);
            case 'w': return members(word_members, false);
            case 'W': return members(word_members, true);
            case 'b':
            case 'B': return word_boundary(in_[at_ + 1] == 'b');
            case 'h': return members(hexadecimal_members, false);
            case 'H': return members(hexadecimal_members, true);
            case 'p':
            case 'P': return property();
            case 'Z': return replace(2, "(?=\\n?\\z)");
            case 'G':
            case 'K':
            case 'R':
            case 'X':
            case 'C':
            case 'Q':
            case 'E': return refuse(std::string("\\") + in_[at_ + 1]);
            case 'x':
            case 'u': return code_point();
            default: return copy(1 + character_at(in_, at_ + 1).length);
        }
    }

    void word_boundary(bool wanted) {
        if (in_brackets_) return copy(2);  // a backspace
        const std::string word = "[" + std::string(word_members) + "]";
        const std::string behind = "(?<=" + word + ")", not_behind = "(?<!" + word + ")";
        const std::string ahead = "(?=" + word + ")", not_ahead = "(?!" + word + ")";
        replace(2, wanted ? "(?:" + behind + not_ahead + "|" + not_behind + ahead + ")"
                          : "(?:" + behind + ahead + "|" + not_behind + not_ahead + ")");
    }

    void replace(std::size_t bytes, std::string_view with) {
        out_.append(with);
        at_ += bytes;
        first_in_brackets_ = false;
    }

    // What White_Space leaves of the code points.
    void not_space_in_brackets() {
        replace(2, "\\x00-\\x08\\x0e-\\x1f\\x21-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
                   "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
                   "\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}");
    }

    // \uHHHH is Oniguruma's alone; \xHH and \x{H...} are common to both.
    void code_point() {
        if (in_[at_ + 1] == 'x') return copy(2);
        const std::string_view digits = in_.substr(at_ + 2, 4);
        const bool all_hexadecimal = std::all_of(digits.begin(), digits.end(), [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        });
        if (digits.size() != 4 || !all_hexadecimal) refuse("a \\u without four hexadecimal digits");
        replace(6, "\\x{" + std::string(digits) + "}");
    }

    void property() {
        if (in_.substr(at_ + 2, 1) != "{") return copy(std::min<std::size_t>(3, in_.size() - at_));
        const auto end = in_.find('}', at_);
        if (end == in_.npos) throw tokenizer_error("broken regular expression: an open \\p{");
        std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
        bool negated = in_[at_ + 1] == 'P';
        if (!name.empty() && name.front() == '^') {
            negated = !negated;
            name.remove_prefix(1);
        }
        out_.append(negated ? "\\P{" : "\\p{").append(pcre2_name(name)).append("}");
        at_ = end + 1;
        first_in_brackets_ = false;
    }

    // A script's \p{Han} is by Script in Oniguruma, by Script_Extensions in PCRE2 unless said.
    static std::string pcre2_name(std::string_view name) {
        if (name.size() <= 2) return std::string(name);
        const std::string plain = lower_without_fill(name);
        for (const auto& renamed : renamed_properties) {
            if (renamed.theirs == plain) return std::string(renamed.ours);
        }
        return "sc:" + std::string(name);
    }

    std::string_view in_;
    std::string out_;
    std::size_t at_ = 0;
    bool in_brackets_ = false, first_in_brackets_ = false;
};

}  // namespace

std::string oniguruma_to_pcre2(std::string_view expression) {
    if (!is_valid_utf8(expression)) throw tokenizer_error("broken regular expression: it is not UTF-8");
    return translator(expression).run();
}

void repair_utf8(std::string_view text, std::string& repaired, std::vector<std::uint32_t>& origins) {
    repaired.clear();
    origins.clear();
    for (std::size_t at = 0; at < text.size();) {
        const character c = character_at(text, at);
        append_utf8(repaired, c.code);
        origins.resize(repaired.size(), static_cast<std::uint32_t>(at));
        at += c.length;
    }
    origins.push_back(static_cast<std::uint32_t>(text.size()));
}

}  // namespace fermata::text

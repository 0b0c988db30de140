// The reader behind json.hpp: recursive descent with a depth limit; nothing is copied.
#include "frontend/openai/json.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "messages/utf8.hpp"

namespace fermata::openai {

std::string_view name_of(json_kind kind) {
    switch (kind) {
        case json_kind::null: return "null";
        case json_kind::boolean: return "a boolean";
        case json_kind::number: return "a number";
        case json_kind::string: return "a string";
        case json_kind::array: return "a list";
        case json_kind::object: return "an object";
    }
    return "a value";
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Value of four hexadecimal digits at `at`, or -1.
int hex4(std::string_view text, std::size_t at) {
    if (at + 4 > text.size()) return -1;
    int value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const char c = text[at + i];
        const int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

}  // namespace

class json_parser {
public:
    json_parser(json_document& document, json_limits limits)
        : nodes_(document.nodes_), text_(document.text_), limits_(limits) {}

    void run() {
        if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // some editors put a byte order mark in front
        value(0);
        spaces();
        if (at_ != text_.size()) fail("something follows the end of the value");
    }

private:
    using node = json_document::node;

    [[noreturn]] void fail(const std::string& what) const { throw json_error(what, at_); }

    void spaces() {
        while (at_ < text_.size() &&
               (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
            ++at_;
    }

    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    std::uint32_t open(json_kind kind) {
        if (nodes_.size() >= limits_.values_max)
            fail("more than " + std::to_string(limits_.values_max) + " values in one body");
        node n;
        n.begin = static_cast<std::uint32_t>(at_);
        n.kind = kind;
        nodes_.push_back(n);
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }

    void close(std::uint32_t index) {
        nodes_[index].end = static_cast<std::uint32_t>(at_);
        nodes_[index].next = static_cast<std::uint32_t>(nodes_.size());
    }

    void value(std::size_t depth) {
        spaces();
        if (at_ >= text_.size()) fail("the text ends where a value is due");
        switch (text_[at_]) {
            case '{': return object(depth);
            case '[': return array(depth);
            case '"': return string();
            case 't': return word("true", json_kind::boolean);
            case 'f': return word("false", json_kind::boolean);
            case 'n': return word("null", json_kind::null);
            case 'N':
            case 'I': fail("NaN and Infinity aren't JSON");
            default: return number();
        }
    }

    void word(std::string_view spelled, json_kind kind) {
        if (text_.substr(at_, spelled.size()) != spelled) fail("expected a value");
        const auto n = open(kind);
        at_ += spelled.size();
        close(n);
    }

    void digits() {
        if (!is_digit(peek())) fail("expected a digit");
        while (is_digit(peek())) ++at_;
    }

    void number() {
        if (peek() != '-' && !is_digit(peek())) fail("expected a value");
        const auto n = open(json_kind::number);
        if (peek() == '-') ++at_;
        if (peek() == 'I') fail("NaN and Infinity aren't JSON");
        if (peek() == '0') {
            ++at_;
            if (is_digit(peek())) fail("a number has a leading zero");
        } else {
            digits();
        }
        if (peek() == '.') {
            ++at_;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            digits();
        }
        close(n);
    }

    void string() {
        const auto n = open(json_kind::string);
        bool escaped = false;
        ++at_;
        while (true) {
            if (at_ >= text_.size()) fail("a string isn't closed");
            const auto c = static_cast<unsigned char>(text_[at_]);
            if (c == '"') break;
            if (c < 0x20) fail("a control character in a string must be escaped");
            if (c == '\\') {
                escaped = true;
                escape();
            } else if (c < 0x80) {
                ++at_;
            } else {
                const auto length = utf8::sequence(text_, at_);
                if (length == 0) fail("a string isn't valid UTF-8");
                at_ += length;
            }
        }
        ++at_;
        nodes_[n].escaped = escaped;
        close(n);
    }

    void escape() {
        const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        if (c != 'u') {
            if (c == '\0' || std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos)
                fail("an unknown escape in a string");
            at_ += 2;
            return;
        }
        const int unit = hex4(text_, at_ + 2);
        if (unit < 0) fail("\\u needs four hexadecimal digits");
        if (unit >= 0xDC00 && unit <= 0xDFFF) fail("an unpaired surrogate in a string");
        if (unit < 0xD800 || unit > 0xDBFF) {
            at_ += 6;
            return;
        }
        const int low = text_.substr(at_ + 6, 2) == "\\u" ? hex4(text_, at_ + 8) : -1;
        if (low < 0xDC00 || low > 0xDFFF) fail("an unpaired surrogate in a string");
        at_ += 12;
    }

    void deeper(std::size_t depth) const {
        if (depth >= limits_.depth_max) fail("nested deeper than " + std::to_string(limits_.depth_max) + " levels");
    }

    void array(std::size_t depth) {
        deeper(depth);
        const auto n = open(json_kind::array);
        ++at_;
        spaces();
        if (peek() != ']') {
            while (true) {
                value(depth + 1);
                ++nodes_[n].size;
                spaces();
                if (peek() == ']') break;
                if (peek() != ',') fail("expected ',' or ']'");
                ++at_;
            }
        }
        ++at_;
        close(n);
    }

    void object(std::size_t depth) {
        deeper(depth);
        const auto n = open(json_kind::object);
        ++at_;
        spaces();
        if (peek() != '}') {
            while (true) {
                spaces();
                if (peek() != '"') fail("expected a member name in double quotes");
                if (nodes_[n].size >= limits_.members_max)
                    fail("more than " + std::to_string(limits_.members_max) + " members in one object");
                string();
                spaces();
                if (peek() != ':') fail("expected ':'");
                ++at_;
                value(depth + 1);
                ++nodes_[n].size;
                spaces();
                if (peek() == '}') break;
                if (peek() != ',') fail("expected ',' or '}'");
                ++at_;
            }
        }
        ++at_;
        close(n);
    }

    std::vector<node>& nodes_;
    std::string_view text_;
    json_limits limits_;
    std::size_t at_ = 0;
};

json_document::json_document(std::string_view text, json_limits limits) : text_(text) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) throw json_error("the text is larger than 4 GiB", 0);
    json_parser(*this, limits).run();
}

json_kind json_value::kind() const { return document_->nodes_[index_].kind; }

std::string_view json_value::raw() const {
    const auto& n = document_->nodes_[index_];
    return document_->text_.substr(n.begin, n.end - n.begin);
}

std::size_t json_value::size() const { return document_->nodes_[index_].size; }

bool json_value::boolean() const { return raw() == "true"; }

double json_value::number() const {
    const auto text = raw();
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc::result_out_of_range) {
        // Too large or too small to be told apart by from_chars: a negative exponent means (nearly) zero.
        const auto exponent = text.find_first_of("eE");
        const bool tiny = (exponent != text.npos && text.substr(exponent + 1).starts_with('-')) ||
                          (exponent == text.npos && text.substr(text.front() == '-').starts_with("0."));
        value = tiny ? 0 : std::numeric_limits<double>::infinity();
        if (text.front() == '-') value = -value;
    }
    return value;
}

std::optional<std::int64_t> json_value::integer() const {
    const auto text = raw();
    std::int64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc{} && result.ptr == text.data() + text.size()) return value;
    if (text.find_first_of(".eE") == text.npos) return std::nullopt;
    const double real = number();
    // 2^53: up to here every integer is a double of its own.
    if (!(std::fabs(real) <= 9007199254740992.0) || real != std::floor(real)) return std::nullopt;
    return static_cast<std::int64_t>(real);
}

std::string json_value::string() const {
    auto text = raw();
    text = text.substr(1, text.size() - 2);
    if (!document_->nodes_[index_].escaped) return std::string(text);
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] != '\\') {
            out += text[i++];
            continue;
        }
        const char c = text[i + 1];
        if (c != 'u') {
            out += c == 'b' ? '\b' : c == 'f' ? '\f' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
            i += 2;
            continue;
        }
        auto point = static_cast<std::uint32_t>(hex4(text, i + 2));
        i += 6;
        if (point >= 0xD800 && point <= 0xDBFF) {
            point = 0x10000 + ((point - 0xD800) << 10) + (static_cast<std::uint32_t>(hex4(text, i + 2)) - 0xDC00);
            i += 6;
        }
        utf8::append(out, static_cast<char32_t>(point));
    }
    return out;
}

bool json_value::equals(std::string_view text) const {
    const auto& n = document_->nodes_[index_];
    if (n.kind != json_kind::string) return false;
    if (n.escaped) return string() == text;
    return document_->text_.substr(n.begin + 1, n.end - n.begin - 2) == text;
}

std::optional<json_value> json_value::find(std::string_view name) const {
    std::optional<json_value> found;
    for_each_member([&](json_value key, json_value value) {
        if (key.equals(name)) found = value;
    });
    return found;
}

}  // namespace fermata::openai

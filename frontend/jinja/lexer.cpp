// See lexer.hpp. Follows the order in which Jinja2's lexer tries its rules, because templates rely on it: the end of a tag
// is looked for before anything else, and only while no bracket is open.
#include "frontend/jinja/lexer.hpp"

#include <array>
#include <optional>
#include <utility>

#include "frontend/jinja/fault.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

bool digit(char c) noexcept { return c >= '0' && c <= '9'; }

class lexer {
 public:
  explicit lexer(std::string_view source) : source_{source} {}

  std::vector<token> run() {
    while (at_ < source_.size()) root();
    emit(token_type::eof, {}, source_.size());
    return std::move(tokens_);
  }

 private:
  enum class opening { variable, block, comment, raw };

  char peek(std::size_t ahead = 0) const noexcept { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool starts(std::string_view what, std::size_t from) const noexcept { return source_.substr(from, what.size()) == what; }
  void emit(token_type type, std::string text, std::size_t at) { tokens_.push_back({type, std::move(text), at}); }

  std::size_t skip_space(std::size_t from) const noexcept {
    while (from < source_.size()) {
      std::size_t next = from;
      if (!text::is_space(text::decode(source_, next))) break;
      from = next;
    }
    return from;
  }

  // `{% raw %}` at `from`: the byte behind it. A `-` at its end eats white space; the newline rule doesn't apply to it.
  std::optional<std::size_t> raw_begin(std::size_t from) const noexcept {
    from += 2;
    if (from < source_.size() && (source_[from] == '-' || source_[from] == '+')) ++from;
    from = skip_space(from);
    if (!starts("raw", from)) return std::nullopt;
    from = skip_space(from + 3);
    if (starts("-%}", from)) return skip_space(from + 3);
    if (starts("%}", from)) return from + 2;
    return std::nullopt;
  }

  // Text before a tag whose marker is followed by `sign`, after white-space control.
  std::string_view trimmed(std::string_view data, char sign, bool variable) const noexcept {
    if (sign == '-') return text::strip_right(data);
    if (sign == '+' || variable) return data;
    std::size_t const newline = data.rfind('\n');
    std::size_t const line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return data;
    return text::strip(data.substr(line)).empty() ? data.substr(0, line) : data;
  }

  void root() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        emit(token_type::data, std::string{source_.substr(at_)}, at_);
        at_ = source_.size();
        return;
      }
      char const c = source_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    open(tag);
  }

  void open(std::size_t tag) {
    char const mark = source_[tag + 1];
    char const sign = tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+') ? source_[tag + 2] : '\0';
    auto const raw = mark == '%' ? raw_begin(tag) : std::nullopt;
    auto const data = trimmed(source_.substr(at_, tag - at_), sign, mark == '{');
    if (!data.empty()) emit(token_type::data, std::string{data}, at_);
    at_ = raw ? *raw : tag + 2 + (sign ? 1 : 0);
    line_starting_ = source_[at_ - 1] == '\n';
    if (raw) return raw_block(tag);
    if (mark == '#') return comment(tag);
    emit(mark == '{' ? token_type::variable_begin : token_type::block_begin, {}, tag);
    inside(mark == '{', tag);
  }

  void comment(std::size_t tag) {
    std::size_t const end = source_.find("#}", at_);
    if (end == std::string_view::npos && at_ == source_.size()) return;  // as the reference: nothing was left unclosed
    if (end == std::string_view::npos) throw syntax_fault{"comment is not closed, '#}' is missing", tag};
    char const sign = end > at_ ? source_[end - 1] : '\0';
    close(end + 2, sign);
  }

  // Behind an end marker: white space by its sign (`-` all, `+` none, else one newline).
  void close(std::size_t end, char sign) {
    at_ = end;
    if (sign == '-')
      at_ = skip_space(at_);
    else if (sign != '+' && peek() == '\n')
      ++at_;
    line_starting_ = source_[at_ - 1] == '\n';
  }

  void raw_block(std::size_t tag) {
    if (at_ == source_.size()) return;
    for (std::size_t end = at_;; ++end) {
      end = source_.find("{%", end);
      if (end == std::string_view::npos) throw syntax_fault{"raw block is not closed, '{% endraw %}' is missing", tag};
      std::size_t from = end + 2;
      char const sign = from < source_.size() && (source_[from] == '-' || source_[from] == '+') ? source_[from] : '\0';
      from = skip_space(from + (sign ? 1 : 0));
      if (!starts("endraw", from)) continue;
      from = skip_space(from + 6);
      char const end_sign = from < source_.size() && (source_[from] == '-' || source_[from] == '+') ? source_[from] : '\0';
      if (end_sign) ++from;
      if (!starts("%}", from)) continue;
      auto const data = trimmed(source_.substr(at_, end - at_), sign, false);
      if (!data.empty()) emit(token_type::data, std::string{data}, at_);
      close(from + 2, end_sign);
      return;
    }
  }

  bool tag_end(bool variable) {
    std::string_view const marker = variable ? "}}" : "%}";
    char const sign = peek() == '-' || (!variable && peek() == '+') ? peek() : '\0';
    if (!starts(marker, at_ + (sign ? 1 : 0))) return false;
    emit(variable ? token_type::variable_end : token_type::block_end, {}, at_);
    std::size_t const end = at_ + (sign ? 1 : 0) + 2;
    if (variable && !sign) {
      at_ = end;
      line_starting_ = false;
    } else {
      close(end, sign);
    }
    return true;
  }

  void inside(bool variable, std::size_t tag) {
    std::string open_brackets;
    while (true) {
      if (open_brackets.empty() && tag_end(variable)) return;
      if (at_ >= source_.size()) {
        if (!open_brackets.empty())
          throw syntax_fault{std::string{"end of template, but '"} + open_brackets.back() + "' is still awaited", tag};
        throw syntax_fault{variable ? "'{{' is not closed by '}}'" : "'{%' is not closed by '%}'", tag};
      }
      std::size_t const after = skip_space(at_);
      if (after != at_) {
        at_ = after;
        continue;
      }
      if (!number() && !name() && !quoted()) operation(open_brackets);
    }
  }

  // Digits with single underscores between them, from `at`; the end, or `at` when there are none.
  template <class Accept>
  std::size_t digits(std::size_t at, Accept accept) const {
    if (at >= source_.size() || !accept(source_[at])) return at;
    while (at < source_.size()) {
      if (accept(source_[at]))
        ++at;
      else if (source_[at] == '_' && at + 1 < source_.size() && accept(source_[at + 1]))
        at += 2;
      else
        break;
    }
    return at;
  }

  void emit_number(token_type type, std::size_t end) {
    std::string digits_only;
    for (char c : source_.substr(at_, end - at_))
      if (c != '_') digits_only.push_back(c);
    emit(type, std::move(digits_only), at_);
    at_ = end;
  }

  bool number() {
    if (!digit(peek())) return false;
    std::size_t const whole = digits(at_, digit);
    std::size_t end = whole;
    bool real = false;
    if (at_ == 0 || source_[at_ - 1] != '.') {
      if (end + 1 < source_.size() && source_[end] == '.' && digit(source_[end + 1])) {
        end = digits(end + 1, digit);
        real = true;
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        std::size_t exponent = end + 1;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
        std::size_t const exponent_end = digits(exponent, digit);
        if (exponent_end > exponent) {
          end = exponent_end;
          real = true;
        }
      }
    }
    if (real) {
      emit_number(token_type::real, end);
      return true;
    }
    emit_number(token_type::integer, integer_end());
    return true;
  }

  std::size_t integer_end() const {
    auto const prefixed = [&](char lower, auto accept) -> std::size_t {
      if (peek() != '0' || (peek(1) | 0x20) != lower) return at_;
      std::size_t from = at_ + 2;
      if (from < source_.size() && source_[from] == '_') ++from;
      std::size_t const end = digits(from, accept);
      return end > from ? end : at_;
    };
    if (auto const end = prefixed('b', [](char c) { return c == '0' || c == '1'; }); end > at_) return end;
    if (auto const end = prefixed('o', [](char c) { return c >= '0' && c <= '7'; }); end > at_) return end;
    if (auto const end = prefixed('x', [](char c) { return digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }); end > at_) return end;
    if (peek() == '0') return digits(at_, [](char c) { return c == '0'; });
    return digits(at_, digit);
  }

  bool name() {
    std::size_t end = at_;
    while (end < source_.size()) {
      std::size_t next = end;
      char32_t const c = text::decode(source_, next);
      if (!(end == at_ ? text::is_identifier_start(c) : text::is_identifier_part(c))) break;
      end = next;
    }
    if (end == at_) return false;
    emit(token_type::name, std::string{source_.substr(at_, end - at_)}, at_);
    at_ = end;
    return true;
  }

  bool quoted() {
    char const quote = peek();
    if (quote != '\'' && quote != '"') return false;
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) throw syntax_fault{"string is not closed", at_};
    emit(token_type::string, unescape(at_ + 1, end), at_);
    at_ = end + 1;
    return true;
  }

  char32_t hexadecimal(std::size_t from, std::size_t digits_wanted, std::size_t end) const {
    char32_t c = 0;
    for (std::size_t i = from; i < from + digits_wanted; ++i) {
      char const d = i < end ? source_[i] : '\0';
      char const low = static_cast<char>(d | 0x20);
      if (!digit(d) && !(low >= 'a' && low <= 'f'))
        throw syntax_fault{"truncated escape in string: " + std::to_string(digits_wanted) + " hexadecimal digits are needed", from};
      c = c * 16 + static_cast<char32_t>(digit(d) ? d - '0' : low - 'a' + 10);
    }
    if (c > 0x10ffff) throw syntax_fault{"escape in string is beyond U+10FFFF", from};
    if (c >= 0xd800 && c < 0xe000) throw syntax_fault{"escape in string is a lone surrogate, which is no character", from};
    return c;
  }

  // Escapes of a Python string literal; an unknown one stays as written.
  std::string unescape(std::size_t at, std::size_t end) const {
    static constexpr std::string_view letters = "abfnrtv\\'\"";
    static constexpr std::string_view meant = "\a\b\f\n\r\t\v\\'\"";
    std::string out;
    out.reserve(end - at);
    while (at < end) {
      if (source_[at] != '\\') {
        out.push_back(source_[at++]);
        continue;
      }
      char const c = source_[at + 1];
      at += 2;
      if (auto const known = letters.find(c); known != std::string_view::npos) {
        out.push_back(meant[known]);
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        char32_t octal = static_cast<char32_t>(c - '0');
        for (int i = 0; i < 2 && at < end && source_[at] >= '0' && source_[at] <= '7'; ++i)
          octal = octal * 8 + static_cast<char32_t>(source_[at++] - '0');
        text::append(out, octal);
      } else if (c == 'x' || c == 'u' || c == 'U') {
        std::size_t const wanted = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        text::append(out, hexadecimal(at, wanted, end));
        at += wanted;
      } else if (c == 'N') {
        throw syntax_fault{"\\N{...} escapes are not supported, write \\uXXXX", at - 2};
      } else {
        out.push_back('\\');
        at -= 1;  // the character itself follows, whatever its length
        out.append(source_.substr(at, text::width(source_[at])));
        at += text::width(source_[at]);
      }
    }
    return out;
  }

  void operation(std::string& open_brackets) {
    static constexpr std::array<std::pair<std::string_view, token_type>, 26> operators{{
        {"//", token_type::floordiv}, {"**", token_type::pow}, {"==", token_type::eq}, {"!=", token_type::ne},
        {">=", token_type::gteq}, {"<=", token_type::lteq}, {"+", token_type::add}, {"-", token_type::sub},
        {"/", token_type::div}, {"*", token_type::mul}, {"%", token_type::mod}, {"~", token_type::tilde},
        {"[", token_type::lbracket}, {"]", token_type::rbracket}, {"(", token_type::lparen}, {")", token_type::rparen},
        {"{", token_type::lbrace}, {"}", token_type::rbrace}, {">", token_type::gt}, {"<", token_type::lt},
        {"=", token_type::assign}, {".", token_type::dot}, {":", token_type::colon}, {"|", token_type::pipe},
        {",", token_type::comma}, {";", token_type::semicolon},
    }};
    for (auto const& [spelling, type] : operators) {
      if (!starts(spelling, at_)) continue;
      balance(spelling[0], open_brackets);
      emit(type, std::string{spelling}, at_);
      at_ += spelling.size();
      return;
    }
    std::string shown;
    text::append_quoted(shown, source_.substr(at_, text::width(source_[at_])));
    throw syntax_fault{"unexpected character " + shown, at_};
  }

  void balance(char c, std::string& open_brackets) const {
    if (c == '{') open_brackets.push_back('}');
    if (c == '(') open_brackets.push_back(')');
    if (c == '[') open_brackets.push_back(']');
    if (c != '}' && c != ')' && c != ']') return;
    if (open_brackets.empty()) throw syntax_fault{std::string{"unexpected '"} + c + "'", at_};
    if (open_brackets.back() != c) throw syntax_fault{std::string{"unexpected '"} + c + "', expected '" + open_brackets.back() + "'", at_};
    open_brackets.pop_back();
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_starting_ = true;
  std::vector<token> tokens_;
};

}  // namespace

std::string_view describe(token_type type) noexcept {
  static constexpr std::array<std::string_view, 36> names{
      "text", "'{{'", "'}}'", "'{%'", "'%}'", "a name", "a string", "an integer", "a float", "'+'", "'='", "':'", "','", "'/'", "'.'",
      "'=='", "'//'", "'>'", "'>='", "'{'", "'['", "'('", "'<'", "'<='", "'%'", "'*'", "'!='", "'|'", "'**'", "'}'", "']'", "')'",
      "';'", "'-'", "'~'", "the end of the template"};
  return names[static_cast<std::size_t>(type)];
}

std::string normalise_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<token> tokenize(std::string_view source) { return lexer{source}.run(); }

}  // namespace fermata::jinja

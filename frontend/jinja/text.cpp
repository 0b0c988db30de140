// Python's str behaviour over UTF-8. Case maps and categories come from utf8proc, exceptions from unicode_tables.
#include "frontend/jinja/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <utf8proc.h>

#include "frontend/jinja/unicode_tables.hpp"

namespace fermata::jinja::text {
namespace {

utf8proc_category_t category(char32_t c) noexcept { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

template <class Table>
bool within(Table const& table, char32_t c) noexcept {
  auto const after = std::upper_bound(table.begin(), table.end(), c,
                                      [](char32_t point, unicode::code_range const& r) { return point < r.first; });
  return after != table.begin() && c <= std::prev(after)->last;
}

template <class Table>
char const* special(Table const& table, char32_t c) noexcept {
  auto const found = std::lower_bound(table.begin(), table.end(), c,
                                      [](unicode::special_case const& s, char32_t point) { return s.point < point; });
  return found != table.end() && found->point == c ? found->mapped : nullptr;
}

void append_upper(std::string& to, char32_t c) {
  if (c < 0x80) {
    to.push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else if (auto const* mapped = special(unicode::upper_specials, c)) {
    to += mapped;
  } else {
    append(to, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& to, char32_t c) {
  if (c < 0x80) {
    append_upper(to, c);
  } else if (auto const* mapped = special(unicode::title_specials, c)) {
    to += mapped;
  } else {
    append(to, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

bool cased(char32_t c) noexcept { return is_lower(c) || is_upper(c) || is_title(c); }

bool case_ignorable(char32_t c) noexcept {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: break;
  }
  constexpr std::array<char32_t, 15> punctuation{0x27, 0x2e, 0x3a, 0xb7, 0x387, 0x55f, 0x5f4, 0x2018,
                                                 0x2019, 0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07};
  return c == 0xff0e || c == 0xff1a || std::find(punctuation.begin(), punctuation.end(), c) != punctuation.end();
}

// A capital sigma becomes a final one behind a cased letter and before no other (Unicode's Final_Sigma).
bool final_sigma(std::string_view s, std::size_t at, std::size_t after) noexcept {
  bool letter_before = false;
  for (std::size_t end = at; end > 0;) {
    std::size_t start = previous(s, end);
    end = start;
    char32_t const c = decode(s, start);
    if (case_ignorable(c)) continue;
    letter_before = cased(c);
    break;
  }
  if (!letter_before) return false;
  while (after < s.size()) {
    char32_t const c = decode(s, after);
    if (!case_ignorable(c)) return !cased(c);
  }
  return true;
}

void append_lower(std::string& to, std::string_view s, std::size_t at, std::size_t after, char32_t c) {
  if (c < 0x80) {
    to.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x3a3) {
    append(to, final_sigma(s, at, after) ? U'\u03c2' : U'\u03c3');
  } else if (c == 0x130) {
    to += "i\xcc\x87";
  } else {
    append(to, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

bool contains(std::string_view characters, std::string_view one) noexcept {
  return characters.find(one) != std::string_view::npos;  // UTF-8 is self-synchronising: no false hit inside a character
}

}  // namespace

std::size_t count(std::string_view s) noexcept {
  return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

char32_t decode(std::string_view s, std::size_t& at) noexcept {
  auto const byte = [&](std::size_t k) { return static_cast<char32_t>(static_cast<unsigned char>(s[at + k])); };
  char32_t const lead = byte(0);
  std::size_t const n = width(s[at]);
  if (n == 1 || at + n > s.size()) {
    ++at;
    return lead;
  }
  char32_t c = n == 2 ? lead & 0x1f : n == 3 ? lead & 0x0f : lead & 0x07;
  for (std::size_t k = 1; k < n; ++k) c = (c << 6) | (byte(k) & 0x3f);
  at += n;
  return c;
}

std::size_t offset(std::string_view s, std::size_t index) noexcept {
  std::size_t at = 0;
  while (index > 0 && at < s.size()) {
    at += width(s[at]);
    --index;
  }
  return std::min(at, s.size());
}

std::size_t previous(std::string_view s, std::size_t end) noexcept {
  do --end;
  while (end > 0 && (s[end] & 0xc0) == 0x80);
  return end;
}

bool is_space(char32_t c) noexcept {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

bool is_printable(char32_t c) noexcept {
  if (c < 0x7f) return c >= 0x20;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_alpha(char32_t c) noexcept {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  auto const k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) noexcept {
  return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND;
}
bool is_digit(char32_t c) noexcept { return is_decimal(c) || (c >= 0x80 && within(unicode::digits_not_decimal, c)); }
bool is_numeric(char32_t c) noexcept {
  if (c < 0x80) return c >= '0' && c <= '9';
  auto const k = category(c);
  return (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO) || within(unicode::numeric_letters, c);
}
bool is_lower(char32_t c) noexcept {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return category(c) == UTF8PROC_CATEGORY_LL || within(unicode::lowercase_not_ll, c);
}
bool is_upper(char32_t c) noexcept {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return category(c) == UTF8PROC_CATEGORY_LU || within(unicode::uppercase_not_lu, c);
}
bool is_title(char32_t c) noexcept { return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT; }
bool is_identifier_start(char32_t c) noexcept { return c == U'_' || is_alpha(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NL); }
bool is_identifier_part(char32_t c) noexcept {
  if (is_identifier_start(c) || is_decimal(c)) return true;
  if (c < 0x80) return false;
  auto const k = category(c);
  return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_PC || c == 0xb7;
}

std::string upper(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t at = 0; at < s.size();) append_upper(out, decode(s, at));
  return out;
}

std::string lower(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t at = 0; at < s.size();) {
    std::size_t const start = at;
    char32_t const c = decode(s, at);
    append_lower(out, s, start, at, c);
  }
  return out;
}

std::string title(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  bool in_word = false;
  for (std::size_t at = 0; at < s.size();) {
    std::size_t const start = at;
    char32_t const c = decode(s, at);
    if (in_word)
      append_lower(out, s, start, at, c);
    else
      append_title(out, c);
    in_word = cased(c);
  }
  return out;
}

std::string capitalize(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t at = 0; at < s.size();) {
    std::size_t const start = at;
    char32_t const c = decode(s, at);
    if (start == 0)
      append_title(out, c);
    else
      append_lower(out, s, start, at, c);
  }
  return out;
}

std::string swapcase(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t at = 0; at < s.size();) {
    std::size_t const start = at;
    char32_t const c = decode(s, at);
    if (is_upper(c))
      append_lower(out, s, start, at, c);
    else if (is_lower(c))
      append_upper(out, c);
    else
      append(out, c);
  }
  return out;
}

std::string casefold(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t at = 0; at < s.size();) {
    char32_t const c = decode(s, at);
    std::array<utf8proc_int32_t, 8> folded{};
    int last_boundary_class = 0;
    auto const n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded.data(), static_cast<utf8proc_ssize_t>(folded.size()),
                                           UTF8PROC_CASEFOLD, &last_boundary_class);
    for (utf8proc_ssize_t i = 0; i < n; ++i) append(out, static_cast<char32_t>(folded[static_cast<std::size_t>(i)]));
  }
  return out;
}

std::string_view strip_left(std::string_view s) noexcept {
  std::size_t at = 0;
  while (at < s.size()) {
    std::size_t next = at;
    if (!is_space(decode(s, next))) break;
    at = next;
  }
  return s.substr(at);
}

std::string_view strip_right(std::string_view s) noexcept {
  while (!s.empty()) {
    std::size_t start = previous(s, s.size());
    std::size_t const cut = start;
    if (!is_space(decode(s, start))) break;
    s = s.substr(0, cut);
  }
  return s;
}

std::string_view strip_left(std::string_view s, std::string_view characters) noexcept {
  while (!s.empty() && contains(characters, s.substr(0, width(s[0])))) s.remove_prefix(width(s[0]));
  return s;
}

std::string_view strip_right(std::string_view s, std::string_view characters) noexcept {
  while (!s.empty()) {
    std::size_t const start = previous(s, s.size());
    if (!contains(characters, s.substr(start))) break;
    s = s.substr(0, start);
  }
  return s;
}

std::size_t find(std::string_view s, std::string_view needle, std::size_t from) noexcept {
  if (from > s.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  void const* hit = memmem(s.data() + from, s.size() - from, needle.data(), needle.size());
  return hit ? static_cast<std::size_t>(static_cast<char const*>(hit) - s.data()) : std::string_view::npos;
}

std::size_t line_break(std::string_view s, std::size_t at) noexcept {
  auto const b = static_cast<unsigned char>(s[at]);
  if (b == '\r') return at + 1 < s.size() && s[at + 1] == '\n' ? 2 : 1;
  if ((b >= 0x0a && b <= 0x0c) || (b >= 0x1c && b <= 0x1e)) return 1;
  if (b == 0xc2 && s.substr(at, 2) == "\xc2\x85") return 2;
  if (b == 0xe2 && (s.substr(at, 3) == "\xe2\x80\xa8" || s.substr(at, 3) == "\xe2\x80\xa9")) return 3;
  return 0;
}

void append_quoted(std::string& to, std::string_view s) {
  bool const double_quotes = s.find('\'') != std::string_view::npos && s.find('"') == std::string_view::npos;
  char const quote = double_quotes ? '"' : '\'';
  auto const hex = [&](char32_t c, int digits) {
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) to.push_back("0123456789abcdef"[(c >> shift) & 15]);
  };
  to.push_back(quote);
  for (std::size_t at = 0; at < s.size();) {
    char32_t const c = decode(s, at);
    if (c == static_cast<char32_t>(quote) || c == U'\\') {
      to.push_back('\\');
      to.push_back(static_cast<char>(c));
    } else if (c == U'\n') {
      to += "\\n";
    } else if (c == U'\r') {
      to += "\\r";
    } else if (c == U'\t') {
      to += "\\t";
    } else if (is_printable(c)) {
      append(to, c);
    } else if (c < 0x100) {
      to += "\\x";
      hex(c, 2);
    } else if (c < 0x10000) {
      to += "\\u";
      hex(c, 4);
    } else {
      to += "\\U";
      hex(c, 8);
    }
  }
  to.push_back(quote);
}

}  // namespace fermata::jinja::text

// Methods of Python's str. On markup they give markup, and text that is put into it is escaped first.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/jinja/builtins.hpp"
#include "frontend/jinja/methods.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

value like(runtime& rt, value const& self, std::string s) {
  rt.allocate(s.size());
  return self.is_markup() ? value::markup(std::move(s)) : value{std::move(s)};
}

std::string const& text_argument(value const& v, std::string_view method) {
  if (v.is_undefined()) refuse_undefined(v);
  if (!v.is_string()) fail(std::string{method} + "() needs a string, not " + type_name(v));
  return v.text();
}

// Text put into `self`: escaped when self is markup and it isn't.
std::string inserted(runtime& rt, value const& self, value const& v) { return self.is_markup() ? escaped(rt, v).text() : v.text(); }

template <std::string (*Map)(std::string_view)>
value mapped(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "method", 0, 0);
  return like(rt, self, Map(self.text()));
}

template <bool (*Is)(char32_t)>
value all_are(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "method", 0, 0);
  rt.scan(self.text().size());
  auto const& s = self.text();
  for (std::size_t at = 0; at < s.size();)
    if (!Is(text::decode(s, at))) return value{false};
  return value{!s.empty()};
}

bool is_alpha(char32_t c) { return text::is_alpha(c); }
bool is_alnum(char32_t c) { return text::is_alnum(c); }
bool is_decimal(char32_t c) { return text::is_decimal(c); }
bool is_digit(char32_t c) { return text::is_digit(c); }
bool is_numeric(char32_t c) { return text::is_numeric(c); }
bool is_space(char32_t c) { return text::is_space(c); }

value isprintable(runtime&, value const& self, arguments& args) {
  positional_only(args, "isprintable", 0, 0);
  auto const& s = self.text();
  for (std::size_t at = 0; at < s.size();)
    if (!text::is_printable(text::decode(s, at))) return value{false};
  return value{true};
}

value isascii(runtime&, value const& self, arguments& args) {
  positional_only(args, "isascii", 0, 0);
  return value{self.string().ascii()};
}

value isidentifier(runtime&, value const& self, arguments& args) {
  positional_only(args, "isidentifier", 0, 0);
  auto const& s = self.text();
  std::size_t at = 0;
  if (s.empty() || !text::is_identifier_start(text::decode(s, at))) return value{false};
  while (at < s.size())
    if (!text::is_identifier_part(text::decode(s, at))) return value{false};
  return value{true};
}

value islower(runtime&, value const& self, arguments& args) {
  positional_only(args, "islower", 0, 0);
  return value{all_lower(self.text())};
}
value isupper(runtime&, value const& self, arguments& args) {
  positional_only(args, "isupper", 0, 0);
  return value{all_upper(self.text())};
}

value istitle(runtime&, value const& self, arguments& args) {
  positional_only(args, "istitle", 0, 0);
  auto const& s = self.text();
  bool any = false, in_word = false;
  for (std::size_t at = 0; at < s.size();) {
    char32_t const c = text::decode(s, at);
    bool const starts = text::is_upper(c) || text::is_title(c), goes_on = text::is_lower(c);
    if ((starts && in_word) || (goes_on && !in_word)) return value{false};
    in_word = starts || goes_on;
    any = any || in_word;
  }
  return value{any};
}

enum class side { both, left, right };

template <side Side>
value strip(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "strip", 0, 1);
  std::string_view s = self.text();
  if (args.positional.empty() || args.positional[0].is_none()) {
    if (Side != side::left) s = text::strip_right(s);
    if (Side != side::right) s = text::strip_left(s);
  } else {
    auto const& characters = text_argument(args.positional[0], "strip");
    rt.step((self.text().size() * (characters.size() / 16 + 1)) / 64);
    if (Side != side::left) s = text::strip_right(s, characters);
    if (Side != side::right) s = text::strip_left(s, characters);
  }
  if (s.size() == self.text().size()) return self;
  return like(rt, self, std::string{s});
}

// Byte range that start and end arguments select; `from` is npos when start is behind the end.
struct part {
  std::size_t from, to;
};
part selected(runtime& rt, value const& self, std::vector<value> const& args, std::size_t first) {
  auto const size = static_cast<std::int64_t>(self.string().length());
  auto const bound = [&](std::size_t i, std::int64_t absent) {
    if (i >= args.size() || args[i].is_none()) return absent;
    auto n = to_index(args[i], "slice index");
    if (n < 0) n = std::max<std::int64_t>(n + size, 0);
    return n;
  };
  auto const start = bound(first, 0), end = std::min(bound(first + 1, size), size);
  if (start > size || start > end) return {npos, 0};
  auto const& s = self.text();
  if (self.string().ascii()) return {static_cast<std::size_t>(start), static_cast<std::size_t>(end)};
  rt.scan(s.size());
  return {text::offset(s, static_cast<std::size_t>(start)), text::offset(s, static_cast<std::size_t>(end))};
}

template <bool Start>
value affixed(runtime& rt, value const& self, arguments& args) {
  char const* const name = Start ? "startswith" : "endswith";
  positional_only(args, name, 1, 3);
  auto const p = selected(rt, self, args.positional, 1);
  auto const matches = [&](value const& affix) {
    auto const& a = text_argument(affix, name);
    if (p.from == npos) return false;
    auto const s = std::string_view{self.text()}.substr(p.from, p.to - p.from);
    return a.size() <= s.size() && (Start ? s.substr(0, a.size()) : s.substr(s.size() - a.size())) == a;
  };
  value const& wanted = args.positional[0];
  if (wanted.type() != kind::tuple) return value{matches(wanted)};
  for (auto const& affix : wanted.items())
    if (matches(affix)) return value{true};
  return value{false};
}

std::int64_t position(value const& self, std::size_t byte) {
  if (byte == npos) return -1;
  return static_cast<std::int64_t>(self.string().ascii() ? byte : text::count(std::string_view{self.text()}.substr(0, byte)));
}

template <bool Last, bool MustExist>
value find(runtime& rt, value const& self, arguments& args) {
  char const* const name = MustExist ? "index" : "find";
  positional_only(args, name, 1, 3);
  auto const& needle = text_argument(args.positional[0], name);
  auto const p = selected(rt, self, args.positional, 1);
  rt.scan(self.text().size());
  std::size_t at = npos;
  if (p.from != npos) {
    auto const s = std::string_view{self.text()}.substr(0, p.to);
    if (!Last) {
      at = text::find(s, needle, p.from);
    } else {
      auto const found = last_find(rt, s.substr(p.from), needle);
      at = found == npos ? npos : found + p.from;
    }
  }
  if (MustExist && at == npos) fail("substring not found");
  return value{position(self, at)};
}

value count(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "count", 1, 3);
  auto const& needle = text_argument(args.positional[0], "count");
  auto const p = selected(rt, self, args.positional, 1);
  rt.scan(self.text().size());
  if (p.from == npos) return value{0};
  auto const s = std::string_view{self.text()}.substr(0, p.to);
  if (needle.empty()) return value{static_cast<std::int64_t>(text::count(s.substr(p.from)) + 1)};
  std::int64_t n = 0;
  for (std::size_t at = text::find(s, needle, p.from); at != npos; at = text::find(s, needle, at + needle.size())) ++n;
  return value{n};
}

value replace(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "replace", 2, 3);
  text_argument(args.positional[1], "replace");
  auto const times = args.positional.size() > 2 ? to_index(args.positional[2], "count of replace()") : -1;
  return like(rt, self, replaced(rt, self.text(), text_argument(args.positional[0], "replace"), inserted(rt, self, args.positional[1]), times));
}

// Results of split, made into values like the whole.
value pieces(runtime& rt, value const& self, std::vector<std::string_view> const& parts) {
  std::vector<value> out;
  out.reserve(parts.size());
  for (auto const& part : parts) out.push_back(like(rt, self, std::string{part}));
  return rt.make_list(std::move(out));
}

template <bool FromRight>
value split(runtime& rt, value const& self, arguments& args) {
  auto const p = bind_arguments(args, FromRight ? "rsplit" : "split", {"sep", "maxsplit"}, 0);
  auto const limit = p[1].is_missing() ? -1 : to_index(p[1], "maxsplit");
  auto const most = limit < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(limit);
  rt.scan(self.text().size());
  if (p[0].is_missing() || p[0].is_none())
    return pieces(rt, self, FromRight ? split_blanks_right(rt, self.text(), most) : split_blanks(rt, self.text(), most));
  auto const& separator = text_argument(p[0], "split");
  if (separator.empty()) fail("empty separator");
  return pieces(rt, self, FromRight ? split_right(rt, self.text(), separator, most) : split_left(rt, self.text(), separator, most));
}

value splitlines(runtime& rt, value const& self, arguments& args) {
  auto const p = bind_arguments(args, "splitlines", {"keepends"}, 0);
  return pieces(rt, self, split_lines(rt, self.text(), !p[0].is_missing() && truth(p[0])));
}

template <bool FromRight>
value partition(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "partition", 1, 1);
  auto const& separator = text_argument(args.positional[0], "partition");
  if (separator.empty()) fail("empty separator");
  std::string_view const s = self.text();
  rt.scan(s.size());
  auto const at = FromRight ? last_find(rt, s, separator) : text::find(s, separator);
  std::vector<std::string_view> parts;
  if (at != npos)
    parts = {s.substr(0, at), s.substr(at, separator.size()), s.substr(at + separator.size())};
  else if (FromRight)
    parts = {"", "", s};
  else
    parts = {s, "", ""};
  std::vector<value> out;
  for (auto const& part : parts) out.push_back(like(rt, self, std::string{part}));
  return rt.make_tuple(std::move(out));
}

value join(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "join", 1, 1);
  std::string out;
  cursor each{rt, args.positional[0]};
  value item;
  for (bool first = true; each.next(item); first = false) {
    if (!self.is_markup() && !item.is_string()) fail(std::string{"join() needs strings: an item is "} + type_name(item));
    if (!first) out += self.text();
    std::size_t const before = out.size();
    out += self.is_markup() ? escaped(rt, item).text() : item.text();
    rt.allocate(out.size() - before + self.text().size());
  }
  return self.is_markup() ? value::markup(std::move(out)) : value{std::move(out)};
}

enum class align { left, right, center };

template <align Align>
value justify(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "justify", 1, 2);
  auto const width = to_index(args.positional[0], "width");
  std::string fill = " ";
  if (args.positional.size() > 1) {
    if (!args.positional[1].is_string() || args.positional[1].string().length() != 1) fail("the fill character must be exactly one character long");
    fill = inserted(rt, self, args.positional[1]);
  }
  auto const have = static_cast<std::int64_t>(self.string().length());
  if (width <= have) return self;
  auto const missing = static_cast<std::size_t>(width - have);
  rt.allocate(missing);
  rt.allocate(missing * fill.size());
  // Python puts the odd blank of a centred text left when the width is odd.
  std::size_t const left = Align == align::left ? 0 : Align == align::right ? missing : missing / 2 + (missing & static_cast<std::size_t>(width) & 1);
  std::string out;
  for (std::size_t i = 0; i < left; ++i) out += fill;
  out += self.text();
  for (std::size_t i = left; i < missing; ++i) out += fill;
  return like(rt, self, std::move(out));
}

value zfill(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "zfill", 1, 1);
  auto const width = to_index(args.positional[0], "width");
  auto const have = static_cast<std::int64_t>(self.string().length());
  if (width <= have) return self;
  auto const missing = static_cast<std::size_t>(width - have);
  rt.allocate(missing);
  std::string out = self.text();
  out.insert(!out.empty() && (out[0] == '+' || out[0] == '-') ? 1 : 0, missing, '0');
  return like(rt, self, std::move(out));
}

value expandtabs(runtime& rt, value const& self, arguments& args) {
  auto const p = bind_arguments(args, "expandtabs", {"tabsize"}, 0);
  auto const size = p[0].is_missing() ? 8 : to_index(p[0], "tabsize");
  std::string out;
  std::int64_t column = 0;
  for (std::size_t at = 0; at < self.text().size();) {
    char32_t const c = text::decode(self.text(), at);
    if (c == U'\t') {
      std::int64_t const blanks = size > 0 ? size - column % size : 0;
      rt.allocate(static_cast<std::size_t>(blanks));
      out.append(static_cast<std::size_t>(blanks), ' ');
      column += blanks;
      continue;
    }
    text::append(out, c);
    column = c == U'\n' || c == U'\r' ? 0 : column + 1;
  }
  return like(rt, self, std::move(out));
}

template <bool Prefix>
value remove_affix(runtime& rt, value const& self, arguments& args) {
  positional_only(args, Prefix ? "removeprefix" : "removesuffix", 1, 1);
  auto const& a = text_argument(args.positional[0], "remove");
  std::string_view const s = self.text();
  if (a.empty() || a.size() > s.size() || (Prefix ? s.substr(0, a.size()) : s.substr(s.size() - a.size())) != a) return self;
  return like(rt, self, std::string{Prefix ? s.substr(a.size()) : s.substr(0, s.size() - a.size())});
}

value format(runtime& rt, value const& self, arguments& args) { return brace_format(rt, self, args); }

value format_map(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "format_map", 1, 1);
  if (!args.positional[0].is_dict()) fail(std::string{"format_map() needs a dict, not "} + type_name(args.positional[0]));
  arguments fields;
  for (auto const& [key, item] : args.positional[0].entries())
    if (key.is_string()) fields.named.emplace_back(key.text(), item);
  return brace_format(rt, self, fields);
}

template <int>
value unsupported(runtime&, value const&, arguments&) {
  fail("str.encode(), str.translate() and str.maketrans() are not supported");
}

}  // namespace

std::vector<builtin> const& text_methods() {
  static std::vector<builtin> const methods{
      {"capitalize", mapped<text::capitalize>}, {"casefold", mapped<text::casefold>}, {"lower", mapped<text::lower>},
      {"swapcase", mapped<text::swapcase>}, {"title", mapped<text::title>}, {"upper", mapped<text::upper>},
      {"isalnum", all_are<is_alnum>}, {"isalpha", all_are<is_alpha>}, {"isascii", isascii}, {"isdecimal", all_are<is_decimal>},
      {"isdigit", all_are<is_digit>}, {"isidentifier", isidentifier}, {"islower", islower}, {"isnumeric", all_are<is_numeric>},
      {"isprintable", isprintable}, {"isspace", all_are<is_space>}, {"istitle", istitle}, {"isupper", isupper},
      {"strip", strip<side::both>}, {"lstrip", strip<side::left>}, {"rstrip", strip<side::right>},
      {"startswith", affixed<true>}, {"endswith", affixed<false>},
      {"find", find<false, false>}, {"rfind", find<true, false>}, {"index", find<false, true>}, {"rindex", find<true, true>},
      {"count", count}, {"replace", replace}, {"split", split<false>}, {"rsplit", split<true>}, {"splitlines", splitlines},
      {"partition", partition<false>}, {"rpartition", partition<true>}, {"join", join},
      {"ljust", justify<align::left>}, {"rjust", justify<align::right>}, {"center", justify<align::center>}, {"zfill", zfill},
      {"expandtabs", expandtabs}, {"removeprefix", remove_affix<true>}, {"removesuffix", remove_affix<false>},
      {"format", format}, {"format_map", format_map},
      {"encode", unsupported<0>}, {"translate", unsupported<0>}, {"maketrans", unsupported<0>},
  };
  return methods;
}

}  // namespace fermata::jinja

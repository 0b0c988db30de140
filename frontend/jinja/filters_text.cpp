// Filters whose subject is text (anything else is printed first, as Jinja2's soft_str does).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "frontend/jinja/methods.hpp"
#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

value like(runtime& rt, value const& self, std::string s) {
  rt.allocate(s.size());
  return self.is_markup() ? value::markup(std::move(s)) : value{std::move(s)};
}

template <std::string (*Map)(std::string_view)>
value mapped(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "filter", 0, 0);
  value const s = soft_text(rt, v);
  return like(rt, s, Map(s.text()));
}

// Jinja's title: words also begin behind - ( { [ <, and the rest of each word is lowered.
std::string title(std::string_view s) {
  std::string out;
  auto const separates = [](char32_t c) { return text::is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; };
  for (std::size_t at = 0; at < s.size();) {
    std::size_t end = at;
    bool const separator = separates(text::decode(s, end));
    while (end < s.size()) {
      std::size_t next = end;
      if (separates(text::decode(s, next)) != separator) break;
      end = next;
    }
    std::size_t const first = text::width(s[at]);
    out += text::upper(s.substr(at, first)) + text::lower(s.substr(at + first, end - at - first));
    at = end;
  }
  return out;
}

value trim(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "trim", {"chars"}, 0);
  value const s = soft_text(rt, v);
  if (p[0].is_missing() || p[0].is_none()) {
    auto const stripped = text::strip(s.text());
    return stripped.size() == s.text().size() ? s : like(rt, s, std::string{stripped});
  }
  if (!p[0].is_string()) fail(std::string{"trim: chars must be a string or none, not "} + type_name(p[0]));
  rt.step((s.text().size() * (p[0].text().size() / 16 + 1)) / 64);
  return like(rt, s, std::string{text::strip_left(text::strip_right(s.text(), p[0].text()), p[0].text())});
}

value replace(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "replace", {"old", "new", "count"}, 2);
  auto const times = p[2].is_missing() || p[2].is_none() ? -1 : to_index(p[2], "count of replace");
  bool const markup = rt.autoescape && (v.is_markup() || p[0].is_markup() || p[1].is_markup());
  if (!markup) return rt.make_text(replaced(rt, to_text(rt, v), to_text(rt, p[0]), to_text(rt, p[1]), times));
  bool const escape_subject = p[0].is_markup() || (p[1].is_markup() && !v.is_markup());
  value const s = escape_subject ? escaped(rt, v) : soft_text(rt, v);
  std::string const fresh = s.is_markup() ? escaped(rt, p[1]).text() : to_text(rt, p[1]);
  return like(rt, s, replaced(rt, s.text(), to_text(rt, p[0]), fresh, times));
}

value indent(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "indent", {"width", "first", "blank"}, 0);
  if (v.is_undefined()) refuse_undefined(v);
  if (!v.is_string()) fail(std::string{"indent needs a string, not "} + type_name(v));
  std::string by = "    ";
  if (p[0].is_string()) {
    by = p[0].text();
  } else if (!p[0].is_missing()) {
    auto const n = std::max<std::int64_t>(to_index(p[0], "width of indent"), 0);
    rt.allocate(static_cast<std::size_t>(n));
    by.assign(static_cast<std::size_t>(n), ' ');
  }
  bool const first = !p[1].is_missing() && truth(p[1]), blank = !p[2].is_missing() && truth(p[2]);
  if (v.is_markup() && !p[0].is_markup()) by = escape_text(by);
  std::string const whole = v.text() + "\n";
  std::string out;
  bool at_start = true;
  for (auto const& line : split_lines(rt, whole, false)) {
    rt.allocate(by.size() + line.size() + 1);
    if (!at_start) out += '\n';
    if (at_start ? first : blank || !line.empty()) out += by;
    out += line;
    at_start = false;
  }
  return v.is_markup() ? value::markup(std::move(out)) : value{std::move(out)};
}

value truncate(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "truncate", {"length", "killwords", "end", "leeway"}, 0);
  auto const wanted = p[0].is_missing() ? 255 : to_index(p[0], "length of truncate");
  value const end = p[2].is_missing() ? value{"..."} : p[2];
  auto const leeway = p[3].is_missing() || p[3].is_none() ? 5 : to_index(p[3], "leeway of truncate");
  auto const end_length = length(rt, end);
  if (wanted < end_length) fail("truncate: length must be at least " + std::to_string(end_length));
  if (leeway < 0) fail("truncate: leeway must not be negative");
  auto const have = length(rt, v);
  if (have <= wanted || have - wanted <= leeway) return v;
  if (!v.is_string() || !end.is_string()) fail(std::string{"truncate needs a string, not "} + type_name(v));
  std::string kept = v.text().substr(0, text::offset(v.text(), static_cast<std::size_t>(wanted - end_length)));
  if (p[1].is_missing() || !truth(p[1])) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return like(rt, v, kept + end.text());
}

value center(runtime& rt, value const& v, arguments& args) {
  auto p = bind_arguments(args, "center", {"width"}, 0);
  arguments method;
  method.positional.push_back(p[0].is_missing() ? value{80} : p[0]);
  value const s = soft_text(rt, v);
  return find_method(s, "center")->invoke(rt, s, method);
}

value wordcount(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "wordcount", 0, 0);
  std::string const s = to_text(rt, v);
  std::int64_t n = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < s.size();) {
    bool const word = text::is_word(text::decode(s, at));
    n += word && !in_word;
    in_word = word;
  }
  return value{n};
}

value format(runtime& rt, value const& v, arguments& args) {
  if (!args.positional.empty() && !args.named.empty()) fail("format: positional and keyword arguments cannot be given at the same time");
  value const s = soft_text(rt, v);
  if (args.named.empty()) return percent_format(rt, s, rt.make_tuple(std::move(args.positional)));
  std::vector<value::pair> named;
  for (auto& [name, item] : args.named) named.emplace_back(value{name}, std::move(item));
  return percent_format(rt, s, rt.make_dict(std::move(named)));
}

value string(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "string", 0, 0);
  return soft_text(rt, v);
}

value escape(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "escape", 0, 0);
  return escaped(rt, v);
}

value force_escape(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "forceescape", 0, 0);
  return value::markup(escape_text(to_text(rt, v)));
}

value safe(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "safe", 0, 0);
  return v.is_markup() ? v : value::markup(to_text(rt, v));
}

std::string url_quoted(std::string_view s, bool query) {
  std::string out;
  for (char c : s) {
    bool const plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
                       c == '~' || (c == '/' && !query);
    if (plain) {
      out += c;
    } else if (query && c == ' ') {
      out += '+';
    } else {
      auto const b = static_cast<unsigned char>(c);
      out += {'%', "0123456789ABCDEF"[b >> 4], "0123456789ABCDEF"[b & 15]};
    }
  }
  return out;
}

value urlencode(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "urlencode", 0, 0);
  if (v.is_string() || !is_iterable(v)) return rt.make_text(url_quoted(to_text(rt, v), false));
  std::string out;
  auto const add = [&](value const& key, value const& item) {
    if (!out.empty()) out += '&';
    out += url_quoted(to_text(rt, key), true) + "=" + url_quoted(to_text(rt, item), true);
  };
  if (v.is_dict()) {
    for (auto const& [key, item] : v.entries()) add(key, item);
    return rt.make_text(std::move(out));
  }
  cursor each{rt, v};
  value item;
  while (each.next(item)) {
    auto const pair = to_items(rt, item);
    if (pair.size() != 2) fail("urlencode needs pairs of key and value");
    add(pair[0], pair[1]);
  }
  return rt.make_text(std::move(out));
}

value xmlattr(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "xmlattr", {"autospace"}, 0);
  if (!v.is_dict()) fail(std::string{"xmlattr needs a dict, not "} + type_name(v));
  std::string out;
  for (auto const& [key, item] : v.entries()) {
    if (item.is_none() || item.is_undefined()) continue;
    if (!key.is_string()) fail("xmlattr: names must be strings");
    if (key.text().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) fail("xmlattr: invalid character in attribute name");
    if (!out.empty()) out += ' ';
    out += escaped(rt, key).text() + "=\"" + escaped(rt, item).text() + '"';
  }
  if (!out.empty() && (p[0].is_missing() || truth(p[0]))) out.insert(0, 1, ' ');
  return rt.captured(std::move(out));
}

value filesizeformat(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "filesizeformat", {"binary"}, 0);
  bool const binary = !p[0].is_missing() && truth(p[0]);
  if (v.is_undefined()) refuse_undefined(v);
  auto const parsed = v.is_string() ? real_from_text(text::strip(v.text())) : std::nullopt;
  if (!parsed && !is_number(v)) fail("filesizeformat needs a number");
  double const bytes = parsed ? *parsed : to_real(v);
  double const base = binary ? 1024 : 1000;
  if (bytes == 1) return value{"1 Byte"};
  if (bytes < base) return rt.make_text(integer_to_text(integer_from_real(bytes)) + " Bytes");
  static constexpr std::array<char const*, 8> decimal{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  static constexpr std::array<char const*, 8> powers{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  std::size_t i = 0;
  double unit = base * base;
  while (i + 1 < decimal.size() && bytes >= unit) {
    ++i;
    unit *= base;
  }
  char out[400];
  std::snprintf(out, sizeof out, "%.1f %s", base * bytes / unit, binary ? powers[i] : decimal[i]);
  return rt.make_text(out);
}

}  // namespace

std::vector<builtin> const& text_filters() {
  static std::vector<builtin> const filters{
      {"upper", mapped<text::upper>}, {"lower", mapped<text::lower>}, {"capitalize", mapped<text::capitalize>}, {"title", mapped<title>},
      {"trim", trim}, {"replace", replace}, {"indent", indent}, {"truncate", truncate}, {"center", center}, {"wordcount", wordcount},
      {"format", format}, {"string", string}, {"escape", escape}, {"e", escape}, {"forceescape", force_escape}, {"safe", safe},
      {"urlencode", urlencode}, {"xmlattr", xmlattr}, {"filesizeformat", filesizeformat},
  };
  return filters;
}

}  // namespace fermata::jinja

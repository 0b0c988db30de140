// Shared text operations, methods of containers, and the tables of builtins.
#include "frontend/jinja/methods.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

template <bool Lower>
bool all_cased(std::string_view s) noexcept {
  bool any = false;
  for (std::size_t at = 0; at < s.size();) {
    char32_t const c = text::decode(s, at);
    bool const good = Lower ? text::is_lower(c) : text::is_upper(c);
    if (!good && (text::is_title(c) || (Lower ? text::is_upper(c) : text::is_lower(c)))) return false;
    any = any || good;
  }
  return any;
}

}  // namespace

bool all_lower(std::string_view s) noexcept { return all_cased<true>(s); }
bool all_upper(std::string_view s) noexcept { return all_cased<false>(s); }

std::string replaced(runtime& rt, std::string_view s, std::string_view old, std::string_view fresh, std::int64_t times) {
  rt.allocate(s.size());
  std::string out;
  auto left = times < 0 ? npos : static_cast<std::size_t>(times);
  std::size_t at = 0;
  if (old.empty()) {
    for (; left > 0; --left) {
      rt.allocate(fresh.size() + 1);
      out += fresh;
      if (at >= s.size()) break;
      std::size_t const n = text::width(s[at]);
      out.append(s.substr(at, n));
      at += n;
    }
    return out.append(s.substr(std::min(at, s.size())));
  }
  while (left-- > 0) {
    std::size_t const hit = text::find(s, old, at);
    if (hit == npos) break;
    rt.allocate(fresh.size() + 1);
    out.append(s.substr(at, hit - at));
    out += fresh;
    at = hit + old.size();
  }
  return out.append(s.substr(at));
}

std::size_t last_find(runtime& rt, std::string_view s, std::string_view needle) {
  if (needle.size() > s.size()) return npos;
  if (needle.empty()) return s.size();
  // From the back; the cost of bad cases (long needles that nearly match everywhere) is counted.
  for (std::size_t at = s.size() - needle.size() + 1; at-- > 0;) {
    if (s[at] != needle[0]) continue;
    rt.step(needle.size() / 256);
    if (s.substr(at, needle.size()) == needle) return at;
  }
  return npos;
}

text_pieces split_left(runtime& rt, std::string_view s, std::string_view separator, std::size_t most) {
  text_pieces out;
  std::size_t at = 0;
  while (out.size() < most) {
    std::size_t const hit = text::find(s, separator, at);
    if (hit == npos) break;
    rt.allocate(sizeof(value));
    out.push_back(s.substr(at, hit - at));
    at = hit + separator.size();
  }
  out.push_back(s.substr(at));
  return out;
}

text_pieces split_right(runtime& rt, std::string_view s, std::string_view separator, std::size_t most) {
  text_pieces out;
  while (out.size() < most) {
    std::size_t const hit = last_find(rt, s, separator);
    if (hit == npos) break;
    rt.allocate(sizeof(value));
    out.push_back(s.substr(hit + separator.size()));
    s = s.substr(0, hit);
  }
  out.push_back(s);
  std::reverse(out.begin(), out.end());
  return out;
}

namespace {

std::size_t blank_end(std::string_view s, std::size_t at) noexcept { return at + (s.size() - at - text::strip_left(s.substr(at)).size()); }
std::size_t word_end(std::string_view s, std::size_t at) noexcept {
  while (at < s.size()) {
    std::size_t next = at;
    if (text::is_space(text::decode(s, next))) break;
    at = next;
  }
  return at;
}

}  // namespace

text_pieces split_blanks(runtime& rt, std::string_view s, std::size_t most) {
  text_pieces out;
  std::size_t at = blank_end(s, 0);
  while (at < s.size()) {
    rt.allocate(sizeof(value));
    if (out.size() == most) {
      out.push_back(s.substr(at));
      break;
    }
    std::size_t const end = word_end(s, at);
    out.push_back(s.substr(at, end - at));
    at = blank_end(s, end);
  }
  return out;
}

text_pieces split_blanks_right(runtime& rt, std::string_view s, std::size_t most) {
  text_pieces out;
  s = text::strip_right(s);
  while (!s.empty()) {
    rt.allocate(sizeof(value));
    if (out.size() == most) {
      out.push_back(s);
      break;
    }
    std::size_t start = s.size();
    while (start > 0) {
      std::size_t at = text::previous(s, start);
      std::size_t const character = at;
      if (text::is_space(text::decode(s, at))) break;
      start = character;
    }
    out.push_back(s.substr(start));
    s = text::strip_right(s.substr(0, start));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

text_pieces split_lines(runtime& rt, std::string_view s, bool keep_ends) {
  rt.scan(s.size());
  text_pieces out;
  std::size_t start = 0;
  for (std::size_t at = 0; at < s.size();) {
    std::size_t const n = text::line_break(s, at);
    if (n == 0) {
      at += text::width(s[at]);
      continue;
    }
    rt.allocate(sizeof(value));
    out.push_back(s.substr(start, at - start + (keep_ends ? n : 0)));
    at += n;
    start = at;
  }
  if (start < s.size()) out.push_back(s.substr(start));
  return out;
}

namespace {

// ---- methods of dicts

template <view_kind Which>
value view(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "view", 0, 0);
  return make_object<dict_view>(rt, self, Which);
}

value dict_get(runtime&, value const& self, arguments& args) {
  positional_only(args, "get", 1, 2);
  auto const at = self.mapping().find(args.positional[0]);
  if (at != dict_object::npos) return self.entries()[at].second;
  return args.positional.size() > 1 ? args.positional[1] : value{};
}

value copied(runtime&, value const& self, arguments& args) {
  positional_only(args, "copy", 0, 0);
  return self;
}

// ---- methods of lists, tuples and ranges

value sequence_count(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "count", 1, 1);
  std::int64_t n = 0;
  cursor each{rt, self};
  value item;
  while (each.next(item)) n += equal(rt, item, args.positional[0]);
  return value{n};
}

value sequence_index(runtime& rt, value const& self, arguments& args) {
  positional_only(args, "index", 1, 3);
  auto const size = length(rt, self);
  auto const bound = [&](std::size_t i, std::int64_t absent) {
    if (i >= args.positional.size()) return absent;
    auto const n = to_index(args.positional[i], "slice index");
    return n < 0 ? std::max<std::int64_t>(n + size, 0) : n;
  };
  auto const from = bound(1, 0), to = bound(2, size);
  cursor each{rt, self};
  value item;
  for (std::int64_t i = 0; each.next(item); ++i)
    if (i >= from && i < to && equal(rt, item, args.positional[0])) return value{i};
  fail(std::string{"value is not in "} + type_name(self));
}

// ---- methods of numbers

value is_integer(runtime&, value const& self, arguments& args) {
  positional_only(args, "is_integer", 0, 0);
  return value{std::isfinite(self.real()) && self.real() == std::trunc(self.real())};
}
value bit_length(runtime&, value const& self, arguments& args) {
  positional_only(args, "bit_length", 0, 0);
  auto const i = self.integer();
  auto u = i < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(i) : static_cast<std::uint64_t>(i);
  int n = 0;
  for (; u; u >>= 1) ++n;
  return value{n};
}
value conjugate(runtime&, value const& self, arguments& args) {
  positional_only(args, "conjugate", 0, 0);
  return self.type() == kind::boolean ? value{self.integer()} : self;
}

value forbidden(runtime&, value const&, arguments&) { fail(error_kind::security, "the sandbox forbids changing a value"); }

class table {
 public:
  table(std::initializer_list<std::vector<builtin> const*> parts) {
    for (auto const* part : parts)
      for (auto const& b : *part) by_name_.emplace(b.name, &b);
  }
  builtin const* find(std::string_view name) const noexcept {
    auto const at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : at->second;
  }

 private:
  std::unordered_map<std::string_view, builtin const*> by_name_;
};

std::vector<builtin> const& dict_methods() {
  static std::vector<builtin> const methods{
      {"keys", view<view_kind::keys>}, {"values", view<view_kind::values>}, {"items", view<view_kind::items>}, {"get", dict_get},
      {"copy", copied}, {"fromkeys", dict_fromkeys},
      {"clear", forbidden, true}, {"pop", forbidden, true}, {"popitem", forbidden, true}, {"setdefault", forbidden, true},
      {"update", forbidden, true},
  };
  return methods;
}

std::vector<builtin> const& list_methods() {
  static std::vector<builtin> const methods{
      {"count", sequence_count}, {"index", sequence_index}, {"copy", copied},
      {"append", forbidden, true}, {"clear", forbidden, true}, {"pop", forbidden, true}, {"reverse", forbidden, true},
      {"insert", forbidden, true}, {"sort", forbidden, true}, {"extend", forbidden, true}, {"remove", forbidden, true},
  };
  return methods;
}

std::vector<builtin> const& tuple_methods() {
  static std::vector<builtin> const methods{{"count", sequence_count}, {"index", sequence_index}};
  return methods;
}
std::vector<builtin> const& integer_methods() {
  static std::vector<builtin> const methods{{"bit_length", bit_length}, {"conjugate", conjugate}};
  return methods;
}
std::vector<builtin> const& real_methods() {
  static std::vector<builtin> const methods{{"is_integer", is_integer}, {"conjugate", conjugate}};
  return methods;
}

}  // namespace

builtin const* find_method(value const& object, std::string_view name) noexcept {
  static table const of_text{&text_methods()}, of_dict{&dict_methods()}, of_list{&list_methods()}, of_tuple{&tuple_methods()},
      of_integer{&integer_methods()}, of_real{&real_methods()};
  switch (object.type()) {
    case kind::string: return of_text.find(name);
    case kind::dict: return of_dict.find(name);
    case kind::list: return of_list.find(name);
    case kind::tuple: return of_tuple.find(name);
    case kind::boolean:
    case kind::integer: return of_integer.find(name);
    case kind::real: return of_real.find(name);
    case kind::object: return dynamic_cast<range_object const*>(&object.as_object()) ? of_tuple.find(name) : nullptr;
    default: return nullptr;
  }
}

builtin const* find_filter(std::string_view name) noexcept {
  static table const filters{&text_filters(), &value_filters(), &sequence_filters(), &selecting_filters()};
  return filters.find(name);
}

}  // namespace fermata::jinja

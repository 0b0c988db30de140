// Containers, hashing and reading of JSON. See value.hpp.
#include "frontend/jinja/value.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include <nlohmann/json.hpp>

#include "frontend/jinja/fault.hpp"
#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

bool key_equal(value const& a, value const& b) noexcept {
  if (is_number(a) && is_number(b)) return compare_numbers(a, b) == 0;
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case kind::string: return a.text() == b.text();
    case kind::tuple: {
      auto const& x = a.items();
      auto const& y = b.items();
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), key_equal);
    }
    case kind::object: return a.as_object().same_key(b.as_object());
    default: return true;  // None, undefined
  }
}

std::size_t text_hash(std::string_view s) noexcept { return std::hash<std::string_view>{}(s); }

value convert(nlohmann::ordered_json const& j, unsigned depth) {
  if (depth > nesting_max) fail(error_kind::limit, "JSON nests more than " + std::to_string(nesting_max) + " deep");
  using t = nlohmann::ordered_json::value_t;
  switch (j.type()) {
    case t::boolean: return value{j.get<bool>()};
    case t::number_integer: return value{j.get<std::int64_t>()};
    case t::number_unsigned: return integer_from_unsigned(j.get<std::uint64_t>());
    case t::number_float: return value{j.get<double>()};
    case t::string: {
      auto const& s = j.get_ref<std::string const&>();
      if (!text::valid_utf8(s)) fail("a string of the context is not valid UTF-8");
      return value{s};
    }
    case t::array: {
      std::vector<value> items;
      items.reserve(j.size());
      for (auto const& item : j) items.push_back(convert(item, depth + 1));
      return value::list(std::move(items));
    }
    case t::object: {
      std::vector<value::pair> entries;
      entries.reserve(j.size());
      for (auto const& [key, item] : j.items()) {
        if (!text::valid_utf8(key)) fail("a key of the context is not valid UTF-8");
        entries.emplace_back(value{key}, convert(item, depth + 1));
      }
      return value::dict(std::move(entries));
    }
    default: return value{};
  }
}

// Builds values straight from the parser's events, so that integers of any size survive.
class json_reader final : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  value result;
  std::string problem;

  bool null() override { return put(value{}); }
  bool boolean(bool b) override { return put(value{b}); }
  bool number_integer(number_integer_t i) override { return put(value{i}); }
  bool number_unsigned(number_unsigned_t u) override { return put(integer_from_unsigned(u)); }
  bool number_float(number_float_t d, string_t const& text) override {
    if (text.find_first_of(".eE") == string_t::npos) return put(integer_from_text(text, 10));
    return put(value{d});
  }
  bool string(string_t& s) override { return put(value{std::move(s)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(); }
  bool key(string_t& k) override {
    open_.back().keys.push_back(value{std::move(k)});
    return true;
  }
  bool end_object() override {
    auto done = std::move(open_.back());
    open_.pop_back();
    std::vector<value::pair> entries;
    entries.reserve(done.items.size());
    for (std::size_t i = 0; i < done.items.size(); ++i) entries.emplace_back(std::move(done.keys[i]), std::move(done.items[i]));
    return put(value::dict(std::move(entries)));
  }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override {
    auto done = std::move(open_.back());
    open_.pop_back();
    return put(value::list(std::move(done.items)));
  }
  bool parse_error(std::size_t, std::string const&, nlohmann::detail::exception const& e) override {
    problem = e.what();  // "[json.exception.parse_error.101] parse error at ...": the library's own name is no news
    if (auto const end = problem.find("] "); problem.starts_with('[') && end != std::string::npos) problem.erase(0, end + 2);
    return false;
  }

 private:
  struct partial {
    std::vector<value> keys, items;
  };
  bool put(value v) {
    if (open_.empty())
      result = std::move(v);
    else
      open_.back().items.push_back(std::move(v));
    return true;
  }
  bool open() {
    if (open_.size() >= nesting_max) {
      problem = "it nests more than " + std::to_string(nesting_max) + " deep";
      return false;
    }
    open_.emplace_back();
    return true;
  }
  std::vector<partial> open_;
};

template <class Make>
value outside(Make make) {
  try {
    return make();
  } catch (fault& f) {
    throw error{f.category, std::move(f.message)};
  }
}

}  // namespace

unsigned nesting(value const& v) noexcept {
  switch (v.type()) {
    case kind::list:
    case kind::tuple: return v.sequence().depth;
    case kind::dict: return v.mapping().depth;
    case kind::object: return v.as_object().depth;
    default: return 0;
  }
}

unsigned nesting(std::vector<value> const& values) noexcept {
  unsigned below = 0;
  for (auto const& v : values) below = std::max(below, nesting(v));
  return below;
}

unsigned nesting(arguments const& args) noexcept {
  unsigned below = nesting(args.positional);
  for (auto const& [name, v] : args.named) below = std::max(below, nesting(v));
  return below;
}

unsigned nesting_above(unsigned below) {
  if (below >= nesting_max) fail(error_kind::limit, "values nest more than " + std::to_string(nesting_max) + " deep");
  return below + 1;
}

std::size_t hash(value const& v) {
  switch (v.type()) {
    case kind::boolean:
    case kind::integer: return std::hash<std::int64_t>{}(v.integer());
    case kind::real: {
      double const d = v.real();
      if (d == std::floor(d) && std::fabs(d) < 9.2e18) return std::hash<std::int64_t>{}(static_cast<std::int64_t>(d));
      return std::hash<double>{}(d);
    }
    case kind::string: return text_hash(v.text());
    case kind::tuple: {
      constexpr std::uint64_t weight_max = 100'000;
      if (v.sequence().weight > weight_max) fail(error_kind::limit, "a tuple of more than 100000 parts cannot be a key");
      std::size_t h = 0x345678;
      for (auto const& item : v.items()) h = h * 1000003 ^ hash(item);
      return h;
    }
    case kind::object:
      if (v.as_object().hashable()) return v.as_object().hash();
      [[fallthrough]];
    case kind::list:
    case kind::dict: fail(std::string{"unhashable type: '"} + type_name(v) + "'");
    default: return static_cast<std::size_t>(v.type());
  }
}

std::size_t string_object::length() const noexcept {
  auto n = length_.load(std::memory_order_relaxed);
  if (n == static_cast<std::size_t>(-1)) {
    n = text::count(text);
    length_.store(n, std::memory_order_relaxed);
  }
  return n;
}

list_object::list_object(std::vector<value> i) : items{std::move(i)} {
  unsigned below = 0;
  weight = 1;
  constexpr std::uint64_t enough = std::uint64_t{1} << 32;  // sums of shared parts grow without bound
  for (auto const& item : items) {
    below = std::max(below, nesting(item));
    weight = std::min(enough, weight + (item.is_sequence() ? item.sequence().weight : 1));
  }
  depth = nesting_above(below);
}

// Small dicts are searched from the front; an index is made from nine entries on.
constexpr std::size_t indexed_from = 9;

dict_object::dict_object(std::vector<value::pair> e) {
  unsigned below = 0;
  entries.reserve(e.size());
  if (e.size() >= indexed_from) slots_.assign(std::bit_ceil(e.size() * 2), 0);
  for (value::pair& entry : e) {
    value& key = entry.first;
    value& item = entry.second;
    below = std::max({below, nesting(key), nesting(item)});
    std::size_t const h = jinja::hash(key);
    std::size_t const known = probe(h, [&](std::size_t i) { return key_equal(entries[i].first, key); });
    if (known != npos) {
      entries[known].second = std::move(item);
      continue;
    }
    entries.emplace_back(std::move(key), std::move(item));
    hashes_.push_back(h);
    if (!slots_.empty()) add(entries.size() - 1, h);
  }
  depth = nesting_above(below);
}

template <class Same>
std::size_t dict_object::probe(std::size_t h, Same same) const {
  if (slots_.empty()) {
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (hashes_[i] == h && same(i)) return i;
    return npos;
  }
  std::size_t const mask = slots_.size() - 1;
  for (std::size_t at = h * 0x9e3779b97f4a7c15u >> 7;; ++at) {
    auto const entry = slots_[at & mask];
    if (entry == 0) return npos;
    if (hashes_[entry - 1] == h && same(entry - 1)) return entry - 1;
  }
}

void dict_object::add(std::size_t entry, std::size_t h) {
  std::size_t const mask = slots_.size() - 1;
  std::size_t at = h * 0x9e3779b97f4a7c15u >> 7;
  while (slots_[at & mask] != 0) ++at;
  slots_[at & mask] = static_cast<std::uint32_t>(entry + 1);
}

std::size_t dict_object::find(value const& key) const {
  return probe(jinja::hash(key), [&](std::size_t i) { return key_equal(entries[i].first, key); });
}

std::size_t dict_object::find(std::string_view key) const noexcept {
  return probe(text_hash(key), [&](std::size_t i) { return entries[i].first.is_string() && entries[i].first.text() == key; });
}

value::value(std::string text) : value{kind::string, new string_object{std::move(text)}} {}
value value::list(std::vector<value> items) { return {kind::list, new list_object{std::move(items)}}; }
value value::tuple(std::vector<value> items) { return {kind::tuple, new list_object{std::move(items)}}; }
value value::dict(std::vector<pair> entries) { return {kind::dict, new dict_object{std::move(entries)}}; }
value value::markup(std::string text) { return {kind::string, new string_object{std::move(text)}, true}; }
value value::group(value grouper, value list) {
  auto* made = new list_object{{std::move(grouper), std::move(list)}};
  made->group = true;
  return {kind::tuple, made};
}
value value::undefined() { return undefined_hint("value is undefined"); }
value value::of(object* made) noexcept { return {kind::object, made}; }
value value::of(undefined_object* made) noexcept { return {kind::undefined, made}; }
value value::from_json(nlohmann::ordered_json const& document) {
  return outside([&] { return convert(document, 0); });
}
value value::parse_json(std::string_view text) {
  return outside([&] {
    json_reader reader;
    if (!nlohmann::ordered_json::sax_parse(text.begin(), text.end(), &reader))
      fail("the context is not JSON: " + (reader.problem.empty() ? std::string{"malformed"} : reader.problem));
    return std::move(reader.result);
  });
}

std::string const& value::text() const noexcept { return string().text; }
std::vector<value> const& value::items() const noexcept { return sequence().items; }
std::vector<value::pair> const& value::entries() const noexcept { return mapping().entries; }
object& value::as_object() const noexcept { return *static_cast<object*>(data_.shared); }

value const* value::find(std::string_view key) const noexcept {
  if (!is_dict()) return nullptr;
  auto const at = mapping().find(key);
  return at == dict_object::npos ? nullptr : &entries()[at].second;
}

}  // namespace fermata::jinja

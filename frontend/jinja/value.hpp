// Values as chat templates see them: Python's dynamic types, immutable once made.
//
// Invariants
// - A value is 16 bytes; strings and containers are shared by an atomic count, so values may cross threads and copies are cheap.
// - Strings are valid UTF-8; lengths and indices count code points.
// - Lists, tuples and dicts never change after they are made, and nest at most `nesting_max` deep, so walking or freeing
//   one needs bounded stack.
// - A dict keeps insertion order; a repeated key keeps its first place and takes the last value, as in Python.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace fermata::jinja {

class runtime;
class object;
struct string_object;
struct list_object;
struct dict_object;
struct undefined_object;

enum class kind : std::uint8_t { missing, undefined, none, boolean, integer, real, string, list, tuple, dict, object };

// How deep containers may nest, in values built by templates and in values handed in.
inline constexpr unsigned nesting_max = 400;

// Shared heap part of a value.
struct counted {
  mutable std::atomic<std::uint32_t> references{0};
  counted() = default;
  counted(counted const&) = delete;
  counted& operator=(counted const&) = delete;
  virtual ~counted() = default;
};

class value {
 public:
  value() noexcept : kind_{kind::none} { data_.integer = 0; }
  value(bool b) noexcept : kind_{kind::boolean} { data_.integer = b; }
  value(int i) noexcept : value(static_cast<std::int64_t>(i)) {}
  value(std::int64_t i) noexcept : kind_{kind::integer} { data_.integer = i; }
  value(double d) noexcept : kind_{kind::real} { data_.real = d; }
  value(std::string text);
  value(std::string_view text) : value(std::string{text}) {}
  value(char const* text) : value(std::string{text}) {}
  value(value const& other) noexcept : kind_{other.kind_}, markup_{other.markup_}, data_{other.data_} { retain(); }
  value(value&& other) noexcept : kind_{other.kind_}, markup_{other.markup_}, data_{other.data_} {
    other.kind_ = kind::none;
    other.markup_ = false;
  }
  value& operator=(value const& other) noexcept {
    value copy{other};
    swap(copy);
    return *this;
  }
  value& operator=(value&& other) noexcept {
    value moved{std::move(other)};
    swap(moved);
    return *this;
  }
  ~value() { release(); }
  void swap(value& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(markup_, other.markup_);
    std::swap(data_, other.data_);
  }

  using pair = std::pair<value, value>;
  static value list(std::vector<value> items);
  static value tuple(std::vector<value> items);
  // Keys must be hashable (scalars, strings, tuples of such); throws jinja::error otherwise.
  static value dict(std::vector<pair> entries);
  static value markup(std::string text);  // a string that escaping leaves alone (Python's Markup)
  static value group(value grouper, value list);  // what groupby yields: a pair whose items also have names
  static value undefined();
  static value missing() noexcept {
    value v;
    v.kind_ = kind::missing;
    return v;
  }
  static value of(object* made) noexcept;            // takes a share in a heap object
  static value of(undefined_object* made) noexcept;  // an undefined value that knows why
  // JSON as Python's json.loads reads it: integers and floats stay apart, key order is kept.
  // Throws jinja::error when the document nests deeper than nesting_max.
  static value from_json(nlohmann::ordered_json const& document);
  // The same from text; integers beyond 64 bits keep every digit. Throws jinja::error on malformed JSON.
  static value parse_json(std::string_view text);

  kind type() const noexcept { return kind_; }
  bool is_missing() const noexcept { return kind_ == kind::missing; }
  bool is_undefined() const noexcept { return kind_ == kind::undefined; }
  bool is_none() const noexcept { return kind_ == kind::none; }
  bool is_string() const noexcept { return kind_ == kind::string; }
  bool is_sequence() const noexcept { return kind_ == kind::list || kind_ == kind::tuple; }
  bool is_dict() const noexcept { return kind_ == kind::dict; }
  bool is_object() const noexcept { return kind_ == kind::object; }
  bool is_markup() const noexcept { return markup_; }
  bool is_integral() const noexcept { return kind_ == kind::integer || kind_ == kind::boolean; }  // bool counts, as in Python

  // Unchecked access; the caller has looked at type().
  bool boolean() const noexcept { return data_.integer != 0; }
  std::int64_t integer() const noexcept { return data_.integer; }  // also of a boolean
  double real() const noexcept { return data_.real; }
  std::string const& text() const noexcept;
  std::vector<value> const& items() const noexcept;   // list, tuple
  std::vector<pair> const& entries() const noexcept;  // dict
  string_object const& string() const noexcept { return *reinterpret_cast<string_object const*>(data_.shared); }
  list_object const& sequence() const noexcept { return *reinterpret_cast<list_object const*>(data_.shared); }
  dict_object const& mapping() const noexcept { return *reinterpret_cast<dict_object const*>(data_.shared); }
  object& as_object() const noexcept;
  undefined_object const* why() const noexcept { return reinterpret_cast<undefined_object const*>(data_.shared); }
  counted const* identity() const noexcept { return shares() ? data_.shared : nullptr; }

  // The value of a string key of a dict, or nullptr.
  value const* find(std::string_view key) const noexcept;

 private:
  bool shares() const noexcept {
    return kind_ >= kind::string || kind_ == kind::undefined;
  }
  void retain() const noexcept {
    if (shares() && data_.shared) data_.shared->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release() noexcept {
    if (shares() && data_.shared && data_.shared->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete data_.shared;
  }
  value(kind k, counted* shared, bool markup = false) noexcept : kind_{k}, markup_{markup} {
    data_.shared = shared;
    retain();
  }

  kind kind_;
  bool markup_ = false;
  union {
    std::int64_t integer;
    double real;
    counted* shared;
  } data_;
};

struct string_object final : counted {
  explicit string_object(std::string t) : text{std::move(t)} {}
  std::string const text;
  // Number of code points; counted once, on demand.
  std::size_t length() const noexcept;
  bool ascii() const noexcept { return length() == text.size(); }

 private:
  mutable std::atomic<std::size_t> length_{static_cast<std::size_t>(-1)};
};

struct list_object final : counted {
  explicit list_object(std::vector<value> i);
  std::vector<value> const items;
  unsigned depth;
  std::uint64_t weight;  // values inside, counted as often as they are reached; bounds what hashing costs
  bool group = false;  // made by groupby: its two items also have names
};

struct dict_object final : counted {
  explicit dict_object(std::vector<value::pair> e);
  std::vector<value::pair> entries;
  unsigned depth;
  // Index of a key's entry, or npos. An unhashable key throws.
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  std::size_t find(value const& key) const;
  std::size_t find(std::string_view key) const noexcept;

 private:
  template <class Same>
  std::size_t probe(std::size_t hash, Same same) const;
  void add(std::size_t entry, std::size_t hash);
  std::vector<std::uint32_t> slots_;  // open addressing; entry index + 1, 0 is free
  std::vector<std::size_t> hashes_;
};

}  // namespace fermata::jinja

// Values that are neither scalars nor plain containers: ranges, views, iterators, namespaces, macros, functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/jinja/builtins.hpp"
#include "frontend/jinja/fault.hpp"
#include "frontend/jinja/runtime.hpp"
#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

struct undefined_object final : counted {
  enum class reason : std::uint8_t { name, attribute, element, hint, unsafe };
  reason why{};
  char const* owner = "";  // type of the object that lacks an attribute
  value name;              // or the whole message of a hint
  std::string message() const;
};

value undefined_name(value name);
value undefined_hint(std::string message);
value undefined_member(value const& object, value key);
value unsafe_member(value const& object, value name);
// Raises for an operation on an undefined value.
[[noreturn]] void refuse_undefined(value const& v);

// How deep values nest in `v` (0 for scalars), and the depth of something that holds it; faults beyond nesting_max.
unsigned nesting(value const& v) noexcept;
unsigned nesting_above(unsigned below);
unsigned nesting(std::vector<value> const& values) noexcept;
unsigned nesting(arguments const& args) noexcept;

class object : public counted {
 public:
  unsigned depth = 1;  // how deep values nest below this one; see nesting_max
  virtual char const* type_name() const noexcept = 0;
  virtual bool is_true() const { return true; }
  virtual std::optional<std::int64_t> length(runtime&) { return std::nullopt; }
  virtual bool iterable() const noexcept { return false; }
  virtual bool callable() const noexcept { return false; }
  // A one-shot iterator over the elements; only of iterable objects.
  virtual value iterate(runtime&) { return value::missing(); }
  // missing: no such attribute, no such element.
  virtual value attribute(runtime&, std::string_view) { return value::missing(); }
  virtual value element(runtime&, value const&) { return value::missing(); }
  virtual bool has_elements() const noexcept { return false; }
  virtual value call(runtime&, arguments&);
  virtual void print(runtime& rt, std::string& to);
  virtual bool equals(runtime&, object& other) { return this == &other; }
  virtual bool same_key(object const& other) const noexcept { return this == &other; }  // equality as a dict key
  virtual std::size_t hash() const { return reinterpret_cast<std::size_t>(this) >> 4; }
  virtual bool hashable() const noexcept { return true; }
};

class iterator : public object {
 public:
  char const* type_name() const noexcept override { return "generator"; }
  bool iterable() const noexcept override { return true; }
  value iterate(runtime&) override { return value::of(this); }
  virtual bool next(runtime& rt, value& out) = 0;
};

// Walks anything iterable; faults when it isn't.
class cursor {
 public:
  cursor(runtime& rt, value over);
  bool next(value& out);
  std::optional<std::int64_t> length();  // of the whole, when it is known without walking

 private:
  runtime& rt_;
  value over_;
  iterator* steps_ = nullptr;
  std::size_t at_ = 0;
};

class range_object final : public object {
 public:
  range_object(std::int64_t first, std::int64_t last, std::int64_t by);
  char const* type_name() const noexcept override { return "range"; }
  bool is_true() const override { return count > 0; }
  std::optional<std::int64_t> length(runtime&) override { return count; }
  bool iterable() const noexcept override { return true; }
  bool has_elements() const noexcept override { return true; }
  value iterate(runtime&) override;
  value attribute(runtime&, std::string_view name) override;
  value element(runtime&, value const& key) override;
  void print(runtime&, std::string& to) override;
  bool equals(runtime&, object& other) override;
  bool same_key(object const& other) const noexcept override;
  std::size_t hash() const override { return static_cast<std::size_t>(count * 31 + start); }
  bool contains(std::int64_t i) const noexcept;
  std::int64_t at(std::int64_t i) const noexcept { return start + i * step; }
  std::int64_t const start, stop, step;
  std::int64_t count;
};

enum class view_kind : std::uint8_t { keys, values, items };

class dict_view final : public object {
 public:
  dict_view(value d, view_kind k);
  char const* type_name() const noexcept override;
  bool is_true() const override { return !of.entries().empty(); }
  std::optional<std::int64_t> length(runtime&) override { return static_cast<std::int64_t>(of.entries().size()); }
  bool iterable() const noexcept override { return true; }
  bool hashable() const noexcept override { return which == view_kind::values; }
  value iterate(runtime&) override;
  void print(runtime&, std::string& to) override;
  bool equals(runtime&, object& other) override;
  value at(runtime&, std::size_t i) const;
  value const of;
  view_kind const which;
};

class name_space final : public object {
 public:
  explicit name_space(std::vector<value::pair> entries);
  char const* type_name() const noexcept override { return "TemplateNamespace"; }
  value attribute(runtime&, std::string_view name) override;
  void print(runtime&, std::string& to) override;
  void set(runtime& rt, std::string const& name, value v);
  void clear() { attributes_.clear(); }

 private:
  std::vector<std::pair<std::string, value>> attributes_;
};

// A global function, or a method together with its object.
class function_object final : public object {
 public:
  function_object(builtin const* f, value s);
  char const* type_name() const noexcept override { return "builtin_function_or_method"; }
  bool callable() const noexcept override { return true; }
  value call(runtime& rt, arguments& args) override;
  void print(runtime&, std::string& to) override;
  bool equals(runtime&, object& other) override;

 private:
  builtin const* function_;
  value subject_;
};

struct macro_definition;

class macro_object final : public object {
 public:
  macro_object(macro_definition const& d, activation* a) : definition_{&d}, closure_{a} {}
  char const* type_name() const noexcept override { return "Macro"; }
  bool callable() const noexcept override { return true; }
  value call(runtime& rt, arguments& args) override;
  value attribute(runtime&, std::string_view name) override;
  void print(runtime&, std::string& to) override;

 private:
  std::vector<value> take_parameters(runtime& rt, arguments& args, bool& found_caller) const;
  macro_definition const* definition_;
  shared_part<activation> closure_;
};

struct for_statement;

// `loop`. Knows one item ahead only when asked.
class loop_object final : public object {
 public:
  loop_object(runtime& rt, value over, unsigned depth0, for_statement const* recursive, activation* closure);
  char const* type_name() const noexcept override { return "LoopContext"; }
  bool callable() const noexcept override { return true; }
  std::optional<std::int64_t> length(runtime&) override { return total(); }
  value attribute(runtime&, std::string_view name) override;
  value call(runtime& rt, arguments& args) override;
  void print(runtime&, std::string& to) override;
  bool advance(value& out);
  void finish();  // drops what it holds of the loop
  value cycle(arguments& args) const;
  bool changed(runtime& rt, arguments& args);

 private:
  bool peek();
  std::int64_t total();
  runtime& rt_;
  cursor items_;
  std::vector<value> eager_;  // items read ahead to learn the length
  std::size_t eager_at_ = 0;
  std::int64_t index0_ = -1;
  std::optional<std::int64_t> length_;
  value before_ = value::missing(), current_ = value::missing(), after_ = value::missing(), last_changed_ = value::missing();
  unsigned depth0_;
  for_statement const* recursive_;
  shared_part<activation> closure_;
};

class cycler_object final : public object {
 public:
  explicit cycler_object(std::vector<value> items);
  char const* type_name() const noexcept override { return "Cycler"; }
  value attribute(runtime&, std::string_view name) override;
  value next();
  void reset() noexcept { at_ = 0; }

 private:
  std::vector<value> items_;
  std::size_t at_ = 0;
};

class joiner_object final : public object {
 public:
  explicit joiner_object(value separator);
  char const* type_name() const noexcept override { return "Joiner"; }
  bool callable() const noexcept override { return true; }
  value call(runtime& rt, arguments& args) override;

 private:
  value separator_;
  bool used_ = false;
};

template <class Object, class... Parts>
value make_object(runtime& rt, Parts&&... parts) {
  rt.allocate(sizeof(Object));
  return value::of(new Object(std::forward<Parts>(parts)...));
}

}  // namespace fermata::jinja

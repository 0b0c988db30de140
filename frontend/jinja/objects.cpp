// See objects.hpp. Loops and macros are in calls.cpp.
#include "frontend/jinja/objects.hpp"

#include <algorithm>

#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/syntax.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

std::string in_quotes(std::string_view s) {
  std::string out;
  text::append_quoted(out, s);
  return out;
}

char const* owner_name(value const& v) noexcept { return v.is_none() ? "None" : type_name(v); }

value make_undefined(undefined_object::reason why, char const* owner, value name) {
  auto* made = new undefined_object;
  made->why = why;
  made->owner = owner;
  made->name = std::move(name);
  return value::of(made);
}

// Elements of a range or of a dict view, by index.
template <class Object>
class indexed_iterator final : public iterator {
 public:
  explicit indexed_iterator(Object& over) : over_{value::of(&over)}, object_{over} { depth = nesting_above(over.depth); }
  bool next(runtime& rt, value& out) override;

 private:
  value over_;
  Object& object_;
  std::int64_t at_ = 0;
};

template <>
bool indexed_iterator<range_object>::next(runtime&, value& out) {
  if (at_ >= object_.count) return false;
  out = value{object_.at(at_++)};
  return true;
}

template <>
bool indexed_iterator<dict_view>::next(runtime& rt, value& out) {
  if (at_ >= static_cast<std::int64_t>(object_.of.entries().size())) return false;
  out = object_.at(rt, static_cast<std::size_t>(at_++));
  return true;
}

}  // namespace

// ---- undefined

std::string undefined_object::message() const {
  switch (why) {
    case reason::name: return in_quotes(name.text()) + " is undefined";
    case reason::attribute: return "'" + std::string{owner} + " object' has no attribute " + in_quotes(name.text());
    case reason::element: return std::string{owner} + " object has no such element";
    case reason::unsafe: return "access to attribute " + in_quotes(name.text()) + " of '" + owner + "' object is unsafe";
    case reason::hint: break;
  }
  return name.text();
}

value undefined_name(value name) { return make_undefined(undefined_object::reason::name, "", std::move(name)); }
value undefined_hint(std::string message) { return make_undefined(undefined_object::reason::hint, "", value{std::move(message)}); }
value undefined_member(value const& object, value key) {
  bool const named = key.is_string();
  return make_undefined(named ? undefined_object::reason::attribute : undefined_object::reason::element, owner_name(object),
                        named ? std::move(key) : value{});
}
value unsafe_member(value const& object, value name) {
  return make_undefined(undefined_object::reason::unsafe, owner_name(object), std::move(name));
}
void refuse_undefined(value const& v) {
  auto const* why = v.why();
  fail(why->why == undefined_object::reason::unsafe ? error_kind::security : error_kind::undefined, why->message());
}

// ---- the common base

value object::call(runtime&, arguments&) { fail(std::string{"'"} + type_name() + "' object is not callable"); }
void object::print(runtime&, std::string& to) {
  to += '<';
  to += type_name();
  to += " object>";
}

// ---- walking

cursor::cursor(runtime& rt, value over) : rt_{rt}, over_{std::move(over)} {
  if (!is_iterable(over_)) fail(std::string{"'"} + type_name(over_) + "' object is not iterable");
  if (!over_.is_object()) return;
  over_ = over_.as_object().iterate(rt);
  steps_ = static_cast<iterator*>(&over_.as_object());
}

bool cursor::next(value& out) {
  switch (over_.type()) {
    case kind::list:
    case kind::tuple:
      if (at_ >= over_.items().size()) return false;
      out = over_.items()[at_++];
      return true;
    case kind::dict:
      if (at_ >= over_.entries().size()) return false;
      out = over_.entries()[at_++].first;
      return true;
    case kind::string: {
      auto const& s = over_.text();
      if (at_ >= s.size()) return false;
      rt_.step();
      std::size_t const n = text::width(s[at_]);
      out = value{s.substr(at_, n)};
      at_ += n;
      return true;
    }
    case kind::object:
      rt_.step();
      return steps_->next(rt_, out);
    default: return false;
  }
}

std::optional<std::int64_t> cursor::length() {
  if (over_.is_object()) return std::nullopt;
  return jinja::length(rt_, over_);
}

// ---- range

range_object::range_object(std::int64_t first, std::int64_t last, std::int64_t by) : start{first}, stop{last}, step{by}, count{0} {
  if (by == 0) fail("range() step must not be zero");
  bool const up = by > 0;
  if (up ? first >= last : first <= last) return;
  // Differences fit unsigned arithmetic whatever the signs.
  auto const span = up ? static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first)
                       : static_cast<std::uint64_t>(first) - static_cast<std::uint64_t>(last);
  auto const stride = up ? static_cast<std::uint64_t>(by) : std::uint64_t{0} - static_cast<std::uint64_t>(by);
  auto const n = (span - 1) / stride + 1;
  constexpr std::uint64_t sandbox_range_max = 100000;  // jinja2.sandbox.MAX_RANGE
  if (n > sandbox_range_max) fail(error_kind::limit, "range too big: the sandbox allows 100000 items");
  count = static_cast<std::int64_t>(n);
}

value range_object::iterate(runtime& rt) { return make_object<indexed_iterator<range_object>>(rt, *this); }

value range_object::attribute(runtime&, std::string_view name) {
  if (name == "start") return value{start};
  if (name == "stop") return value{stop};
  if (name == "step") return value{step};
  return value::missing();
}

value range_object::element(runtime&, value const& key) {
  if (!key.is_integral()) return value::missing();
  std::int64_t i = key.integer();
  if (i < 0) i += count;
  return i < 0 || i >= count ? value::missing() : value{at(i)};
}

void range_object::print(runtime&, std::string& to) {
  to += "range(" + std::to_string(start) + ", " + std::to_string(stop);
  if (step != 1) to += ", " + std::to_string(step);
  to += ')';
}

bool range_object::same_key(object const& other) const noexcept {
  auto const* r = dynamic_cast<range_object const*>(&other);
  return r && count == r->count && (count == 0 || (start == r->start && (count == 1 || step == r->step)));
}

bool range_object::equals(runtime&, object& other) { return same_key(other); }

// ---- dict views

dict_view::dict_view(value d, view_kind k) : of{std::move(d)}, which{k} { depth = nesting_above(nesting(of)); }

char const* dict_view::type_name() const noexcept {
  return which == view_kind::keys ? "dict_keys" : which == view_kind::values ? "dict_values" : "dict_items";
}

value dict_view::at(runtime& rt, std::size_t i) const {
  auto const& [key, item] = of.entries()[i];
  if (which == view_kind::keys) return key;
  if (which == view_kind::values) return item;
  return rt.make_tuple({key, item});
}

value dict_view::iterate(runtime& rt) { return make_object<indexed_iterator<dict_view>>(rt, *this); }

void dict_view::print(runtime& rt, std::string& to) {
  to += type_name();
  to += "([";
  for (std::size_t i = 0; i < of.entries().size(); ++i) {
    if (i) to += ", ";
    append_repr(rt, to, at(rt, i));
  }
  to += "])";
}

bool dict_view::equals(runtime& rt, object& other) {
  if (this == &other) return true;
  auto const* view = dynamic_cast<dict_view*>(&other);
  if (!view || which == view_kind::values || view->which != which || of.entries().size() != view->of.entries().size()) return false;
  for (auto const& [key, item] : of.entries()) {
    auto const found = view->of.mapping().find(key);
    if (found == dict_object::npos) return false;
    if (which == view_kind::items && !equal(rt, item, view->of.entries()[found].second)) return false;
  }
  return true;
}

// ---- namespaces

namespace {
void check_namespace_name(std::string_view name) {
  if (!name.empty() && name[0] == '_')
    fail(error_kind::security, "a namespace cannot hold " + in_quotes(name) + ": names that start with an underscore are private");
}
}  // namespace

name_space::name_space(std::vector<value::pair> entries) {
  for (auto& [key, item] : entries) {
    if (!key.is_string()) fail("names in a namespace must be strings");
    check_namespace_name(key.text());
    attributes_.emplace_back(key.text(), std::move(item));
  }
}

value name_space::attribute(runtime& rt, std::string_view name) {
  rt.step(attributes_.size() / 16);
  for (auto const& [known, v] : attributes_)
    if (known == name) return v;
  return value::missing();
}

void name_space::set(runtime& rt, std::string const& name, value v) {
  check_namespace_name(name);
  rt.step(attributes_.size() / 16);
  for (auto& [known, old] : attributes_)
    if (known == name) {
      old = std::move(v);
      return;
    }
  rt.allocate(sizeof(value::pair));
  attributes_.emplace_back(name, std::move(v));
}

void name_space::print(runtime& rt, std::string& to) {
  to += "<Namespace {";
  for (std::size_t i = 0; i < attributes_.size(); ++i) {
    if (i) to += ", ";
    text::append_quoted(to, attributes_[i].first);
    to += ": ";
    append_repr(rt, to, attributes_[i].second);
  }
  to += "}>";
}

// ---- functions

function_object::function_object(builtin const* f, value s) : function_{f}, subject_{std::move(s)} { depth = nesting_above(nesting(subject_)); }
value function_object::call(runtime& rt, arguments& args) { return function_->invoke(rt, subject_, args); }
void function_object::print(runtime&, std::string& to) {
  to += "<built-in function ";
  to += function_->name;
  to += '>';
}
bool function_object::equals(runtime& rt, object& other) {
  auto const* f = dynamic_cast<function_object*>(&other);
  return f && f->function_ == function_ && same(rt, f->subject_, subject_);
}

// ---- cycler and joiner

cycler_object::cycler_object(std::vector<value> items) : items_{std::move(items)} {
  if (items_.empty()) fail("cycler() needs at least one item");
  depth = nesting_above(nesting(items_));
}

value cycler_object::next() {
  value v = items_[at_];
  at_ = (at_ + 1) % items_.size();
  return v;
}

namespace {
cycler_object& cycler_of(value const& v) { return static_cast<cycler_object&>(v.as_object()); }
builtin const cycler_next{"next", [](runtime&, value const& self, arguments& args) {
                            positional_only(args, "next", 0, 0);
                            return cycler_of(self).next();
                          }};
builtin const cycler_reset{"reset", [](runtime&, value const& self, arguments& args) {
                             positional_only(args, "reset", 0, 0);
                             cycler_of(self).reset();
                             return value{};
                           }};
}  // namespace

value cycler_object::attribute(runtime& rt, std::string_view name) {
  if (name == "next") return make_object<function_object>(rt, &cycler_next, value::of(this));
  if (name == "reset") return make_object<function_object>(rt, &cycler_reset, value::of(this));
  if (name == "current") return items_[at_];
  if (name == "pos") return value{static_cast<std::int64_t>(at_)};
  if (name == "items") return rt.make_tuple(items_);
  return value::missing();
}

joiner_object::joiner_object(value separator) : separator_{std::move(separator)} { depth = nesting_above(nesting(separator_)); }
value joiner_object::call(runtime&, arguments& args) {
  positional_only(args, "joiner", 0, 0);
  return std::exchange(used_, true) ? separator_ : value{""};
}

}  // namespace fermata::jinja

// Attribute access, subscripts, slices and calls as the sandboxed environment performs them.
#include <algorithm>

#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

bool dunder(std::string_view name) noexcept { return name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__"; }

// Index of Python into [0, size), or npos.
std::size_t wrapped(std::int64_t index, std::size_t size) noexcept {
  auto const n = static_cast<std::int64_t>(size);
  if (index < 0) index += n;
  return index < 0 || index >= n ? static_cast<std::size_t>(-1) : static_cast<std::size_t>(index);
}

value character(runtime& rt, value const& text_value, std::size_t index) {
  auto const& s = text_value.text();
  std::size_t from = index;
  if (!text_value.string().ascii()) {
    rt.scan(s.size());
    from = text::offset(s, index);
  }
  std::string one = s.substr(from, text::width(s[from]));
  return text_value.is_markup() ? value::markup(std::move(one)) : value{std::move(one)};
}

value element(runtime& rt, value const& object, value const& key) {
  switch (object.type()) {
    case kind::list:
    case kind::tuple: {
      if (!key.is_integral()) break;
      auto const at = wrapped(key.integer(), object.items().size());
      return at == static_cast<std::size_t>(-1) ? value::missing() : object.items()[at];
    }
    case kind::string: {
      if (!key.is_integral()) break;
      auto const at = wrapped(key.integer(), object.string().length());
      return at == static_cast<std::size_t>(-1) ? value::missing() : character(rt, object, at);
    }
    case kind::dict: {
      if (key.type() == kind::list || key.type() == kind::dict) break;
      auto const at = object.mapping().find(key);
      return at == dict_object::npos ? value::missing() : object.entries()[at].second;
    }
    case kind::object: return object.as_object().element(rt, key);
    default: break;
  }
  return value::missing();
}

struct bounds {
  std::int64_t start, stop, step, count;
};

bool given(value const& v) noexcept { return !v.is_missing() && !v.is_none(); }

// What start:stop:step selects of `size` elements, by Python's clamping.
bounds slice_bounds(std::int64_t size, value const& start, value const& stop, value const& step) {
  auto const index = [](value const& v) -> std::int64_t {
    if (!v.is_integral()) fail(std::string{"slice indices must be integers or None, not "} + type_name(v));
    return v.integer();
  };
  bounds b{0, 0, given(step) ? index(step) : 1, 0};
  if (b.step == 0) fail("slice step cannot be zero");
  bool const down = b.step < 0;
  auto const clamp = [&](value const& v, std::int64_t absent) {
    if (!given(v)) return absent;
    std::int64_t i = index(v);
    if (i < 0) i = i < -size ? (down ? -1 : 0) : i + size;
    return std::min(i, down ? size - 1 : size);
  };
  b.start = clamp(start, down ? size - 1 : 0);
  b.stop = clamp(stop, down ? -1 : size);
  if (down && b.start > b.stop) b.count = b.step < -size ? 1 : (b.start - b.stop - 1) / -b.step + 1;
  if (!down && b.start < b.stop) b.count = b.step > size ? 1 : (b.stop - b.start - 1) / b.step + 1;
  return b;
}

value text_slice(runtime& rt, value const& v, bounds const& b) {
  auto const& s = v.text();
  std::string out;
  auto const count = static_cast<std::size_t>(b.count);
  auto const start = static_cast<std::size_t>(std::max<std::int64_t>(b.start, 0));
  if (count == 0) {
  } else if (b.step == 1) {
    std::size_t const from = v.string().ascii() ? start : text::offset(s, start);
    std::size_t const size = v.string().ascii() ? count : text::offset(std::string_view{s}.substr(from), count);
    rt.allocate(size);
    rt.scan(from);
    out = s.substr(from, size);
  } else {
    rt.allocate(s.size() * 2);
    std::vector<std::size_t> starts;
    for (std::size_t at = 0; at < s.size(); at += text::width(s[at])) starts.push_back(at);
    std::int64_t i = b.start;
    for (std::size_t n = 0; n < count; ++n, i += n < count ? b.step : 0) {
      auto const from = starts[static_cast<std::size_t>(i)];
      out.append(s, from, text::width(s[from]));
    }
  }
  return v.is_markup() ? value::markup(std::move(out)) : value{std::move(out)};
}

value sequence_slice(runtime& rt, value const& v, bounds const& b) {
  std::vector<value> out;
  rt.allocate(static_cast<std::size_t>(b.count) * sizeof(value));
  out.reserve(static_cast<std::size_t>(b.count));
  std::int64_t i = b.start;
  for (std::int64_t n = 0; n < b.count; ++n) {
    out.push_back(v.items()[static_cast<std::size_t>(i)]);
    if (n + 1 < b.count) i += b.step;
  }
  return v.type() == kind::list ? value::list(std::move(out)) : value::tuple(std::move(out));
}

}  // namespace

// Methods that would change their object exist but may not be used.
value python_attribute(runtime& rt, value const& object, value const& name) {
  auto const& n = name.text();
  if (dunder(n)) return unsafe_member(object, name);
  if (auto const* method = find_method(object, n)) {
    if (method->mutates) return unsafe_member(object, name);
    return make_object<function_object>(rt, method, object);
  }
  switch (object.type()) {
    case kind::object: return object.as_object().attribute(rt, n);
    case kind::tuple:
      if (object.sequence().group && n == "grouper") return object.items()[0];
      if (object.sequence().group && n == "list") return object.items()[1];
      break;
    case kind::boolean:
    case kind::integer:
      if (n == "real" || n == "numerator") return value{object.integer()};
      if (n == "imag") return value{0};
      if (n == "denominator") return value{1};
      break;
    case kind::real:
      if (n == "real") return object;
      if (n == "imag") return value{0.0};
      break;
    default: break;
  }
  return value::missing();
}

value get_attribute(runtime& rt, value const& object, value const& name) {
  if (object.is_undefined() && name.text() != "__class__") refuse_undefined(object);
  value v = python_attribute(rt, object, name);
  if (!v.is_missing()) return v;
  v = element(rt, object, name);
  return v.is_missing() ? undefined_member(object, name) : v;
}

value get_item(runtime& rt, value const& object, value const& key) {
  if (object.is_undefined()) refuse_undefined(object);
  value v = element(rt, object, key);
  if (v.is_missing() && key.is_string()) v = python_attribute(rt, object, key);
  return v.is_missing() ? undefined_member(object, key) : v;
}

value get_slice(runtime& rt, value const& object, value const& start, value const& stop, value const& step) {
  switch (object.type()) {
    case kind::list:
    case kind::tuple: {
      auto const b = slice_bounds(static_cast<std::int64_t>(object.items().size()), start, stop, step);
      return sequence_slice(rt, object, b);
    }
    case kind::string: {
      auto const b = slice_bounds(static_cast<std::int64_t>(object.string().length()), start, stop, step);
      return text_slice(rt, object, b);
    }
    case kind::undefined: refuse_undefined(object);
    case kind::object:
      if (auto const* range = dynamic_cast<range_object*>(&object.as_object())) {
        auto const b = slice_bounds(range->count, start, stop, step);
        std::int64_t by = 0;
        if (__builtin_mul_overflow(range->step, b.step, &by)) fail("slice step of a range is too large");
        return make_object<range_object>(rt, range->at(b.start), range->at(b.start) + b.count * by, by);
      }
      break;
    default: break;
  }
  fail(std::string{"'"} + type_name(object) + "' object cannot be sliced");
}

value call_value(runtime& rt, value const& callee, arguments& args) {
  if (callee.is_undefined()) refuse_undefined(callee);
  if (!callee.is_object() || !callee.as_object().callable()) fail(std::string{"'"} + type_name(callee) + "' object is not callable");
  runtime::deeper const guard{rt};
  return callee.as_object().call(rt, args);
}

std::int64_t length(runtime& rt, value const& v) {
  switch (v.type()) {
    case kind::string: return static_cast<std::int64_t>(v.string().length());
    case kind::list:
    case kind::tuple: return static_cast<std::int64_t>(v.items().size());
    case kind::dict: return static_cast<std::int64_t>(v.entries().size());
    case kind::undefined: return 0;
    case kind::object:
      if (auto const n = v.as_object().length(rt)) return *n;
      break;
    default: break;
  }
  fail(std::string{"object of type '"} + type_name(v) + "' has no len()");
}

bool is_iterable(value const& v) noexcept {
  switch (v.type()) {
    case kind::string:
    case kind::list:
    case kind::tuple:
    case kind::dict:
    case kind::undefined: return true;
    case kind::object: return v.as_object().iterable();
    default: return false;
  }
}

std::vector<value> to_items(runtime& rt, value const& v) {
  if (v.is_sequence()) {
    rt.allocate(v.items().size() * sizeof(value));
    return v.items();
  }
  std::vector<value> out;
  cursor each{rt, v};
  value item;
  while (each.next(item)) {
    rt.allocate(sizeof(value));
    out.push_back(std::move(item));
  }
  return out;
}

std::int64_t to_index(value const& v, std::string_view what) {
  if (v.is_undefined()) refuse_undefined(v);
  if (!v.is_integral()) fail(std::string{what} + " must be an integer, not " + type_name(v));
  return v.integer();
}

}  // namespace fermata::jinja

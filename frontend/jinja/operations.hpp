// What can be done with values, by Python's rules. Everything here faults where Python would raise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/jinja/runtime.hpp"
#include "frontend/jinja/syntax.hpp"
#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

// Name of a value's Python type, as error messages show it.
char const* type_name(value const& v) noexcept;

bool truth(value const& v);
bool same(runtime& rt, value const& a, value const& b);  // a is b
bool equal(runtime& rt, value const& a, value const& b);
bool less(runtime& rt, value const& a, value const& b);             // a < b
bool ordered(runtime& rt, operation op, value const& a, value const& b);  // < <= > >=
bool contains(runtime& rt, value const& container, value const& item);
// Hash that goes with equality; faults on unhashable values.
std::size_t hash(value const& v);

value arithmetic(runtime& rt, operation op, value const& a, value const& b);
value negated(value const& v);   // -v
value positive(value const& v);  // +v

// environment.getattr and environment.getitem of the sandbox.
value get_attribute(runtime& rt, value const& object, value const& name);
value get_item(runtime& rt, value const& object, value const& key);
// An attribute in Python's sense (a method, not an element), or missing.
value python_attribute(runtime& rt, value const& object, value const& name);
// object[start:stop:step]; bounds may be missing.
value get_slice(runtime& rt, value const& object, value const& start, value const& stop, value const& step);
value call_value(runtime& rt, value const& callee, arguments& args);

std::int64_t length(runtime& rt, value const& v);
bool is_iterable(value const& v) noexcept;
std::vector<value> to_items(runtime& rt, value const& v);  // list(v)

// str(v), repr(v). Markup stays what it is only in soft_text.
std::string to_text(runtime& rt, value const& v);
void append_text(runtime& rt, std::string& to, value const& v);
void append_repr(runtime& rt, std::string& to, value const& v);
value soft_text(runtime& rt, value const& v);
// escape(): HTML special characters of anything that isn't markup.
value escaped(runtime& rt, value const& v);
std::string escape_text(std::string_view s);

// sorted(): stable, faults when two keys have no order. `reverse` keeps equal elements in their order, as Python does.
// `key` gives the value an element is ordered by.
template <class Item, class Key>
void sort_items(runtime& rt, std::vector<Item>& items, Key key, bool reverse) {
  // Merge sort of indices: order must not be trusted to be consistent (NaN), which std::sort requires.
  std::vector<std::size_t> order(items.size()), scratch(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  rt.allocate(items.size() * 2 * sizeof(std::size_t));
  auto const before = [&](std::size_t a, std::size_t b) {
    return reverse ? less(rt, key(items[b]), key(items[a])) : less(rt, key(items[a]), key(items[b]));
  };
  for (std::size_t width = 1; width < order.size(); width *= 2) {
    for (std::size_t from = 0; from < order.size(); from += 2 * width) {
      std::size_t const middle = std::min(from + width, order.size()), to = std::min(from + 2 * width, order.size());
      std::size_t left = from, right = middle;
      for (std::size_t out = from; out < to; ++out)
        scratch[out] = left < middle && (right >= to || !before(order[right], order[left])) ? order[left++] : order[right++];
    }
    order.swap(scratch);
  }
  std::vector<Item> sorted;
  sorted.reserve(items.size());
  for (auto const i : order) sorted.push_back(std::move(items[i]));
  items = std::move(sorted);
}

// operator.index(): an integer, or a fault that names `what`.
std::int64_t to_index(value const& v, std::string_view what);

// "text" % right, and str.format.
value percent_format(runtime& rt, value const& text, value const& right);
value brace_format(runtime& rt, value const& text, arguments& args);
std::string format_value(runtime& rt, value const& v, std::string_view spec);

}  // namespace fermata::jinja

// Truth, identity, equality, order and membership by Python's rules.
#include <algorithm>

#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

bool holds(operation op, int order) noexcept {
  switch (op) {
    case operation::lt: return order == -1;
    case operation::lteq: return order == -1 || order == 0;
    case operation::gt: return order == 1;
    default: return order == 1 || order == 0;
  }
}

std::string_view comparison_sign(operation op) noexcept {
  switch (op) {
    case operation::lt: return "<";
    case operation::lteq: return "<=";
    case operation::gt: return ">";
    default: return ">=";
  }
}

bool equal_items(runtime& rt, std::vector<value> const& a, std::vector<value> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!equal(rt, a[i], b[i])) return false;
  return true;
}

bool equal_dicts(runtime& rt, value const& a, value const& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (auto const& [key, item] : a.entries()) {
    auto const at = b.mapping().find(key);
    if (at == dict_object::npos || !equal(rt, item, b.entries()[at].second)) return false;
  }
  return true;
}

}  // namespace

char const* type_name(value const& v) noexcept {
  switch (v.type()) {
    case kind::missing:
    case kind::undefined: return "Undefined";
    case kind::none: return "NoneType";
    case kind::boolean: return "bool";
    case kind::integer: return "int";
    case kind::real: return "float";
    case kind::string: return v.is_markup() ? "Markup" : "str";
    case kind::list: return "list";
    case kind::tuple: return "tuple";
    case kind::dict: return "dict";
    case kind::object: return v.as_object().type_name();
  }
  return "object";
}

bool truth(value const& v) {
  switch (v.type()) {
    case kind::boolean:
    case kind::integer: return v.integer() != 0;
    case kind::real: return v.real() != 0;
    case kind::string: return !v.text().empty();
    case kind::list:
    case kind::tuple: return !v.items().empty();
    case kind::dict: return !v.entries().empty();
    case kind::object: return v.as_object().is_true();
    default: return false;
  }
}

bool same(runtime& rt, value const& a, value const& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case kind::list:
    case kind::tuple:
    case kind::dict: return a.identity() == b.identity();
    case kind::object: return is_integer(a) ? equal(rt, a, b) : a.identity() == b.identity();
    case kind::undefined: return false;  // each look-up makes a new one
    default: return equal(rt, a, b);
  }
}

bool equal(runtime& rt, value const& a, value const& b) {
  rt.step();
  if (is_number(a) && is_number(b)) return compare_numbers(a, b) == 0;
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case kind::string:
      if (a.text().size() != b.text().size()) return false;
      rt.scan(a.text().size());
      return a.text() == b.text();
    case kind::list:
    case kind::tuple: return a.identity() == b.identity() || equal_items(rt, a.items(), b.items());
    case kind::dict: return a.identity() == b.identity() || equal_dicts(rt, a, b);
    case kind::object: return a.as_object().equals(rt, b.as_object());
    default: return true;
  }
}

bool less(runtime& rt, value const& a, value const& b) { return ordered(rt, operation::lt, a, b); }

bool ordered(runtime& rt, operation op, value const& a, value const& b) {
  rt.step();
  if (is_number(a) && is_number(b)) return holds(op, compare_numbers(a, b));
  if (a.is_string() && b.is_string()) {
    rt.scan(std::min(a.text().size(), b.text().size()));
    int const c = a.text().compare(b.text());  // the order of UTF-8 is that of code points
    return holds(op, c < 0 ? -1 : c > 0);
  }
  if (a.is_sequence() && a.type() == b.type()) {
    auto const& x = a.items();
    auto const& y = b.items();
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(rt, x[i], y[i])) return ordered(rt, op, x[i], y[i]);
    return holds(op, x.size() < y.size() ? -1 : x.size() > y.size());
  }
  if (a.is_undefined()) refuse_undefined(a);
  if (b.is_undefined()) refuse_undefined(b);
  fail("'" + std::string{comparison_sign(op)} + "' not supported between instances of '" + type_name(a) + "' and '" + type_name(b) + "'");
}

bool contains(runtime& rt, value const& container, value const& item) {
  switch (container.type()) {
    case kind::string:
      if (!item.is_string()) fail(std::string{"'in <string>' requires string as left operand, not "} + type_name(item));
      rt.scan(container.text().size());
      return text::find(container.text(), item.text()) != std::string_view::npos;
    case kind::list:
    case kind::tuple: {
      auto const& items = container.items();
      return std::any_of(items.begin(), items.end(), [&](value const& v) { return equal(rt, v, item); });
    }
    case kind::dict: return container.mapping().find(item) != dict_object::npos;
    case kind::undefined: return false;
    case kind::object:
      if (auto const* view = dynamic_cast<dict_view*>(&container.as_object()); view && view->which == view_kind::keys)
        return view->of.mapping().find(item) != dict_object::npos;
      if (container.as_object().iterable()) {
        cursor each{rt, container};
        value v;
        while (each.next(v))
          if (equal(rt, v, item)) return true;
        return false;
      }
      break;
    default: break;
  }
  fail(std::string{"argument of type '"} + type_name(container) + "' is not iterable");
}

}  // namespace fermata::jinja

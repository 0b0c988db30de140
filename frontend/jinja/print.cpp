// str() and repr() of values, and HTML escaping.
#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

void append_items(runtime& rt, std::string& to, std::vector<value> const& items) {
  bool first = true;
  for (auto const& item : items) {
    if (!first) to += ", ";
    first = false;
    append_repr(rt, to, item);
  }
}

void append_dict(runtime& rt, std::string& to, value const& v) {
  to += '{';
  bool first = true;
  for (auto const& [key, item] : v.entries()) {
    if (!first) to += ", ";
    first = false;
    append_repr(rt, to, key);
    to += ": ";
    append_repr(rt, to, item);
  }
  to += '}';
}

}  // namespace

void append_repr(runtime& rt, std::string& to, value const& v) {
  rt.step();
  runtime::deeper const guard{rt};
  switch (v.type()) {
    case kind::missing:
    case kind::undefined: to += "Undefined"; break;
    case kind::none: to += "None"; break;
    case kind::boolean: to += v.boolean() ? "True" : "False"; break;
    case kind::integer: to += integer_to_text(v); break;
    case kind::real: to += real_to_text(v.real()); break;
    case kind::string:
      rt.allocate(v.text().size());
      if (v.is_markup()) to += "Markup(";
      text::append_quoted(to, v.text());
      if (v.is_markup()) to += ')';
      break;
    case kind::list:
      to += '[';
      append_items(rt, to, v.items());
      to += ']';
      break;
    case kind::tuple:
      to += '(';
      append_items(rt, to, v.items());
      to += v.items().size() == 1 ? ",)" : ")";
      break;
    case kind::dict: append_dict(rt, to, v); break;
    case kind::object:
      if (is_integer(v))
        to += integer_to_text(v);
      else
        v.as_object().print(rt, to);
      break;
  }
}

void append_text(runtime& rt, std::string& to, value const& v) {
  if (v.is_string())
    to += v.text();
  else if (!v.is_undefined())
    append_repr(rt, to, v);
}

std::string to_text(runtime& rt, value const& v) {
  std::string out;
  append_text(rt, out, v);
  return out;
}

value soft_text(runtime& rt, value const& v) { return v.is_string() ? v : value{to_text(rt, v)}; }

std::string escape_text(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (char c : s) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  return out;
}

value escaped(runtime& rt, value const& v) {
  if (v.is_markup()) return v;
  std::string const plain = to_text(rt, v);
  rt.allocate(plain.size());
  return value::markup(escape_text(plain));
}

}  // namespace fermata::jinja

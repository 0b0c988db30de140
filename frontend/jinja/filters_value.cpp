// Filters on single values: defaults, numbers, attributes, JSON.
#include <cmath>
#include <cstdio>

#include "frontend/jinja/json.hpp"
#include "frontend/jinja/methods.hpp"
#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

value default_filter(runtime&, value const& v, arguments& args) {
  auto p = bind_arguments(args, "default", {"default_value", "boolean"}, 0);
  bool const boolean = !p[1].is_missing() && truth(p[1]);
  if (!v.is_undefined() && !(boolean && !truth(v))) return v;
  return p[0].is_missing() ? value{""} : p[0];
}

value int_filter(runtime&, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "int", {"default", "base"}, 0);
  value const otherwise = p[0].is_missing() ? value{0} : p[0];
  if (v.is_undefined()) refuse_undefined(v);
  if (is_integer(v)) return positive(v);
  if (v.type() == kind::real) return std::isnan(v.real()) ? otherwise : integer_from_real(v.real());
  if (!v.is_string()) return otherwise;
  auto const base = p[1].is_missing() ? 10 : to_index(p[1], "base of int");
  if (base == 0 || (base >= 2 && base <= 36))
    if (value i = integer_from_text(v.text(), static_cast<int>(base)); !i.is_missing()) return i;
  auto const d = real_from_text(text::strip(v.text()));
  return d && std::isfinite(*d) ? integer_from_real(*d) : otherwise;
}

value float_filter(runtime&, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "float", {"default"}, 0);
  if (v.is_undefined()) refuse_undefined(v);
  if (is_integer(v)) return value{to_real(v)};
  if (v.type() == kind::real) return v;
  auto const d = v.is_string() ? real_from_text(text::strip(v.text())) : std::nullopt;
  if (d) return value{*d};
  return p[0].is_missing() ? value{0.0} : p[0];
}

value abs_filter(runtime&, value const& v, arguments& args) {
  positional_only(args, "abs", 0, 0);
  if (is_integer(v)) return is_negative(v) ? negated(v) : positive(v);
  if (v.type() == kind::real) return value{std::fabs(v.real())};
  fail(std::string{"bad operand type for abs(): '"} + type_name(v) + "'");
}

// Rounds the decimal digits of `s` (all whole) to a multiple of 10^drop, half to even; `inexact` says that something
// smaller follows the digits.
std::string round_digits(std::string s, std::size_t drop, bool inexact) {
  if (drop > s.size()) return "0";
  s.insert(0, 1, '0');
  std::size_t const keep = s.size() - drop;
  char const next = s[keep];
  bool const more = inexact || s.find_first_not_of('0', keep + 1) != std::string::npos;
  bool const up = next > '5' || (next == '5' && (more || (s[keep - 1] - '0') % 2 == 1));
  for (std::size_t i = keep; i < s.size(); ++i) s[i] = '0';
  for (std::size_t i = keep; up && i-- > 0;) {
    if (s[i] != '9') {
      ++s[i];
      break;
    }
    s[i] = '0';
  }
  return s;
}

double round_real(double d, std::int64_t digits) {
  constexpr std::int64_t finest = 323, coarsest = -308;  // beyond these nothing changes, or nothing is left
  if (!std::isfinite(d) || digits > finest) return d;
  if (digits < coarsest) return std::copysign(0.0, d);
  std::string s(1500, '\0');
  auto const places = digits >= 0 ? static_cast<int>(digits) : 1100;
  s.resize(static_cast<std::size_t>(std::snprintf(s.data(), s.size(), "%.*f", places, std::fabs(d))));
  if (digits < 0) {
    auto const point = s.find('.');
    s = round_digits(s.substr(0, point), static_cast<std::size_t>(-digits), s.find_first_not_of('0', point + 1) != std::string::npos);
  }
  double const r = std::strtod(s.c_str(), nullptr);
  if (std::isinf(r)) fail("rounded value too large to represent");
  return std::copysign(r, d);
}

value round_integer(value const& i, std::int64_t digits) {
  if (digits >= 0) return positive(i);
  std::string s = integer_to_text(i);
  bool const minus = s[0] == '-';
  s = round_digits(s.substr(minus), static_cast<std::size_t>(std::min<std::int64_t>(-digits, 5000)), false);
  return integer_from_text((minus ? "-" : "") + s, 10);
}

value round_filter(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "round", {"precision", "method"}, 0);
  value const precision = p[0].is_missing() ? value{0} : p[0];
  std::string const method = p[1].is_missing() ? "common" : p[1].is_string() ? p[1].text() : "";
  if (method != "common" && method != "ceil" && method != "floor") fail("round: method must be common, ceil or floor");
  if (!is_number(v)) fail(std::string{"round needs a number, not "} + type_name(v));
  if (method == "common") {
    auto const digits = to_index(precision, "precision of round");
    return is_integer(v) ? round_integer(v, digits) : value{round_real(v.real(), digits)};
  }
  value const scale = arithmetic(rt, operation::pow, value{10}, precision);
  value const scaled = arithmetic(rt, operation::mul, v, scale);
  value whole = scaled;
  if (scaled.type() == kind::real) whole = integer_from_real(method == "ceil" ? std::ceil(scaled.real()) : std::floor(scaled.real()));
  return arithmetic(rt, operation::div, whole, scale);
}

value attr_filter(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "attr", {"name"}, 1);
  if (v.is_undefined()) refuse_undefined(v);
  if (!p[0].is_string()) fail("attr needs the name of an attribute");
  value found = python_attribute(rt, v, p[0]);
  return found.is_missing() ? undefined_member(v, p[0]) : found;
}

value length_filter(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "length", 0, 0);
  return value{length(rt, v)};
}

value tojson(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  json_style style;
  style.ascii_only = !p[0].is_missing() && truth(p[0]);
  style.sort_keys = !p[3].is_missing() && truth(p[3]);
  if (!p[1].is_missing() && !p[1].is_none()) {
    style.multiline = true;
    style.item_separator.assign(1, ',');  // (assigning a literal here trips a false warning of GCC 12)
    if (p[1].is_string()) {
      style.indent = p[1].text();
    } else {
      auto const n = std::max<std::int64_t>(to_index(p[1], "indent of tojson"), 0);
      rt.allocate(static_cast<std::size_t>(n));
      style.indent.assign(static_cast<std::size_t>(n), ' ');
    }
  }
  if (!p[2].is_missing() && !p[2].is_none()) {
    auto const pair = to_items(rt, p[2]);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) fail("separators of tojson must be two strings");
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  return value{to_json(rt, v, style)};
}

}  // namespace

std::vector<builtin> const& value_filters() {
  static std::vector<builtin> const filters{
      {"default", default_filter}, {"d", default_filter}, {"int", int_filter}, {"float", float_filter}, {"abs", abs_filter},
      {"round", round_filter}, {"attr", attr_filter}, {"length", length_filter}, {"count", length_filter}, {"tojson", tojson},
  };
  return filters;
}

}  // namespace fermata::jinja

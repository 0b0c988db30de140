// See numbers.hpp and operations.hpp (arithmetic).
#include "frontend/jinja/numbers.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

[[noreturn]] void too_large() { fail(error_kind::limit, "integer is too large: 64 bits are supported"); }

int digit_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  char const low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

double as_real(value const& v) noexcept { return v.is_integral() ? static_cast<double>(v.integer()) : v.real(); }
bool numeric(value const& v) noexcept { return v.is_integral() || v.type() == kind::real; }

[[noreturn]] void division_by_zero(char const* what) { fail(std::string{what} + " by zero"); }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) division_by_zero("integer division or modulo");
  if (b == -1) {
    if (a == std::numeric_limits<std::int64_t>::min()) too_large();
    return -a;
  }
  std::int64_t const q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) division_by_zero("integer modulo");
  if (b == -1) return 0;
  std::int64_t const r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Python's float divmod: the remainder takes the divisor's sign.
std::pair<double, double> divide_reals(double a, double b) {
  if (b == 0) division_by_zero("float divmod()");
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1.0;
    }
  } else {
    mod = std::copysign(0.0, b);
  }
  double whole = 0;
  if (div != 0) {
    whole = std::floor(div);
    if (div - whole > 0.5) whole += 1.0;
  } else {
    whole = std::copysign(0.0, a / b);
  }
  return {whole, mod};
}

double divide(value const& a, value const& b) {
  if (as_real(b) == 0) division_by_zero(a.is_integral() && b.is_integral() ? "division" : "float division");
  if (a.is_integral() && b.is_integral())
    return static_cast<double>(static_cast<long double>(a.integer()) / static_cast<long double>(b.integer()));
  return as_real(a) / as_real(b);
}

value power(value const& a, value const& b) {
  if (a.is_integral() && b.is_integral() && b.integer() >= 0) {
    std::int64_t base = a.integer(), result = 1;
    auto exponent = b.integer();
    if (base == 0 || base == 1) return value{exponent == 0 ? std::int64_t{1} : base};
    if (base == -1) return value{exponent % 2 ? -1 : 1};
    while (true) {
      if (exponent & 1 && __builtin_mul_overflow(result, base, &result)) too_large();
      exponent >>= 1;
      if (exponent == 0) return value{result};
      if (__builtin_mul_overflow(base, base, &base)) too_large();
    }
  }
  double const x = as_real(a), y = as_real(b);
  if (x == 0 && y < 0) fail("0.0 cannot be raised to a negative power");
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y)) fail("a negative number to a fractional power is complex, which is not supported");
  double const r = std::pow(x, y);
  if (std::isinf(r) && std::isfinite(x) && std::isfinite(y)) fail("numerical result out of range");
  return value{r};
}

value integer_arithmetic(operation op, std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  switch (op) {
    case operation::add:
      if (__builtin_add_overflow(a, b, &r)) too_large();
      return value{r};
    case operation::sub:
      if (__builtin_sub_overflow(a, b, &r)) too_large();
      return value{r};
    case operation::mul:
      if (__builtin_mul_overflow(a, b, &r)) too_large();
      return value{r};
    case operation::floordiv: return value{floor_divide(a, b)};
    default: return value{modulo(a, b)};
  }
}

value real_arithmetic(operation op, double a, double b) {
  switch (op) {
    case operation::add: return value{a + b};
    case operation::sub: return value{a - b};
    case operation::mul: return value{a * b};
    case operation::floordiv: return value{divide_reals(a, b).first};
    default: return value{divide_reals(a, b).second};
  }
}

char const* spelled(operation op) noexcept {
  switch (op) {
    case operation::add: return "+";
    case operation::sub: return "-";
    case operation::mul: return "*";
    case operation::div: return "/";
    case operation::floordiv: return "//";
    case operation::mod: return "%";
    default: return "** or pow()";
  }
}

value add_texts(runtime& rt, value const& a, value const& b) {
  rt.allocate(a.text().size() + b.text().size());
  if (!a.is_markup() && !b.is_markup()) {
    std::string joined;
    joined.reserve(a.text().size() + b.text().size());
    joined += a.text();
    joined += b.text();
    return value{std::move(joined)};
  }
  return value::markup(escaped(rt, a).text() + escaped(rt, b).text());
}

value add_sequences(runtime& rt, value const& a, value const& b) {
  rt.allocate((a.items().size() + b.items().size()) * sizeof(value));
  std::vector<value> joined;
  joined.reserve(a.items().size() + b.items().size());
  joined.insert(joined.end(), a.items().begin(), a.items().end());
  joined.insert(joined.end(), b.items().begin(), b.items().end());
  return a.type() == kind::list ? value::list(std::move(joined)) : value::tuple(std::move(joined));
}

value repeat(runtime& rt, value const& sequence, std::int64_t times) {
  auto const n = static_cast<std::size_t>(times < 0 ? 0 : times);
  std::size_t const size = sequence.is_string() ? sequence.text().size() : sequence.items().size() * sizeof(value);
  std::size_t total = 0;
  if (__builtin_mul_overflow(size, n, &total)) total = std::numeric_limits<std::size_t>::max() / 2;
  rt.allocate(total);
  if (sequence.is_string()) {
    std::string out;
    out.reserve(total);
    if (size > 0)
      for (std::size_t i = 0; i < n; ++i) out += sequence.text();
    return sequence.is_markup() ? value::markup(std::move(out)) : value{std::move(out)};
  }
  std::vector<value> out;
  if (size > 0) {
    out.reserve(n * sequence.items().size());
    for (std::size_t i = 0; i < n; ++i) out.insert(out.end(), sequence.items().begin(), sequence.items().end());
  }
  return sequence.type() == kind::list ? value::list(std::move(out)) : value::tuple(std::move(out));
}

bool repeatable(value const& v) noexcept { return v.is_string() || v.is_sequence(); }

}  // namespace

std::string real_to_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[32];
  auto const end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  std::string_view const s{buffer, static_cast<std::size_t>(end - buffer)};
  auto const e = s.find('e');
  std::string digits;
  bool const minus = s[0] == '-';
  for (char c : s.substr(minus, e - minus))
    if (c != '.') digits.push_back(c);
  int exponent = std::atoi(s.data() + e + 1);
  std::string out = minus ? "-" : "";
  auto const n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (n > 1) out += "." + digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    auto const size = std::to_string(std::abs(exponent));
    return out + (size.size() < 2 ? "0" : "") + size;
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (exponent + 1 >= n) return out + digits + std::string(static_cast<std::size_t>(exponent + 1 - n), '0') + ".0";
  return out + digits.substr(0, static_cast<std::size_t>(exponent + 1)) + "." + digits.substr(static_cast<std::size_t>(exponent + 1));
}

std::optional<double> real_from_text(std::string_view given) {
  std::string s;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '_') {
      s.push_back(static_cast<char>(given[i] >= 'A' && given[i] <= 'Z' ? given[i] | 0x20 : given[i]));
      continue;
    }
    auto const digit = [&](std::size_t k) { return k < given.size() && given[k] >= '0' && given[k] <= '9'; };
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
  }
  bool const minus = !s.empty() && s[0] == '-';
  if (minus || (!s.empty() && s[0] == '+')) s.erase(0, 1);
  double d = 0;
  if (s == "inf" || s == "infinity") {
    d = std::numeric_limits<double>::infinity();
  } else if (s == "nan") {
    d = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (s.empty() || (s[0] != '.' && !(s[0] >= '0' && s[0] <= '9'))) return std::nullopt;
    auto const [end, problem] = std::from_chars(s.data(), s.data() + s.size(), d);
    if (problem == std::errc::invalid_argument || end != s.data() + s.size()) return std::nullopt;
    if (problem == std::errc::result_out_of_range) d = std::strtod(s.c_str(), nullptr);  // infinity or zero
  }
  return minus ? -d : d;
}

value integer_from_literal(std::string_view digits) { return integer_from_text(digits, 0); }

value integer_from_unsigned(std::uint64_t u) {
  if (u > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) too_large();
  return value{static_cast<std::int64_t>(u)};
}

value integer_from_text(std::string_view s, int base) {
  s = text::strip(s);
  bool const minus = !s.empty() && s[0] == '-';
  if (minus || (!s.empty() && s[0] == '+')) s.remove_prefix(1);
  if (s.size() >= 2 && s[0] == '0') {
    char const mark = static_cast<char>(s[1] | 0x20);
    int const marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked && (base == 0 || base == marked)) {
      base = marked;
      s.remove_prefix(2);
      if (!s.empty() && s[0] == '_') s.remove_prefix(1);
    }
  }
  bool const literal = base == 0;
  if (literal) base = 10;
  if (s.empty() || s.front() == '_' || s.back() == '_') return value::missing();
  std::int64_t r = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '_') {
      if (s[i - 1] == '_') return value::missing();
      continue;
    }
    int const d = digit_value(s[i]);
    if (d >= base) return value::missing();
    if (__builtin_mul_overflow(r, base, &r) || __builtin_add_overflow(r, minus ? -d : d, &r)) too_large();
  }
  if (literal && s[0] == '0' && r != 0) return value::missing();  // 010 is no decimal literal
  return value{r};
}

value integer_from_real(double d) {
  if (std::isnan(d)) fail("cannot convert float NaN to integer");
  if (std::isinf(d)) fail("cannot convert float infinity to integer");
  double const whole = std::trunc(d);
  if (whole < -9223372036854775808.0 || whole >= 9223372036854775808.0) too_large();
  return value{static_cast<std::int64_t>(whole)};
}

int compare_numbers(std::int64_t i, double d) noexcept {
  if (std::isnan(d)) return 2;
  if (d >= 9223372036854775808.0) return -1;
  if (d < -9223372036854775808.0) return 1;
  auto const whole = static_cast<std::int64_t>(std::floor(d));
  if (i != whole) return i < whole ? -1 : 1;
  return d > std::floor(d) ? -1 : 0;
}

bool same_number(std::int64_t i, double d) noexcept { return compare_numbers(i, d) == 0; }

value arithmetic(runtime& rt, operation op, value const& a, value const& b) {
  if (op == operation::add && a.is_string() && b.is_string()) return add_texts(rt, a, b);
  if (numeric(a) && numeric(b)) {
    if (op == operation::div) return value{divide(a, b)};
    if (op == operation::pow) return power(a, b);
    if (a.is_integral() && b.is_integral()) return integer_arithmetic(op, a.integer(), b.integer());
    return real_arithmetic(op, as_real(a), as_real(b));
  }
  if (op == operation::mod && a.is_string()) return percent_format(rt, a, b);
  if (a.is_undefined()) refuse_undefined(a);
  if (b.is_undefined()) refuse_undefined(b);
  if (op == operation::add && a.is_sequence() && a.type() == b.type()) return add_sequences(rt, a, b);
  if (op == operation::mul) {
    if (repeatable(a) && b.is_integral()) return repeat(rt, a, b.integer());
    if (repeatable(b) && a.is_integral()) return repeat(rt, b, a.integer());
  }
  fail(std::string{"unsupported operand types for "} + spelled(op) + ": '" + type_name(a) + "' and '" + type_name(b) + "'");
}

value negated(value const& v) {
  if (v.is_integral()) return integer_arithmetic(operation::sub, 0, v.integer());
  if (v.type() == kind::real) return value{-v.real()};
  if (v.is_undefined()) refuse_undefined(v);
  fail(std::string{"bad operand type for unary -: '"} + type_name(v) + "'");
}

value positive(value const& v) {
  if (v.is_integral()) return value{v.integer()};
  if (v.type() == kind::real) return v;
  if (v.is_undefined()) refuse_undefined(v);
  fail(std::string{"bad operand type for unary +: '"} + type_name(v) + "'");
}

}  // namespace fermata::jinja

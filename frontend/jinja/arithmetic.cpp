// Operators on values: + - * / // % ** and signs, by Python's rules.
#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/jinja/big_integer.hpp"
#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"

namespace fermata::jinja {
namespace {

[[noreturn]] void division_by_zero(char const* what) { fail(std::string{what} + " by zero"); }

// Python's float divmod: the remainder takes the divisor's sign.
std::pair<double, double> divide_reals(double a, double b) {
  if (b == 0) division_by_zero("float divmod()");
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod == 0) {
    mod = std::copysign(0.0, b);
  } else if ((b < 0) != (mod < 0)) {
    mod += b;
    div -= 1.0;
  }
  if (div == 0) return {std::copysign(0.0, a / b), mod};
  double const whole = std::floor(div);
  return {div - whole > 0.5 ? whole + 1.0 : whole, mod};
}

std::size_t bits(wide_integer const& w) { return w == 0 ? 0 : msb(w < 0 ? wide_integer{-w} : w) + 1; }

// a / b of integers, correctly rounded: the quotient is taken to 64 bits or so, with a last bit that says whether more follows.
double divide_integers(value const& x, value const& y) {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  auto const small = [](value const& v) { return v.is_integral() && v.integer() >= -exact && v.integer() <= exact; };
  if (small(x) && small(y)) return static_cast<double>(x.integer()) / static_cast<double>(y.integer());
  wide_integer a = to_wide(x), b = to_wide(y);
  bool const minus = (a < 0) != (b < 0);
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  if (a == 0) return 0;
  auto const shift = static_cast<int>(bits(b)) - static_cast<int>(bits(a)) + 62;
  if (shift > 0)
    a <<= static_cast<unsigned>(shift);
  else
    b <<= static_cast<unsigned>(-shift);
  auto quotient = static_cast<std::uint64_t>(wide_integer{a / b});
  if (a % b != 0) quotient |= 1;
  double const d = std::ldexp(static_cast<double>(quotient), -shift);
  if (std::isinf(d)) fail("integer division result too large for a float");
  return minus ? -d : d;
}

wide_integer floor_divide(wide_integer const& a, wide_integer const& b) {
  wide_integer q = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) --q;
  return q;
}

value wide_arithmetic(runtime& rt, operation op, value const& x, value const& y) {
  wide_integer const a = to_wide(x), b = to_wide(y);
  rt.step((bits(a) + bits(b)) / 64);
  rt.allocate(runtime::object_bytes);
  switch (op) {
    case operation::add: return integer_value(a + b);
    case operation::sub: return integer_value(a - b);
    case operation::mul: return integer_value(a * b);
    default: break;
  }
  if (b == 0) division_by_zero("integer division or modulo");
  wide_integer const q = floor_divide(a, b);
  return integer_value(op == operation::floordiv ? q : wide_integer{a - q * b});
}

value integer_arithmetic(runtime& rt, operation op, value const& x, value const& y) {
  if (!x.is_integral() || !y.is_integral()) return wide_arithmetic(rt, op, x, y);
  std::int64_t const a = x.integer(), b = y.integer();
  std::int64_t r = 0;
  bool beyond = false;
  switch (op) {
    case operation::add: beyond = __builtin_add_overflow(a, b, &r); break;
    case operation::sub: beyond = __builtin_sub_overflow(a, b, &r); break;
    case operation::mul: beyond = __builtin_mul_overflow(a, b, &r); break;
    default:
      if (b == 0) division_by_zero("integer division or modulo");
      beyond = b == -1;  // the least integer divided by -1 doesn't fit
      if (beyond) break;
      r = op == operation::floordiv ? a / b : a % b;
      if (a % b != 0 && (a < 0) != (b < 0)) r += op == operation::floordiv ? -1 : b;
  }
  return beyond ? wide_arithmetic(rt, op, x, y) : value{r};
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

value integer_power(runtime& rt, value const& base, value const& exponent) {
  wide_integer const b = to_wide(base);
  if (b == 0 || b == 1) return value{exponent.is_integral() && exponent.integer() == 0 ? std::int64_t{1} : static_cast<std::int64_t>(b)};
  bool const small = exponent.is_integral() && exponent.integer() <= static_cast<std::int64_t>(integer_bits_max);
  if (b == -1) return value{to_wide(exponent) % 2 == 0 ? 1 : -1};
  if (!small || (bits(b) - 1) * static_cast<std::size_t>(exponent.integer()) > integer_bits_max)
    fail(error_kind::limit, "power has more than " + std::to_string(integer_bits_max) + " bits");
  rt.step(integer_bits_max / 64);
  return integer_value(pow(b, static_cast<unsigned>(exponent.integer())));
}

value power(runtime& rt, value const& a, value const& b) {
  if (is_integer(a) && is_integer(b) && !is_negative(b)) return integer_power(rt, a, b);
  double const x = to_real(a), y = to_real(b);
  if (x == 0 && y < 0) fail("0.0 cannot be raised to a negative power");
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y)) fail("a negative number to a fractional power is complex, which is not supported");
  double const r = std::pow(x, y);
  if (std::isinf(r) && std::isfinite(x) && std::isfinite(y)) fail("numerical result out of range");
  return value{r};
}

value divide(value const& a, value const& b) {
  bool const integers = is_integer(a) && is_integer(b);
  if (compare_numbers(b, value{0}) == 0) division_by_zero(integers ? "division" : "float division");
  return value{integers ? divide_integers(a, b) : to_real(a) / to_real(b)};
}

char const* sign_of(operation op) noexcept {
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
  rt.allocate(runtime::object_bytes + a.text().size() + b.text().size());
  if (a.is_markup() || b.is_markup()) return value::markup(escaped(rt, a).text() + escaped(rt, b).text());
  std::string joined;
  joined.reserve(a.text().size() + b.text().size());
  joined += a.text();
  joined += b.text();
  return value{std::move(joined)};
}

value add_sequences(runtime& rt, value const& a, value const& b) {
  rt.allocate(runtime::object_bytes + (a.items().size() + b.items().size()) * sizeof(value));
  std::vector<value> joined;
  joined.reserve(a.items().size() + b.items().size());
  joined.insert(joined.end(), a.items().begin(), a.items().end());
  joined.insert(joined.end(), b.items().begin(), b.items().end());
  return a.type() == kind::list ? value::list(std::move(joined)) : value::tuple(std::move(joined));
}

value repeat(runtime& rt, value const& sequence, value const& count) {
  std::size_t const size = sequence.is_string() ? sequence.text().size() : sequence.items().size() * sizeof(value);
  std::size_t times = 0;
  if (!is_negative(count) && size > 0)
    times = count.is_integral() ? static_cast<std::size_t>(count.integer()) : std::numeric_limits<std::size_t>::max();
  std::size_t total = 0;
  if (__builtin_mul_overflow(size, times, &total)) total = std::numeric_limits<std::size_t>::max() / 2;
  rt.allocate(total);
  if (sequence.is_string()) {
    std::string out;
    out.reserve(total);
    for (std::size_t i = 0; i < times; ++i) out += sequence.text();
    return sequence.is_markup() ? value::markup(std::move(out)) : value{std::move(out)};
  }
  std::vector<value> out;
  out.reserve(times * sequence.items().size());
  for (std::size_t i = 0; i < times; ++i) out.insert(out.end(), sequence.items().begin(), sequence.items().end());
  return sequence.type() == kind::list ? value::list(std::move(out)) : value::tuple(std::move(out));
}

bool repeatable(value const& v) noexcept { return v.is_string() || v.is_sequence(); }

}  // namespace

value arithmetic(runtime& rt, operation op, value const& a, value const& b) {
  if (op == operation::add && a.is_string() && b.is_string()) return add_texts(rt, a, b);
  if (is_number(a) && is_number(b)) {
    if (op == operation::div) return divide(a, b);
    if (op == operation::pow) return power(rt, a, b);
    if (is_integer(a) && is_integer(b)) return integer_arithmetic(rt, op, a, b);
    return real_arithmetic(op, to_real(a), to_real(b));
  }
  if (op == operation::mod && a.is_string()) return percent_format(rt, a, b);
  if (a.is_undefined()) refuse_undefined(a);
  if (b.is_undefined()) refuse_undefined(b);
  if (op == operation::add && a.is_sequence() && a.type() == b.type()) return add_sequences(rt, a, b);
  if (op == operation::mul) {
    if (repeatable(a) && is_integer(b)) return repeat(rt, a, b);
    if (repeatable(b) && is_integer(a)) return repeat(rt, b, a);
  }
  fail(std::string{"unsupported operand types for "} + sign_of(op) + ": '" + type_name(a) + "' and '" + type_name(b) + "'");
}

value negated(value const& v) {
  if (v.is_integral() && v.integer() != std::numeric_limits<std::int64_t>::min()) return value{-v.integer()};
  if (is_integer(v)) return integer_value(-to_wide(v));
  if (v.type() == kind::real) return value{-v.real()};
  if (v.is_undefined()) refuse_undefined(v);
  fail(std::string{"bad operand type for unary -: '"} + type_name(v) + "'");
}

value positive(value const& v) {
  if (v.is_integral()) return value{v.integer()};
  if (is_number(v)) return v;
  if (v.is_undefined()) refuse_undefined(v);
  fail(std::string{"bad operand type for unary +: '"} + type_name(v) + "'");
}

}  // namespace fermata::jinja

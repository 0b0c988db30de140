// See numbers.hpp.
#include "frontend/jinja/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "frontend/jinja/big_integer.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

constexpr std::size_t integer_digits_max = 4300;  // Python's own bound on int <-> str

int digit_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  char const low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

int order(double a, double b) noexcept { return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2; }

int compare_with_real(value const& i, double d) noexcept {
  if (std::isnan(d)) return 2;
  if (std::isinf(d)) return d > 0 ? -1 : 1;
  wide_integer const whole{std::trunc(d)};
  int const c = to_wide(i).compare(whole);
  if (c != 0) return c < 0 ? -1 : 1;
  return order(std::trunc(d), d);
}

}  // namespace

// ---- big integers

std::size_t big_integer::hash() const { return std::hash<double>{}(wide_to_real(number)); }

value integer_value(wide_integer w) {
  if (w >= std::numeric_limits<std::int64_t>::min() && w <= std::numeric_limits<std::int64_t>::max())
    return value{static_cast<std::int64_t>(w)};
  if (msb(w < 0 ? wide_integer{-w} : w) >= integer_bits_max)
    fail(error_kind::limit, "integer has more than " + std::to_string(integer_bits_max) + " bits");
  return value::of(new big_integer{std::move(w)});
}

big_integer const* as_big(value const& v) noexcept { return v.is_object() ? dynamic_cast<big_integer const*>(&v.as_object()) : nullptr; }

wide_integer to_wide(value const& v) {
  if (auto const* big = as_big(v)) return big->number;
  return wide_integer{v.integer()};
}

double wide_to_real(wide_integer const& w) { return std::strtod(w.str().c_str(), nullptr); }

// ---- numbers of any kind

bool is_integer(value const& v) noexcept { return v.is_integral() || as_big(v); }
bool is_number(value const& v) noexcept { return v.is_integral() || v.type() == kind::real || as_big(v); }

double to_real(value const& v) {
  if (v.type() == kind::real) return v.real();
  if (v.is_integral()) return static_cast<double>(v.integer());
  double const d = wide_to_real(as_big(v)->number);
  if (std::isinf(d)) fail("int too large to convert to float");
  return d;
}

int compare_numbers(value const& a, value const& b) noexcept {
  if (a.is_integral() && b.is_integral()) return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  if (a.type() == kind::real && b.type() == kind::real) return order(a.real(), b.real());
  if (b.type() == kind::real) return compare_with_real(a, b.real());
  if (a.type() == kind::real) {
    int const reversed = compare_with_real(b, a.real());
    return reversed == 2 ? 2 : -reversed;
  }
  int const c = to_wide(a).compare(to_wide(b));
  return c < 0 ? -1 : c > 0;
}

bool is_negative(value const& v) noexcept {
  auto const* big = as_big(v);
  return big ? big->number < 0 : v.integer() < 0;
}

// ---- numbers to text

std::string real_to_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[32];
  auto const end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  std::string_view const s{buffer, static_cast<std::size_t>(end - buffer)};
  auto const e = s.find('e');
  bool const minus = s[0] == '-';
  std::string digits;
  for (char c : s.substr(minus, e - minus))
    if (c != '.') digits.push_back(c);
  int const exponent = std::atoi(std::string{s.substr(e + 1)}.c_str());
  auto const n = static_cast<int>(digits.size());
  std::string out = minus ? "-" : "";
  auto const zeros = [](int count) { return std::string(static_cast<std::size_t>(count), '0'); };
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (n > 1) out.append(".").append(digits, 1);
    auto const size = std::to_string(std::abs(exponent));
    return out.append(exponent < 0 ? "e-" : "e+").append(size.size() < 2 ? "0" : "").append(size);
  }
  if (exponent < 0) return out.append("0.").append(zeros(-exponent - 1)).append(digits);
  if (exponent + 1 >= n) return out.append(digits).append(zeros(exponent + 1 - n)).append(".0");
  auto const whole = static_cast<std::size_t>(exponent + 1);
  return out.append(digits, 0, whole).append(".").append(digits, whole);
}

std::string integer_to_text(value const& v) {
  if (v.is_integral()) return std::to_string(v.integer());
  std::string s = as_big(v)->number.str();
  if (s.size() > integer_digits_max) fail("integer has more than 4300 digits and cannot be printed");
  return s;
}

std::string integer_digits(value const& v, unsigned base, bool capitals) {
  if (base == 10) {
    std::string s = integer_to_text(v);
    return s[0] == '-' ? s.substr(1) : s;
  }
  wide_integer w = to_wide(v);
  if (w < 0) w = -w;
  std::string digits = w.str(0, base == 8 ? std::ios_base::oct : std::ios_base::hex);
  if (base == 2) {
    std::string bits;
    for (char const d : digits)
      for (int bit = 3; bit >= 0; --bit) bits.push_back(static_cast<char>('0' + ((digit_value(d) >> bit) & 1)));
    digits = bits.substr(std::min(bits.find('1'), bits.size() - 1));
  }
  if (capitals) digits = text::upper(digits);
  return digits;
}

// ---- text to numbers

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

value integer_from_unsigned(std::uint64_t u) { return integer_value(wide_integer{u}); }

value integer_from_text(std::string_view s, int base) {
  s = text::strip(s);
  bool const minus = !s.empty() && s[0] == '-';
  if (minus || (!s.empty() && s[0] == '+')) s.remove_prefix(1);
  bool prefixed = false;
  if (s.size() >= 2 && s[0] == '0') {
    char const mark = static_cast<char>(s[1] | 0x20);
    int const marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked && (base == 0 || base == marked)) {
      base = marked;
      prefixed = true;
      s.remove_prefix(2);
      if (!s.empty() && s[0] == '_') s.remove_prefix(1);
    }
  }
  bool const literal = base == 0;
  if (literal) base = 10;
  if (s.empty() || s.front() == '_' || s.back() == '_') return value::missing();
  std::string digits;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '_' ? s[i - 1] == '_' : digit_value(s[i]) >= base) return value::missing();
    if (s[i] != '_') digits.push_back(s[i]);
  }
  if (literal && !prefixed && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos) return value::missing();
  if (digits.size() > integer_digits_max) fail("integer has more than 4300 digits");
  std::int64_t small = 0;
  auto const [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), small, base);
  if (problem == std::errc{}) return value{minus ? -small : small};
  wide_integer w = 0;
  for (char const c : digits) w = w * base + digit_value(c);
  return integer_value(minus ? wide_integer{-w} : w);
}

value integer_from_real(double d) {
  if (std::isnan(d)) fail("cannot convert float NaN to integer");
  if (std::isinf(d)) fail("cannot convert float infinity to integer");
  double const whole = std::trunc(d);
  if (whole >= -9223372036854775808.0 && whole < 9223372036854775808.0) return value{static_cast<std::int64_t>(whole)};
  return integer_value(wide_integer{whole});
}

}  // namespace fermata::jinja

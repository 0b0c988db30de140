// Integers beyond 64 bits, as values. Most arithmetic never gets here; see numbers.hpp.
//
// Invariant: a big_integer never holds a number that fits 64 bits (those are kind::integer), nor one of more than
// integer_bits_max bits.
#pragma once

#include <string>
#include <utility>

#include <boost/multiprecision/cpp_int.hpp>

#include "frontend/jinja/objects.hpp"

namespace fermata::jinja {

// Without expression templates: an expression that outlives its operands is a crash.
using wide_integer = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<>, boost::multiprecision::et_off>;

// Enough for every number Python agrees to print (4300 digits).
inline constexpr unsigned integer_bits_max = 1u << 14;

class big_integer final : public object {
 public:
  explicit big_integer(wide_integer v) : number{std::move(v)} {}
  char const* type_name() const noexcept override { return "int"; }
  std::size_t hash() const override;
  wide_integer const number;
};

// The value of `w`, in 64 bits when it fits; faults beyond integer_bits_max.
value integer_value(wide_integer w);
// A big integer, or nullptr.
big_integer const* as_big(value const& v) noexcept;
// Of an integral value.
wide_integer to_wide(value const& v);
double wide_to_real(wide_integer const& w);  // nearest; infinity when out of range

}  // namespace fermata::jinja

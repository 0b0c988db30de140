// Tests (`x is ...`).
#include <unordered_map>

#include "frontend/jinja/builtins.hpp"
#include "frontend/jinja/methods.hpp"
#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"

namespace fermata::jinja {
namespace {

using check = bool (*)(value const&);

template <check Check>
value simple(runtime&, value const& v, arguments& args) {
  positional_only(args, "test", 0, 0);
  return value{Check(v)};
}

bool is_true(value const& v) { return v.type() == kind::boolean && v.boolean(); }
bool is_false(value const& v) { return v.type() == kind::boolean && !v.boolean(); }
bool is_defined(value const& v) { return !v.is_undefined(); }
bool is_undefined(value const& v) { return v.is_undefined(); }
bool is_none(value const& v) { return v.is_none(); }
bool is_boolean(value const& v) { return v.type() == kind::boolean; }
bool is_plain_integer(value const& v) { return is_integer(v) && !is_boolean(v); }
bool is_float(value const& v) { return v.type() == kind::real; }
bool is_any_number(value const& v) { return is_number(v); }
bool is_string(value const& v) { return v.is_string(); }
bool is_mapping(value const& v) { return v.is_dict(); }
bool is_iterable_value(value const& v) { return is_iterable(v); }
bool is_escaped(value const& v) { return v.is_markup(); }
bool is_callable(value const& v) { return v.is_undefined() || (v.is_object() && v.as_object().callable()); }
bool is_sequence(value const& v) {
  return v.is_string() || v.is_sequence() || v.is_dict() || v.is_undefined() || (v.is_object() && v.as_object().has_elements());
}

value other(arguments& args) {
  positional_only(args, "test", 1, 1);
  return args.positional[0];
}

value modulo_is(runtime& rt, value const& v, value const& by, int wanted) {
  return value{equal(rt, arithmetic(rt, operation::mod, v, by), value{wanted})};
}

template <operation Op>
value compared(runtime& rt, value const& v, arguments& args) {
  value const o = other(args);
  if (Op == operation::eq) return value{equal(rt, v, o)};
  if (Op == operation::ne) return value{!equal(rt, v, o)};
  return value{ordered(rt, Op, v, o)};
}

using entry = builtin;

std::vector<entry> const& all_tests() {
  static std::vector<entry> const tests{
      {"defined", simple<is_defined>}, {"undefined", simple<is_undefined>}, {"none", simple<is_none>}, {"boolean", simple<is_boolean>},
      {"true", simple<is_true>}, {"false", simple<is_false>}, {"integer", simple<is_plain_integer>}, {"float", simple<is_float>},
      {"number", simple<is_any_number>}, {"string", simple<is_string>}, {"mapping", simple<is_mapping>}, {"sequence", simple<is_sequence>},
      {"iterable", simple<is_iterable_value>}, {"escaped", simple<is_escaped>}, {"callable", simple<is_callable>},
      {"odd", [](runtime& rt, value const& v, arguments& args) {
         positional_only(args, "odd", 0, 0);
         return modulo_is(rt, v, value{2}, 1);
       }},
      {"even", [](runtime& rt, value const& v, arguments& args) {
         positional_only(args, "even", 0, 0);
         return modulo_is(rt, v, value{2}, 0);
       }},
      {"divisibleby", [](runtime& rt, value const& v, arguments& args) {
         auto const p = bind_arguments(args, "divisibleby", {"num"}, 1);
         return modulo_is(rt, v, p[0], 0);
       }},
      {"lower", [](runtime& rt, value const& v, arguments& args) {
         positional_only(args, "lower", 0, 0);
         return value{all_lower(to_text(rt, v))};
       }},
      {"upper", [](runtime& rt, value const& v, arguments& args) {
         positional_only(args, "upper", 0, 0);
         return value{all_upper(to_text(rt, v))};
       }},
      {"sameas", [](runtime& rt, value const& v, arguments& args) {
         auto const p = bind_arguments(args, "sameas", {"other"}, 1);
         return value{same(rt, v, p[0])};
       }},
      {"in", [](runtime& rt, value const& v, arguments& args) {
         auto const p = bind_arguments(args, "in", {"seq"}, 1);
         return value{contains(rt, p[0], v)};
       }},
      {"filter", [](runtime&, value const& v, arguments&) { return value{v.is_string() && find_filter(v.text()) != nullptr}; }},
      {"test", [](runtime&, value const& v, arguments&) { return value{v.is_string() && find_test(v.text()) != nullptr}; }},
      {"==", compared<operation::eq>}, {"eq", compared<operation::eq>}, {"equalto", compared<operation::eq>},
      {"!=", compared<operation::ne>}, {"ne", compared<operation::ne>}, {">", compared<operation::gt>}, {"gt", compared<operation::gt>},
      {"greaterthan", compared<operation::gt>}, {">=", compared<operation::gteq>}, {"ge", compared<operation::gteq>},
      {"<", compared<operation::lt>}, {"lt", compared<operation::lt>}, {"lessthan", compared<operation::lt>},
      {"<=", compared<operation::lteq>}, {"le", compared<operation::lteq>},
  };
  return tests;
}

}  // namespace

builtin const* find_test(std::string_view name) noexcept {
  static std::unordered_map<std::string_view, builtin const*> const by_name = [] {
    std::unordered_map<std::string_view, builtin const*> made;
    for (auto const& t : all_tests()) made.emplace(t.name, &t);
    return made;
  }();
  auto const at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}

}  // namespace fermata::jinja

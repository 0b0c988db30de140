// The functions a template can name: filters, tests, methods of strings, lists and dicts, and globals.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

class runtime;

struct arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;
};

// A function with a subject: the filtered or tested value, or the object a method belongs to.
struct builtin {
  std::string_view name;
  value (*invoke)(runtime& rt, value const& subject, arguments& args);
  bool mutates = false;  // exists in Python, forbidden by the immutable sandbox
};

// nullptr when there is none of that name.
builtin const* find_filter(std::string_view name) noexcept;
builtin const* find_test(std::string_view name) noexcept;
builtin const* find_method(value const& object, std::string_view name) noexcept;

// Globals of the environment (range, dict, namespace, ...), which the context may shadow. missing when there is none.
value environment_global(std::string_view name);
bool is_environment_name(std::string_view name) noexcept;

// Puts arguments in the order of a Python signature. Parameters not given are `missing`. Faults on too many, unknown,
// repeated and missing ones. `required` counts from the front.
std::vector<value> bind_arguments(arguments& args, std::string_view function, std::initializer_list<std::string_view> parameters,
                                  std::size_t required);
// The same for functions that take no names (most methods of Python's str): checks the count only.
void positional_only(arguments const& args, std::string_view function, std::size_t least, std::size_t most);

}  // namespace fermata::jinja

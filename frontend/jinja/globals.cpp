// Argument binding, and the functions every template can name: range, dict, namespace, cycler, joiner, raise_exception,
// strftime_now.
#include "frontend/jinja/builtins.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "frontend/jinja/methods.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {

std::vector<value> bind_arguments(arguments& args, std::string_view function, std::initializer_list<std::string_view> parameters,
                                  std::size_t required) {
  std::string const name{function};
  if (args.positional.size() > parameters.size())
    fail(name + "() takes at most " + std::to_string(parameters.size()) + " arguments, " + std::to_string(args.positional.size()) + " were given");
  std::vector<value> bound = std::move(args.positional);
  std::size_t const given = bound.size();
  bound.resize(parameters.size(), value::missing());
  for (auto& [key, v] : args.named) {
    auto const at = std::find(parameters.begin(), parameters.end(), key);
    if (at == parameters.end()) fail(name + "() got an unexpected keyword argument '" + key + "'");
    auto const index = static_cast<std::size_t>(at - parameters.begin());
    if (index < given || !bound[index].is_missing()) fail(name + "() got multiple values for argument '" + key + "'");
    bound[index] = std::move(v);
  }
  for (std::size_t i = 0; i < required; ++i)
    if (bound[i].is_missing()) fail(name + "() misses the argument '" + std::string{*(parameters.begin() + i)} + "'");
  return bound;
}

void positional_only(arguments const& args, std::string_view function, std::size_t least, std::size_t most) {
  std::string const name{function};
  if (!args.named.empty()) fail(name + "() takes no keyword arguments");
  if (args.positional.size() < least) fail(name + "() takes at least " + std::to_string(least) + " arguments");
  if (args.positional.size() > most) fail(name + "() takes at most " + std::to_string(most) + " arguments");
}

value dict_fromkeys(runtime& rt, value const&, arguments& args) {
  positional_only(args, "fromkeys", 1, 2);
  std::vector<value::pair> entries;
  for (auto& key : to_items(rt, args.positional[0]))
    entries.emplace_back(std::move(key), args.positional.size() > 1 ? args.positional[1] : value{});
  return rt.make_dict(std::move(entries));
}

namespace {

value range_function(runtime& rt, value const&, arguments& args) {
  positional_only(args, "range", 1, 3);
  std::vector<std::int64_t> n;
  for (auto const& v : args.positional) n.push_back(to_index(v, "argument of range()"));
  if (n.size() == 1) return make_object<range_object>(rt, 0, n[0], 1);
  return make_object<range_object>(rt, n[0], n[1], n.size() == 3 ? n[2] : 1);
}

// dict(mapping or pairs, **named)
std::vector<value::pair> dict_entries(runtime& rt, arguments& args, char const* function) {
  if (args.positional.size() > 1) fail(std::string{function} + "() takes at most one positional argument");
  std::vector<value::pair> entries;
  if (!args.positional.empty()) {
    value const& from = args.positional[0];
    if (from.is_undefined()) refuse_undefined(from);
    if (from.is_dict()) {
      rt.allocate(from.entries().size() * sizeof(value::pair));
      entries = from.entries();
    } else {
      cursor each{rt, from};
      value item;
      while (each.next(item)) {
        auto pair = to_items(rt, item);
        if (pair.size() != 2) fail(std::string{function} + "() needs pairs: an element has length " + std::to_string(pair.size()));
        rt.allocate(sizeof(value::pair));
        entries.emplace_back(std::move(pair[0]), std::move(pair[1]));
      }
    }
  }
  for (auto& [name, v] : args.named) entries.emplace_back(value{name}, std::move(v));
  return entries;
}

value dict_function(runtime& rt, value const&, arguments& args) { return rt.make_dict(dict_entries(rt, args, "dict")); }

value namespace_function(runtime& rt, value const&, arguments& args) {
  // Through a dict first: a name given twice counts once.
  value const attributes = rt.make_dict(dict_entries(rt, args, "namespace"));
  value made = make_object<name_space>(rt, attributes.entries());
  rt.keep(static_cast<name_space*>(&made.as_object()));
  return made;
}

value cycler_function(runtime& rt, value const&, arguments& args) {
  if (!args.named.empty()) fail("cycler() takes no keyword arguments");
  return make_object<cycler_object>(rt, std::move(args.positional));
}

value joiner_function(runtime& rt, value const&, arguments& args) {
  auto p = bind_arguments(args, "joiner", {"sep"}, 0);
  return make_object<joiner_object>(rt, p[0].is_missing() ? value{", "} : p[0]);
}

value raise_exception(runtime& rt, value const&, arguments& args) {
  auto const p = bind_arguments(args, "raise_exception", {"message"}, 1);
  fail(error_kind::raised, to_text(rt, p[0]));
}

value strftime_now(runtime& rt, value const&, arguments& args) {
  auto const p = bind_arguments(args, "strftime_now", {"format"}, 1);
  if (!p[0].is_string()) fail(std::string{"strftime_now() needs a format string, not "} + type_name(p[0]));
  local_time const now = rt.now();
  // What C's strftime doesn't know or would take from the machine: microseconds and the (absent) time zone.
  std::string format;
  auto const& given = p[0].text();
  if (given.find('\0') != std::string::npos) fail("embedded null character in the format of strftime_now()");
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '%' || i + 1 == given.size()) {
      format.push_back(given[i]);
      continue;
    }
    char const directive = given[++i];
    if (directive == 'f') {
      char digits[16];
      std::snprintf(digits, sizeof digits, "%06u", now.microseconds % 1000000u);
      format += digits;
    } else if (directive != 'z' && directive != 'Z') {
      format += {'%', directive};
    }
  }
  constexpr std::size_t formatted_bytes_max = 1u << 16;
  format.push_back('.');  // so that an empty result can be told from one that doesn't fit
  std::string out(1024, '\0');
  std::size_t n = 0;
  while ((n = std::strftime(out.data(), out.size(), format.c_str(), &now.fields)) == 0) {
    if (out.size() >= formatted_bytes_max) fail(error_kind::limit, "the format of strftime_now() makes too long a text");
    out.resize(out.size() * 4);
  }
  out.resize(n - 1);
  if (!text::valid_utf8(out)) fail("the format of strftime_now() cuts a character");
  return rt.make_text(std::move(out));
}

struct named_global {
  std::string_view name;
  builtin function;
};

constexpr std::array<named_global, 7> globals{{
    {"range", {"range", range_function}},
    {"dict", {"dict", dict_function}},
    {"namespace", {"namespace", namespace_function}},
    {"cycler", {"cycler", cycler_function}},
    {"joiner", {"joiner", joiner_function}},
    {"raise_exception", {"raise_exception", raise_exception}},
    {"strftime_now", {"strftime_now", strftime_now}},
}};

builtin const fromkeys{"fromkeys", dict_fromkeys};

// `dict` has one attribute that templates may use.
class dict_type final : public object {
 public:
  char const* type_name() const noexcept override { return "TemplateDict"; }
  bool callable() const noexcept override { return true; }
  value call(runtime& rt, arguments& args) override { return dict_function(rt, {}, args); }
  value attribute(runtime& rt, std::string_view name) override {
    return name == "fromkeys" ? make_object<function_object>(rt, &fromkeys, value{}) : value::missing();
  }
};

}  // namespace

value environment_global(std::string_view name) {
  if (name == "dict") return value::of(new dict_type);
  for (auto const& g : globals)
    if (g.name == name) return value::of(new function_object{&g.function, value{}});
  return value::missing();
}

bool is_environment_name(std::string_view name) noexcept {
  return std::any_of(globals.begin(), globals.end(), [&](auto const& g) { return g.name == name; });
}

}  // namespace fermata::jinja

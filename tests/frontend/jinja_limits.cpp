// Hostile templates and contexts end in an error of the right kind, soon and without much memory.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "frontend/jinja/jinja.hpp"

namespace {

namespace jinja = fermata::jinja;
using jinja::error_kind;

std::string repeated(std::string const& s, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += s;
  return out;
}

// Small, so that a test that runs into them stays cheap.
constexpr jinja::limits tight{.steps_max = 1'000'000, .output_bytes_max = 1u << 20, .allocated_bytes_max = 32u << 20, .depth_max = 2000};

// The kind of error that parsing or rendering ends in.
error_kind ending(std::string const& source, jinja::limits const& bounds = tight) {
  jinja::render_options options;
  options.bounds = bounds;
  try {
    auto const text = jinja::program::parse(source).render(jinja::value::dict({{"n", 7}, {"l", jinja::value::list({1, 2, 3})}}), options);
    FAIL("rendered to " << text.size() << " bytes");
  } catch (jinja::error const& e) {
    CHECK(e.line() >= 1);
    CHECK(e.column() >= 1);
    return e.kind();
  }
  return {};
}

}  // namespace

TEST_CASE("templates nested too deeply are refused when parsed") {
  for (auto const& pair : std::vector<std::pair<std::string, std::string>>{
           {"(", ")"}, {"[", "]"}, {"{1:", "}"}, {"-", ""}, {"not ", ""}, {"f(", ")"}, {"l[", "]"}, {"1 if 1 else ", ""}, {"x|f(", ")"}}) {
    std::string const& open = pair.first;
    std::string const& close = pair.second;
    CAPTURE(open);
    CHECK(ending("{{ " + repeated(open, 5000) + "1" + repeated(close, 5000) + " }}") == error_kind::syntax);
  }
  for (const std::string tag : {"if 1", "for i in l", "with", "filter upper", "set x", "macro m()", "call m()", "generation"}) {
    CAPTURE(tag);
    CHECK(ending(repeated("{% " + tag + " %}", 5000)) == error_kind::syntax);
  }
  for (const std::string link : {"+1", ".a", "[0]", "|upper", " and 1", "**1", "()", " is odd"}) {
    CAPTURE(link);
    CHECK(ending("{{ n" + repeated(link, 5000) + " }}") == error_kind::syntax);
  }
}

TEST_CASE("long but flat templates are fine") {
  auto const flat = [](std::string const& source) { return jinja::program::parse(source).render(jinja::value::dict({})); };
  CHECK(flat("{{ 0" + repeated(" ~ 1", 5000) + " }}").size() == 5001);
  CHECK(flat("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% else %}x{% endif %}") == "x");
  CHECK(flat("{{ [" + repeated("1,", 5000) + "]|length }}") == "5000");
  CHECK(flat(repeated("{% set a = 1 %}{% if a %}x{% endif %}", 2000)).size() == 2000);
}

TEST_CASE("work is bounded") {
  CHECK(ending("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}") == error_kind::limit);
  CHECK(ending("{% for a in range(99999) %}{{ 'x' * 10000 in 'y' * 1000000 }}{% endfor %}") == error_kind::limit);
  CHECK(ending("{{ range(10 ** 12) }}") == error_kind::limit);
  CHECK(ending("{{ 2 ** 100000 }}") == error_kind::limit);
  CHECK(ending("{% set ns = namespace(x=3) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}") == error_kind::limit);
}

TEST_CASE("output is bounded") {
  CHECK(ending("{% for a in range(100000) %}{{ 'x' * 1000 }}{% endfor %}") == error_kind::limit);
  CHECK(ending("0123456789", {.output_bytes_max = 9}) == error_kind::limit);
}

TEST_CASE("memory is bounded before it is taken") {
  for (const std::string greedy :
       {"'x' * 10 ** 9 * 10", "[0] * 10 ** 12", "10 ** 18 * 'ab'", "'a'|center(10 ** 12)", "'a'.ljust(10 ** 15)", "'a'.zfill(10 ** 15)",
        "'a\tb'.expandtabs(10 ** 15)", "'%1000000000d' % 1", "'%.1000000000f' % 1.5", "'%*d' % (10 ** 10, 1)", "'{:1000000000}'.format(1)",
        "'{:.1000000000f}'.format(1.5)", "l|tojson(indent=10 ** 12)", "'a\nb'|indent(10 ** 12)", "l|batch(10 ** 12, 0)|list",
        "l|slice(10 ** 12)|list", "('x' * 9999).replace('x', 'y' * 999999)", "('x,' * 99999).replace('', 'y' * 99999)",
        "([1] * 99999)|join('x' * 99999)", "('a' * 99999).join(['b'] * 99999)"}) {
    CAPTURE(greedy);
    CHECK(ending("{{ " + greedy + " }}") == error_kind::limit);
  }
  // Doubling, in every way a container or a text can double.
  for (const std::string doubled : {"ns.x ~ ns.x", "ns.x + ns.x", "[ns.x, ns.x]|string", "[ns.x, ns.x]|tojson", "ns.x|replace('', ns.x)"}) {
    CAPTURE(doubled);
    CHECK(ending("{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = " + doubled + " %}{% endfor %}") == error_kind::limit);
  }
}

TEST_CASE("values that share their parts cost what walking them costs") {
  std::string const shared = "{% set ns = namespace(x=(1,), y=(1,)) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% set ns.y = (ns.y, ns.y) %}{% endfor %}";
  for (const std::string walked : {"ns.x", "ns.x|tojson", "ns.x == ns.y", "ns.x < ns.y", "{ns.x: 1}", "{}[ns.x]", "ns.x in [ns.y]", "[ns.x, ns.y]|sort", "[ns.x]|unique|list"}) {
    CAPTURE(walked);
    CHECK(ending(shared + "{{ " + walked + " }}") == error_kind::limit);
  }
}

TEST_CASE("values that nest too deeply are refused") {
  for (const std::string deeper : {"[ns.x]", "(ns.x,)", "{'a': ns.x}", "ns.x|map('upper')", "l|map('default', ns.x)", "cycler(ns.x)",
                                    "joiner(ns.x)", "l|batch(2, ns.x)", "{'a': ns.x}.items()", "[ns.x].index"}) {
    CAPTURE(deeper);
    CHECK(ending("{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = " + deeper + " %}{% endfor %}") == error_kind::limit);
  }
  CHECK_THROWS_AS(jinja::value::parse_json(repeated("[", 100000)), jinja::error);
  CHECK_THROWS_AS(jinja::value::parse_json(repeated("[", 1000) + repeated("]", 1000)), jinja::error);
}

TEST_CASE("recursion ends") {
  CHECK(ending("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}") == error_kind::limit);
  CHECK(ending("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}") == error_kind::limit);
  CHECK(ending("{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns }}") == error_kind::limit);
  CHECK(ending("{% set ns = namespace() %}{% set ns.l = [ns] %}{{ ns.l }}") == error_kind::limit);
}

TEST_CASE("long chains of namespaces and macros come apart without recursion") {
  auto const p = jinja::program::parse(
      "{% set ns = namespace() %}{% for i in range(99999) %}{% set ns.x = namespace(p=ns.x) %}{% endfor %}"
      "{% macro m(f) %}{% macro g() %}{{ f }}{% endmacro %}{% set ns.g = g %}{% endmacro %}"
      "{% for i in range(20000) %}{{ m(ns.g) }}{% endfor %}done");
  CHECK(p.render(jinja::value::dict({})) == "done");
}

TEST_CASE("errors say where they are") {
  auto const place = [](std::string const& source) {
    try {
      (void)jinja::program::parse(source).render(jinja::value::dict({}));
    } catch (jinja::error const& e) {
      return std::pair{e.line(), e.column()};
    }
    return std::pair{0u, 0u};
  };
  CHECK(place("é{{ x.y }}") == std::pair{1u, 6u});          // the dot, counted in characters
  CHECK(place("a\n b{{ 1 / 0 }}") == std::pair{2u, 6u});    // the left operand
  CHECK(place("\r\n{% foo %}") == std::pair{2u, 4u});       // the unknown tag
  CHECK(place("{{ 'a\nb' }}{{ ] }}") == std::pair{2u, 9u});  // the bracket
  CHECK(place("{% if true %}") == std::pair{1u, 4u});       // the block that isn't closed
  try {
    (void)jinja::program::parse("\n {{ raise_exception('no such role') }}").render(jinja::value::dict({}));
    FAIL("nothing raised");
  } catch (jinja::error const& e) {
    CHECK(e.kind() == error_kind::raised);
    CHECK(e.message() == "no such role");
    CHECK(std::string{e.what()} == "line 2, column 20: no such role");
  }
}

TEST_CASE("changing a value is a matter of the sandbox") {
  CHECK(ending("{{ l.append(1) }}") == error_kind::security);
  CHECK(ending("{{ {}.update({}) }}") == error_kind::security);
  CHECK(ending("{{ ''.__class__() }}") == error_kind::security);
  CHECK(ending("{{ nosuch.x }}") == error_kind::undefined);
}

TEST_CASE("bytes that are no text are refused") {
  CHECK_THROWS_AS(jinja::program::parse("\xff"), jinja::error);
  CHECK_THROWS_AS(jinja::program::parse("\xed\xa0\x80"), jinja::error);
  CHECK_THROWS_AS(jinja::value::from_json(nlohmann::ordered_json("\xff")), jinja::error);
  CHECK_THROWS_AS(jinja::value::parse_json("{"), jinja::error);
  CHECK_THROWS_AS(jinja::program::parse("").render(jinja::value{1}), jinja::error);
}

TEST_CASE("a program is shared by threads") {
  auto const p = jinja::program::parse("{% macro m(x) %}<{{ x|upper }}>{% endmacro %}{% for i in l %}{{ m('é') ~ i }}{{ l|tojson }}{% endfor %}");
  auto const context = jinja::value::dict({{"l", jinja::value::list({1, 2, 3})}});
  auto const alone = p.render(context);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) wrong[t] += p.render(context) != alone;
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("a program names the variables it reads") {
  auto const p = jinja::program::parse("{% set a = b %}{% for m in messages %}{{ m.x }}{{ range(c) }}{% macro f(q) %}{{ q }}{{ d }}{% endmacro %}{% endfor %}");
  CHECK(p.variables() == std::vector<std::string>{"b", "c", "d", "messages"});
}

TEST_CASE("JSON keeps what Python would keep") {
  auto const shown = [](std::string const& json) { return jinja::program::parse("{{ x }} {{ x|tojson }}").render(jinja::value::dict({{"x", jinja::value::parse_json(json)}})); };
  CHECK(shown("123456789012345678901234567890") == "123456789012345678901234567890 123456789012345678901234567890");
  CHECK(shown("-18446744073709551616") == "-18446744073709551616 -18446744073709551616");
  CHECK(shown("[1, 1.0, 1e2, -0.0, true, null]") == "[1, 1.0, 100.0, -0.0, True, None] [1, 1.0, 100.0, -0.0, true, null]");
  CHECK(shown(R"({"b": 1, "a": 2, "b": 3})") == R"({'b': 3, 'a': 2} {"b": 3, "a": 2})");
  auto const ordered = nlohmann::ordered_json::parse(R"({"z": 18446744073709551615, "a": [0.1]})");
  CHECK(jinja::program::parse("{{ z }} {{ a }}").render(jinja::value::from_json(ordered)) == "18446744073709551615 [0.1]");
}

TEST_CASE("strftime_now needs a clock") {
  CHECK(ending("{{ strftime_now('%Y') }}") == error_kind::runtime);
}

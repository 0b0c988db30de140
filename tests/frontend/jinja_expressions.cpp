// Small templates for each part of the language, against transformers' environment.
#include <doctest/doctest.h>

#include "frontend/jinja_fixture.hpp"

using fermata::jinja::value;

TEST_CASE("each part of the language does what the reference does") {
  auto const fixture = jinja_fixture::load("expressions.json");
  REQUIRE(fixture["cases"].size() >= 900);
  for (auto const& c : fixture["cases"]) {
    std::string const group = c["group"], source = c["template"];
    CAPTURE(group);
    CAPTURE(source);
    auto context = fixture["context"];
    if (c.contains("context")) context.update(c["context"]);
    auto const got = jinja_fixture::render(source, value::from_json(context));
    if (!c.contains("expected")) {
      std::string const wanted = c["message"];
      CAPTURE(wanted);
      CHECK(got.error != "");
      if (c.contains("line") && group == "lines of errors") CHECK(got.line == c["line"].get<unsigned>());
      continue;
    }
    CHECK(got.error == "");
    CHECK(got.text == c["expected"].get<std::string>());
    if (!c.contains("spans")) continue;
    REQUIRE(got.spans.size() == c["spans"].size());
    for (std::size_t i = 0; i < got.spans.size(); ++i) {
      CHECK(got.spans[i].begin == c["spans"][i][0].get<std::size_t>());
      CHECK(got.spans[i].end == c["spans"][i][1].get<std::size_t>());
    }
  }
}

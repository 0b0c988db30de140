// Real chat templates, rendered over conversations, against transformers' environment.
#include <doctest/doctest.h>

#include "frontend/jinja_fixture.hpp"

using fermata::jinja::value;

TEST_CASE("real chat templates render as the reference renders them") {
  auto const fixture = jinja_fixture::load("templates.json");
  REQUIRE(fixture["cases"].size() >= 200);
  for (auto const& c : fixture["cases"]) {
    std::string const file = c["template"], conversation = c["conversation"];
    CAPTURE(file);
    CAPTURE(conversation);
    auto const source = jinja_fixture::read("templates/" + file);
    auto const got = jinja_fixture::render(source, value::from_json(fixture["conversations"][conversation]));
    if (c.contains("expected")) {
      CHECK(got.error == "");
      CHECK(got.text == c["expected"].get<std::string>());
    } else {
      std::string const wanted = c["message"];
      CAPTURE(wanted);
      CHECK(got.error != "");
    }
  }
}

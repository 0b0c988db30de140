// Reads the fixtures that tools/fixtures/jinja_fixtures.py wrote with transformers' own environment, and renders under
// the same clock.
#pragma once

#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

#include "frontend/jinja/jinja.hpp"

namespace jinja_fixture {

inline std::string read(std::string const& name) {
  std::ifstream file{std::string{FERMATA_SOURCE_DIR "/tests/frontend/fixtures/jinja/"} + name, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

inline nlohmann::ordered_json load(std::string const& name) { return nlohmann::ordered_json::parse(read(name)); }

// 2026-07-04 13:05:09.000042, a Saturday.
inline fermata::jinja::render_options options() {
  fermata::jinja::render_options o;
  o.now = [] {
    fermata::jinja::local_time t;
    t.fields.tm_year = 126;
    t.fields.tm_mon = 6;
    t.fields.tm_mday = 4;
    t.fields.tm_hour = 13;
    t.fields.tm_min = 5;
    t.fields.tm_sec = 9;
    t.fields.tm_wday = 6;
    t.fields.tm_yday = 184;
    t.microseconds = 42;
    return t;
  };
  return o;
}

struct outcome {
  std::string text;
  std::string error;
  unsigned line = 0;
  std::vector<fermata::jinja::byte_span> spans;
};

inline outcome render(std::string const& source, fermata::jinja::value const& context) {
  outcome result;
  try {
    auto made = fermata::jinja::program::parse(source).render_with_generation_spans(context, options());
    result.text = std::move(made.text);
    result.spans = std::move(made.generation);
  } catch (fermata::jinja::error const& e) {
    result.error = e.what();
    result.line = e.line();
  }
  return result;
}

}  // namespace jinja_fixture

// json.dumps, as transformers' tojson calls it.
#pragma once

#include <string>

#include "frontend/jinja/runtime.hpp"
#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

struct json_style {
  bool ascii_only = false;
  bool sort_keys = false;
  bool multiline = false;  // indent was given
  std::string indent;      // one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

std::string to_json(runtime& rt, value const& v, json_style const& style);

}  // namespace fermata::jinja

// The `attribute` argument of filters: "name", "a.b.0", an index, or nothing for the item itself.
#pragma once

#include <vector>

#include "frontend/jinja/runtime.hpp"
#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

class attribute_path {
 public:
  // `path` missing or none: the item itself. `fallback` (none and missing: no fallback) stands for undefined parts.
  attribute_path(runtime& rt, value const& path, value fallback = value::missing());
  value of(runtime& rt, value item) const;

 private:
  std::vector<value> parts_;
  value fallback_;
};

// sort's comma separated paths.
std::vector<attribute_path> attribute_paths(runtime& rt, value const& paths);

// Strings in lower case unless `case_sensitive`; other values as they are.
value lowered(runtime& rt, value const& v, bool case_sensitive);

}  // namespace fermata::jinja

// How the inside of the engine reports an error: without a position. The parser and the renderer add line and column and
// turn it into jinja::error.
#pragma once

#include <string>
#include <utility>

#include "frontend/jinja/jinja.hpp"

namespace fermata::jinja {

struct fault {
  error_kind category;
  std::string message;
};

[[noreturn]] inline void fail(std::string message) { throw fault{error_kind::runtime, std::move(message)}; }
[[noreturn]] inline void fail(error_kind category, std::string message) { throw fault{category, std::move(message)}; }

// A fault of the template's text, at a byte of the (normalised) source.
struct syntax_fault {
  std::string message;
  std::size_t at;
};

}  // namespace fermata::jinja

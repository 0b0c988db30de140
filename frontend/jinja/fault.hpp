// How the inside of the engine reports an error: without a position. The parser and the renderer add line and column and
// turn it into jinja::error.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "frontend/jinja/jinja.hpp"

namespace fermata::jinja {

struct fault : std::exception {
  fault(error_kind c, std::string m) : category(c), message(std::move(m)) {}
  char const* what() const noexcept override { return message.c_str(); }
  error_kind category;
  std::string message;
};

[[noreturn]] inline void fail(std::string message) { throw fault{error_kind::runtime, std::move(message)}; }
[[noreturn]] inline void fail(error_kind category, std::string message) { throw fault{category, std::move(message)}; }

// A fault of the template's text, at a byte of the (normalised) source.
struct syntax_fault : std::exception {
  syntax_fault(std::string m, std::size_t a) : message(std::move(m)), at(a) {}
  char const* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::size_t at;
};

}  // namespace fermata::jinja

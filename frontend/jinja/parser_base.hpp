// What the statement parser and the expression parser share: the token stream, errors, the limits on nesting.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/jinja/fault.hpp"
#include "frontend/jinja/lexer.hpp"
#include "frontend/jinja/syntax.hpp"

namespace fermata::jinja {

class parser_base {
 protected:
  // Nested brackets, statements and prefix operators; each costs a dozen stack frames here.
  static constexpr unsigned nesting_depth_max = 120;

  explicit parser_base(std::vector<token> tokens) : tokens_{std::move(tokens)} {}

  token const& current() const noexcept { return tokens_[at_]; }
  token const& look() const noexcept { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  token const& next() noexcept {
    auto const& t = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool is(token_type type) const noexcept { return current().type == type; }
  static bool is_name(token const& t, std::string_view name) noexcept { return t.type == token_type::name && t.text == name; }
  bool is_name(std::string_view name) const noexcept { return is_name(current(), name); }
  bool skip_if(token_type type) {
    if (!is(type)) return false;
    next();
    return true;
  }
  bool skip_if_name(std::string_view name) {
    if (!is_name(name)) return false;
    next();
    return true;
  }
  token const& expect(token_type type) {
    if (!is(type)) refuse("expected " + std::string{describe(type)} + ", got " + shown(current()), current().at);
    return next();
  }
  void expect_name(std::string_view name) {
    if (!is_name(name)) refuse("expected '" + std::string{name} + "', got " + shown(current()), current().at);
    next();
  }
  static std::string shown(token const& t) {
    if (t.type == token_type::name) return "'" + t.text + "'";
    return std::string{describe(t.type)};
  }
  [[noreturn]] static void refuse(std::string message, std::size_t at) { throw syntax_fault{std::move(message), at}; }

  // Gives a finished node its place and height.
  template <class Node>
  std::unique_ptr<Node> made(std::unique_ptr<Node> n, std::size_t at) {
    n->at = static_cast<std::uint32_t>(at);
    unsigned below = 0;
    n->children([&](node& child) { below = std::max<unsigned>(below, child.height); });
    if (below >= height_max) refuse("expression or block is nested too deeply", at);
    n->height = static_cast<std::uint16_t>(below + 1);
    return n;
  }

  class nest {
   public:
    explicit nest(parser_base& of) : of_{of} {
      if (++of_.depth_ > nesting_depth_max) refuse("nested too deeply", of_.current().at);
    }
    ~nest() { --of_.depth_; }
    nest(nest const&) = delete;
    nest& operator=(nest const&) = delete;

   private:
    parser_base& of_;
  };

 private:
  std::vector<token> tokens_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
};

}  // namespace fermata::jinja

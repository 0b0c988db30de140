// Expressions of a template, by precedence:
// if-else < or < and < not < comparisons < + - < ~ < * / // % < ** < unary < postfix < filters and tests.
// (`~` binds tighter than `+`, and a unary minus takes postfixes but no filters, as in Jinja2.)
#pragma once

#include "frontend/jinja/parser_base.hpp"

namespace fermata::jinja {

class expression_parser : public parser_base {
 protected:
  using parser_base::parser_base;

  struct tuple_mode {
    bool simplified = false;  // only primaries, for targets
    bool with_conditional = true;
    std::string_view end_name{};  // a name that ends the tuple
    bool parenthesised = false;
    bool with_namespace = false;
  };
  expression_ptr parse_tuple(tuple_mode mode);
  expression_ptr parse_expression(bool with_conditional = true);
  expression_ptr parse_primary(bool with_namespace = false);
  // Filters behind `subject`; with `start_inline` the first one has no pipe before it.
  expression_ptr parse_filter(expression_ptr subject, bool start_inline = false);
  expression_ptr parse_target(std::string_view end_name, bool with_namespace);
  std::unique_ptr<name_expression> parse_name_target();
  // Turns a parsed expression into a target of assignment.
  void make_target(expression& e, name_use use) const;

 private:
  expression_ptr parse_conditional();
  expression_ptr parse_or();
  expression_ptr parse_and();
  expression_ptr parse_not();
  expression_ptr parse_comparison();
  expression_ptr parse_sum();
  expression_ptr parse_concatenation();
  expression_ptr parse_product();
  expression_ptr parse_power();
  expression_ptr parse_unary(bool with_filters = true);
  expression_ptr parse_postfix(expression_ptr e);
  expression_ptr parse_filter_expression(expression_ptr e);
  expression_ptr parse_subscript(expression_ptr e);
  expression_ptr parse_bracketed(expression_ptr of, std::size_t at);
  expression_ptr parse_test(expression_ptr e);
  expression_ptr parse_list();
  expression_ptr parse_dict();
  expression_ptr parse_name(bool with_namespace);
  expression_ptr parse_call(expression_ptr e);
  void parse_arguments(call_arguments& into);
  std::string dotted_name();
  expression_ptr binary_of(operation op, expression_ptr left, expression_ptr right, std::size_t at);
};


}  // namespace fermata::jinja

// The tree of a template, and how it is bound to variables.
//
// Life of a node: the parser makes it; `bind` resolves names to slots and filters and tests to functions (once, still
// single-threaded); from then on the tree is constant and `evaluate` / `execute` only read it.
//
// Trees are at most `height_max` high (the parser sees to it), so recursion over one is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/jinja/scope.hpp"
#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

class runtime;
struct activation;
struct arguments;

inline constexpr unsigned height_max = 200;

struct node {
  std::uint32_t at = 0;  // byte of the source, for error messages
  std::uint16_t height = 1;
  virtual ~node() = default;
  using visitor = std::function<void(node&)>;
  virtual void children(visitor const&) {}
  // Which names a frame that contains this node reads and writes (Jinja2's FrameSymbolVisitor).
  virtual void collect(symbols& into) {
    children([&](node& child) { child.collect(into); });
  }
  virtual void bind(frame& in) {
    children([&](node& child) { child.bind(in); });
  }
};

struct expression : node {
  // The value; counts a step and a level of depth.
  value eval(runtime& rt) const;

 protected:
  virtual value evaluate(runtime& rt) const = 0;
};

enum class flow : unsigned char { normal, break_loop, continue_loop };

struct statement : node {
  flow run(runtime& rt) const;

 protected:
  virtual flow execute(runtime& rt) const = 0;
};

using expression_ptr = std::unique_ptr<expression>;
using body = std::vector<std::unique_ptr<statement>>;

inline void visit(expression_ptr const& child, node::visitor const& f) {
  if (child) f(*child);
}
inline void visit(std::vector<expression_ptr> const& children, node::visitor const& f) {
  for (auto const& child : children) visit(child, f);
}
inline void visit(body const& children, node::visitor const& f) {
  for (auto const& child : children) f(*child);
}
flow run(body const& statements, runtime& rt);

// ---- expressions

struct constant final : expression {
  value literal;
  value evaluate(runtime&) const override { return literal; }
};

enum class name_use : unsigned char { load, store, parameter };

struct name_expression final : expression {
  std::string name;
  name_use use = name_use::load;
  variable where;
  value shared_name;  // the name as a value, for undefined values
  void collect(symbols& into) override;
  void bind(frame& in) override;
  value evaluate(runtime& rt) const override;
};

// `ns.attr` as a target of set.
struct namespace_reference final : expression {
  std::string name;
  std::string attribute;
  variable where;
  void collect(symbols& into) override;
  void bind(frame& in) override;
  value evaluate(runtime& rt) const override;
};

struct list_literal final : expression {
  std::vector<expression_ptr> items;
  void children(visitor const& f) override { visit(items, f); }
  value evaluate(runtime& rt) const override;
};

struct tuple_literal final : expression {
  std::vector<expression_ptr> items;
  void children(visitor const& f) override { visit(items, f); }
  value evaluate(runtime& rt) const override;
};

struct dict_literal final : expression {
  std::vector<std::pair<expression_ptr, expression_ptr>> entries;
  void children(visitor const& f) override;
  value evaluate(runtime& rt) const override;
};

enum class operation : unsigned char { add, sub, mul, div, floordiv, mod, pow, neg, pos, negate, eq, ne, lt, lteq, gt, gteq, in, not_in };

struct unary final : expression {
  operation op{};
  expression_ptr operand;
  void children(visitor const& f) override { visit(operand, f); }
  value evaluate(runtime& rt) const override;
};

struct binary final : expression {
  operation op{};
  expression_ptr left, right;
  void children(visitor const& f) override;
  value evaluate(runtime& rt) const override;
};

struct logical final : expression {
  bool is_and = false;
  expression_ptr left, right;
  void children(visitor const& f) override;
  value evaluate(runtime& rt) const override;
};

struct concatenation final : expression {
  std::vector<expression_ptr> parts;
  void children(visitor const& f) override { visit(parts, f); }
  value evaluate(runtime& rt) const override;

 private:
  value join_escaped(runtime& rt, std::vector<value> const& values) const;
};

struct comparison final : expression {
  expression_ptr first;
  std::vector<std::pair<operation, expression_ptr>> rest;
  void children(visitor const& f) override;
  value evaluate(runtime& rt) const override;
};

struct conditional final : expression {
  expression_ptr test, then, otherwise;  // otherwise may be null: undefined
  void children(visitor const& f) override;
  void bind(frame& in) override;
  value evaluate(runtime& rt) const override;
};

struct attribute final : expression {
  expression_ptr of;
  value name;
  void children(visitor const& f) override { visit(of, f); }
  value evaluate(runtime& rt) const override;
};

struct subscript final : expression {
  expression_ptr of, key;
  void children(visitor const& f) override;
  value evaluate(runtime& rt) const override;
};

struct slice final : expression {
  expression_ptr of, start, stop, step;  // bounds may be null
  void children(visitor const& f) override;
  value evaluate(runtime& rt) const override;
};

struct call_arguments {
  std::vector<expression_ptr> positional;
  std::vector<std::pair<std::string, expression_ptr>> named;
  expression_ptr star, star_star;
  void children(node::visitor const& f);
  void evaluate(runtime& rt, arguments& into) const;
};

struct call final : expression {
  expression_ptr callee;
  attribute const* member = nullptr;  // the callee when it is `object.name`
  call_arguments args;
  void children(visitor const& f) override;
  value evaluate(runtime& rt) const override { return invoke(rt, nullptr); }
  value invoke(runtime& rt, value const* caller) const;
};

struct builtin;

struct filter final : expression {
  expression_ptr subject;  // null inside {% filter %} and {% set %} blocks: the captured text
  std::string name;
  call_arguments args;
  builtin const* function = nullptr;
  void children(visitor const& f) override;
  void bind(frame& in) override;
  value evaluate(runtime& rt) const override;
  value apply(runtime& rt, value subject_value) const;
};

struct test final : expression {
  expression_ptr subject;
  std::string name;
  call_arguments args;
  builtin const* function = nullptr;
  void children(visitor const& f) override;
  void bind(frame& in) override;
  value evaluate(runtime& rt) const override;
};

// ---- statements

struct text_statement final : statement {
  std::string data;
  flow execute(runtime& rt) const override;
};

struct print_statement final : statement {
  expression_ptr printed;
  void children(visitor const& f) override { visit(printed, f); }
  flow execute(runtime& rt) const override;
};

struct set_statement final : statement {
  expression_ptr target, assigned;
  export_plan exports;
  void children(visitor const& f) override;
  void collect(symbols& into) override;
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

struct set_block final : statement {
  expression_ptr target;
  std::unique_ptr<expression> filtered;  // chain of filters whose innermost has no subject, or null
  body content;
  frame_plan plan;
  export_plan exports;
  void children(visitor const& f) override;
  void collect(symbols& into) override { target->collect(into); }
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

struct if_statement final : statement {
  std::vector<std::pair<expression_ptr, body>> branches;  // if, elif...
  body otherwise;
  void children(visitor const& f) override;
  void collect(symbols& into) override;
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

struct for_statement final : statement {
  expression_ptr target, iterated, condition;  // condition may be null
  expression_ptr condition_target;             // the same target, bound in the frame of the condition
  body content, otherwise;
  bool recursive = false;
  bool uses_loop = false;
  variable loop_variable;
  frame_plan loop_plan, condition_plan, else_plan;
  function_plan function;  // of a recursive loop
  void children(visitor const& f) override;
  void collect(symbols& into) override { iterated->collect(into); }
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
  // One pass over `over`, in the current activation; `around` is the one outside of a recursive loop.
  flow iterate(runtime& rt, value const& over, unsigned depth0, activation* around) const;
  // The text of a recursive loop over `over`, in an activation of its own.
  std::string render_recursive(runtime& rt, value const& over, unsigned depth0, activation* around) const;
};

struct loop_control final : statement {
  bool is_break = false;
  flow execute(runtime&) const override { return is_break ? flow::break_loop : flow::continue_loop; }
};

// What a macro and a call block share: parameters and a body that runs in an activation of its own.
struct macro_definition {
  std::string name;  // empty: a call block
  std::vector<std::unique_ptr<name_expression>> parameters;
  std::vector<expression_ptr> defaults;  // of the last parameters
  body content;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false, explicit_caller = false;
  variable caller, kwargs, varargs;
  frame_plan plan;
  function_plan function;
  std::uint32_t at = 0;
  void children(node::visitor const& f);
  void bind(frame& in);
};

struct macro_statement final : statement {
  macro_definition macro;
  variable where;
  export_plan exports;
  void children(visitor const& f) override { macro.children(f); }
  void collect(symbols& into) override;
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

struct call_block final : statement {
  std::unique_ptr<call> called;
  macro_definition caller;
  void children(visitor const& f) override;
  void collect(symbols& into) override { called->collect(into); }
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

// {% generation %}: a call block whose output is marked.
struct generation_block final : statement {
  macro_definition caller;
  void children(visitor const& f) override { caller.children(f); }
  void collect(symbols&) override {}
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

struct filter_block final : statement {
  std::unique_ptr<expression> filtered;
  body content;
  frame_plan plan;
  void children(visitor const& f) override;
  void collect(symbols& into) override { filtered->collect(into); }
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

struct with_statement final : statement {
  std::vector<expression_ptr> targets, values;
  body content;
  frame_plan plan;
  void children(visitor const& f) override;
  void collect(symbols& into) override;
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

struct autoescape_statement final : statement {
  expression_ptr enabled;
  body content;
  frame_plan plan;
  void children(visitor const& f) override;
  void collect(symbols&) override {}
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

struct block_statement final : statement {
  std::string name;
  bool scoped = false;
  bool required = false;
  body content;
  frame_plan plan;
  function_plan function;
  std::vector<std::pair<std::string, variable>> handed_down;  // local variables a scoped block sees
  void children(visitor const& f) override { visit(content, f); }
  void collect(symbols&) override {}
  void bind(frame& in) override;
  flow execute(runtime& rt) const override;
};

// include, import, from, extends: there is nothing to load from.
struct loading_statement final : statement {
  std::string tag;
  flow execute(runtime& rt) const override;
};

// A parsed template.
struct tree {
  std::string source;
  body content;
  frame_plan plan;
  function_plan function;
  std::vector<std::string> globals;    // names looked up in the context when a rendering starts
  std::vector<std::string> variables;  // the same without what the environment itself defines, sorted
  bool has_blocks = false;
};

}  // namespace fermata::jinja

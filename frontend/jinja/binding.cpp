// Binding: every statement says which frames it opens and binds its parts in the right one. The counterpart of what
// jinja2/compiler.py does with frames; the order of `children` is Jinja2's order of fields, which decides whether a name is
// first read or first written.
#include <algorithm>
#include <iterator>

#include "frontend/jinja/builtins.hpp"
#include "frontend/jinja/fault.hpp"
#include "frontend/jinja/parser.hpp"
#include "frontend/jinja/syntax.hpp"

namespace fermata::jinja {
namespace {

void collect_all(body const& statements, symbols& into) {
  for (auto const& s : statements) s->collect(into);
}
void bind_all(body const& statements, frame& in) {
  for (auto const& s : statements) s->bind(in);
}

// Takes out of `wanted` the names that are written before they are read, moves those that are read into `found`.
void find_undeclared(node& n, std::set<std::string>& wanted, std::set<std::string>& found) {
  if (auto const* name = dynamic_cast<name_expression const*>(&n)) {
    if (!wanted.count(name->name)) return;
    if (name->use == name_use::load)
      found.insert(name->name);
    else
      wanted.erase(name->name);
    return;
  }
  if (dynamic_cast<block_statement const*>(&n)) return;
  n.children([&](node& child) { find_undeclared(child, wanted, found); });
}

std::set<std::string> undeclared(body const& statements, std::set<std::string> wanted) {
  std::set<std::string> found;
  for (auto const& s : statements) find_undeclared(*s, wanted, found);
  return found;
}

// Binds a target and notes which names a top-level frame exports by it.
export_plan bind_target(expression& target, frame& in) {
  std::set<std::string> assigned;
  auto* const outer = std::exchange(in.assigned, &assigned);
  target.bind(in);
  in.assigned = outer;
  export_plan plan;
  if (in.top_level)
    for (auto const& name : assigned) plan.names.emplace_back(name, in.find(name));
  return plan;
}

}  // namespace

// ---- expressions

void name_expression::collect(symbols& into) {
  if (use == name_use::parameter)
    into.declare_parameter(name);
  else if (use == name_use::store)
    into.store(name);
  else
    into.load(name);
}

void name_expression::bind(frame& in) {
  if (!in.names->find(name)) throw syntax_fault{"'" + name + "' cannot be used here", at};
  where = in.find(name);
  shared_name = value{name};
  if (use == name_use::store && in.assigned) in.assigned->insert(name);
}

void namespace_reference::collect(symbols& into) { into.load(name); }
void namespace_reference::bind(frame& in) { where = in.find(name); }

void dict_literal::children(visitor const& f) {
  for (auto const& [key, item] : entries) {
    visit(key, f);
    visit(item, f);
  }
}
void binary::children(visitor const& f) {
  visit(left, f);
  visit(right, f);
}
void logical::children(visitor const& f) {
  visit(left, f);
  visit(right, f);
}
void comparison::children(visitor const& f) {
  visit(first, f);
  for (auto const& [op, operand] : rest) visit(operand, f);
}
void conditional::children(visitor const& f) {
  visit(test, f);
  visit(then, f);
  visit(otherwise, f);
}
void conditional::bind(frame& in) {
  auto soft = in.softened();
  node::bind(soft);
}
void subscript::children(visitor const& f) {
  visit(of, f);
  visit(key, f);
}
void slice::children(visitor const& f) {
  visit(of, f);
  visit(start, f);
  visit(stop, f);
  visit(step, f);
}
void call_arguments::children(node::visitor const& f) {
  visit(positional, f);
  for (auto const& [name, argument] : named) visit(argument, f);
  visit(star, f);
  visit(star_star, f);
}
void call::children(visitor const& f) {
  visit(callee, f);
  args.children(f);
}
void filter::children(visitor const& f) {
  visit(subject, f);
  args.children(f);
}
void filter::bind(frame& in) {
  function = find_filter(name);
  if (!function && !in.soft) throw syntax_fault{"unknown filter '" + name + "'", at};
  node::bind(in);
}
void test::children(visitor const& f) {
  visit(subject, f);
  args.children(f);
}
void test::bind(frame& in) {
  function = find_test(name);
  if (!function && !in.soft) throw syntax_fault{"unknown test '" + name + "'", at};
  node::bind(in);
}

// ---- statements

void set_statement::children(visitor const& f) {
  visit(target, f);
  visit(assigned, f);
}
void set_statement::collect(symbols& into) {
  assigned->collect(into);
  target->collect(into);
}
void set_statement::bind(frame& in) {
  exports = bind_target(*target, in);
  assigned->bind(in);
}

void set_block::children(visitor const& f) {
  visit(target, f);
  visit(filtered, f);
  visit(content, f);
}
void set_block::bind(frame& in) {
  auto inner = in.inner();
  collect_all(content, *inner.names);
  bind_all(content, inner);
  if (filtered) filtered->bind(inner);
  exports = bind_target(*target, in);
  plan = inner.plan();
}

void if_statement::children(visitor const& f) {
  for (auto const& [condition, content] : branches) {
    visit(condition, f);
    visit(content, f);
  }
  visit(otherwise, f);
}

// The first branch is read after its test; all elif parts together are one branch that starts with the names before them.
void if_statement::collect(symbols& into) {
  branches.front().first->collect(into);
  std::vector<symbols> made{into.branch(), into.branch(), into.branch()};
  collect_all(branches.front().second, made[0]);
  for (std::size_t i = 1; i < branches.size(); ++i) {
    branches[i].first->collect(made[1]);
    auto inner = made[1].branch();
    collect_all(branches[i].second, inner);
    made[1].merge({inner});
  }
  collect_all(otherwise, made[2]);
  into.merge(made);
}

void if_statement::bind(frame& in) {
  auto soft = in.softened();
  soft.assigned = nullptr;
  for (auto const& [condition, content] : branches) {
    condition->bind(soft);
    bind_all(content, soft);
  }
  bind_all(otherwise, soft);
}

void for_statement::children(visitor const& f) {
  visit(target, f);
  visit(iterated, f);
  visit(content, f);
  visit(otherwise, f);
  visit(condition, f);
}

void for_statement::bind(frame& in) {
  auto loop_frame = recursive ? in.inner_function(false) : in.inner();
  auto const sibling = [&] {
    auto f = in.inner();
    f.names->function = loop_frame.names->function;
    return f;
  };
  auto condition_frame = sibling();
  auto else_frame = sibling();
  loop_frame.in_loop = true;
  uses_loop = recursive || !undeclared(content, {"loop"}).empty();
  if (uses_loop) loop_frame.names->declare_parameter("loop");
  auto const declare = [](expression& t, symbols& s) {
    auto const each = [&](auto const& self, node& n) -> void {
      if (auto const* name = dynamic_cast<name_expression const*>(&n)) s.declare_parameter(name->name);
      n.children([&](node& child) { self(self, child); });
    };
    each(each, t);
  };
  declare(*target, *loop_frame.names);
  collect_all(content, *loop_frame.names);
  collect_all(otherwise, *else_frame.names);
  if (condition) {
    declare(*condition_target, *condition_frame.names);
    condition->collect(*condition_frame.names);
    condition_target->bind(condition_frame);
    condition->bind(condition_frame);
  }
  iterated->bind(in);
  target->bind(loop_frame);
  if (uses_loop) loop_variable = loop_frame.find("loop");
  bind_all(content, loop_frame);
  bind_all(otherwise, else_frame);
  loop_plan = loop_frame.plan();
  condition_plan = condition_frame.plan();
  else_plan = else_frame.plan();
  function = loop_frame.function();
}

void macro_definition::children(node::visitor const& f) {
  for (auto const& p : parameters) f(*p);
  visit(defaults, f);
  visit(content, f);
}

void macro_definition::bind(frame& in) {
  auto inner = in.inner_function(false);
  for (auto const& p : parameters) p->collect(*inner.names);
  auto const has = [&](char const* n) {
    return std::any_of(parameters.begin(), parameters.end(), [&](auto const& p) { return p->name == n; });
  };
  auto const used = undeclared(content, {"caller", "kwargs", "varargs"});
  explicit_caller = has("caller");
  if (used.count("caller")) {
    uses_caller = true;
    auto const position = std::find_if(parameters.begin(), parameters.end(), [](auto const& p) { return p->name == "caller"; });
    if (explicit_caller && position - parameters.begin() < static_cast<std::ptrdiff_t>(parameters.size() - defaults.size()))
      throw syntax_fault{"the parameter 'caller' of a macro needs a default", at};
  }
  uses_kwargs = used.count("kwargs") && !has("kwargs");
  uses_varargs = used.count("varargs") && !has("varargs");
  for (auto const& d : defaults) d->collect(*inner.names);
  collect_all(content, *inner.names);
  if (uses_caller && !explicit_caller) inner.names->declare_parameter("caller");
  if (uses_kwargs) inner.names->declare_parameter("kwargs");
  if (uses_varargs) inner.names->declare_parameter("varargs");
  for (auto const& p : parameters) p->bind(inner);
  for (auto const& d : defaults) d->bind(inner);
  bind_all(content, inner);
  if (uses_caller) caller = inner.find("caller");
  if (uses_kwargs) kwargs = inner.find("kwargs");
  if (uses_varargs) varargs = inner.find("varargs");
  plan = inner.plan();
  function = inner.function();
}

void macro_statement::collect(symbols& into) { into.store(macro.name); }
void macro_statement::bind(frame& in) {
  macro.bind(in);
  where = in.find(macro.name);
  if (in.top_level) exports.names.emplace_back(macro.name, where);
}

void call_block::children(visitor const& f) {
  f(*called);
  caller.children(f);
}
void call_block::bind(frame& in) {
  caller.bind(in);
  called->bind(in);
}
void generation_block::bind(frame& in) { caller.bind(in); }

void filter_block::children(visitor const& f) {
  visit(content, f);
  visit(filtered, f);
}
void filter_block::bind(frame& in) {
  auto inner = in.inner();
  collect_all(content, *inner.names);
  filtered->collect(*inner.names);
  bind_all(content, inner);
  filtered->bind(inner);
  plan = inner.plan();
}

void with_statement::children(visitor const& f) {
  visit(targets, f);
  visit(values, f);
  visit(content, f);
}
void with_statement::collect(symbols& into) {
  for (auto const& v : values) v->collect(into);
}
void with_statement::bind(frame& in) {
  auto inner = in.inner();
  for (auto const& t : targets) t->collect(*inner.names);
  collect_all(content, *inner.names);
  for (auto const& t : targets) t->bind(inner);
  for (auto const& v : values) v->bind(in);
  bind_all(content, inner);
  plan = inner.plan();
}

void autoescape_statement::children(visitor const& f) {
  visit(enabled, f);
  visit(content, f);
}
void autoescape_statement::bind(frame& in) {
  auto inner = in.inner();
  enabled->collect(*inner.names);
  collect_all(content, *inner.names);
  enabled->bind(inner);
  bind_all(content, inner);
  plan = inner.plan();
}

void block_statement::bind(frame& in) {
  if (!in.shared->block_names.insert(name).second) throw syntax_fault{"block '" + name + "' is defined twice", at};
  if (scoped) {
    std::set<std::string> stored;
    for (auto const* s = in.names; s; s = s->parent) stored.insert(s->stores.begin(), s->stores.end());
    for (auto const& n : stored) handed_down.emplace_back(n, in.find(n));
  }
  auto inner = in.inner_function(true);
  collect_all(content, *inner.names);
  bind_all(content, inner);
  plan = inner.plan();
  function = inner.function();
}

// ---- the template

void bind_tree(tree& t) {
  binder shared;
  auto& function = shared.make_function(nullptr, false);
  frame top;
  top.shared = &shared;
  top.names = &shared.make_symbols(nullptr, &function);
  top.top_level = true;
  collect_all(t.content, *top.names);
  bind_all(t.content, top);
  t.plan = top.plan();
  t.function = top.function();
  t.globals = shared.take_globals();
  for (auto const& name : t.globals)
    if (!is_environment_name(name)) t.variables.push_back(name);
  std::sort(t.variables.begin(), t.variables.end());
}

}  // namespace fermata::jinja

// Evaluation of expressions. A node evaluates its parts, notes its own place, and only then does what may fail.
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/runtime.hpp"
#include "frontend/jinja/syntax.hpp"

namespace fermata::jinja {
namespace {

std::vector<value> evaluate_all(std::vector<expression_ptr> const& parts, runtime& rt) {
  std::vector<value> out;
  out.reserve(parts.size());
  for (auto const& p : parts) out.push_back(p->eval(rt));
  return out;
}

value evaluate_bound(expression_ptr const& e, runtime& rt) { return e ? e->eval(rt) : value::missing(); }

bool compare(runtime& rt, operation op, value const& a, value const& b) {
  switch (op) {
    case operation::eq: return equal(rt, a, b);
    case operation::ne: return !equal(rt, a, b);
    case operation::in: return contains(rt, b, a);
    case operation::not_in: return !contains(rt, b, a);
    default: return ordered(rt, op, a, b);
  }
}

}  // namespace

value expression::eval(runtime& rt) const {
  rt.step();
  runtime::deeper const guard{rt};
  return evaluate(rt);
}

value name_expression::evaluate(runtime& rt) const {
  value const& v = rt.read(where);
  if (v.is_missing()) return undefined_name(shared_name);
  return v;
}

value namespace_reference::evaluate(runtime& rt) const { return rt.read(where); }

value list_literal::evaluate(runtime& rt) const { return rt.make_list(evaluate_all(items, rt)); }
value tuple_literal::evaluate(runtime& rt) const { return rt.make_tuple(evaluate_all(items, rt)); }

value dict_literal::evaluate(runtime& rt) const {
  std::vector<value::pair> made;
  made.reserve(entries.size());
  for (auto const& [key, item] : entries) {
    value k = key->eval(rt);
    made.emplace_back(std::move(k), item->eval(rt));
  }
  rt.at = at;
  return rt.make_dict(std::move(made));
}

value unary::evaluate(runtime& rt) const {
  value const v = operand->eval(rt);
  rt.at = at;
  if (op == operation::negate) return value{!truth(v)};
  return op == operation::neg ? negated(v) : positive(v);
}

value binary::evaluate(runtime& rt) const {
  value const a = left->eval(rt);
  value const b = right->eval(rt);
  rt.at = at;
  return arithmetic(rt, op, a, b);
}

value logical::evaluate(runtime& rt) const {
  value v = left->eval(rt);
  if (truth(v) != is_and) return v;
  return right->eval(rt);
}

value concatenation::evaluate(runtime& rt) const {
  std::vector<value> const values = evaluate_all(parts, rt);
  rt.at = at;
  if (rt.autoescape)
    for (auto const& v : values)
      if (v.is_markup()) return join_escaped(rt, values);
  std::string joined;
  for (auto const& v : values) {
    if (v.is_string()) rt.allocate(v.text().size());
    append_text(rt, joined, v);
  }
  return rt.make_text(std::move(joined));
}

// Under autoescape one markup part makes the whole markup; the other parts are escaped.
value concatenation::join_escaped(runtime& rt, std::vector<value> const& values) const {
  std::string joined;
  for (auto const& v : values) joined += escaped(rt, v).text();
  rt.allocate(joined.size());
  return value::markup(std::move(joined));
}

value comparison::evaluate(runtime& rt) const {
  value a = first->eval(rt);
  for (auto const& [op, operand] : rest) {
    value b = operand->eval(rt);
    rt.at = at;
    if (!compare(rt, op, a, b)) return value{false};
    a = std::move(b);
  }
  return value{true};
}

value conditional::evaluate(runtime& rt) const {
  value const condition = test->eval(rt);
  if (truth(condition)) return then->eval(rt);
  if (otherwise) return otherwise->eval(rt);
  return undefined_hint("the inline if-expression evaluated to false and has no else");
}

value attribute::evaluate(runtime& rt) const {
  value const object = of->eval(rt);
  rt.at = at;
  return get_attribute(rt, object, name);
}

value subscript::evaluate(runtime& rt) const {
  value const object = of->eval(rt);
  value const k = key->eval(rt);
  rt.at = at;
  return get_item(rt, object, k);
}

value slice::evaluate(runtime& rt) const {
  value const object = of->eval(rt);
  value const from = evaluate_bound(start, rt);
  value const to = evaluate_bound(stop, rt);
  value const by = evaluate_bound(step, rt);
  rt.at = at;
  return get_slice(rt, object, from, to, by);
}

void call_arguments::evaluate(runtime& rt, arguments& into) const {
  into.positional.reserve(positional.size());
  for (auto const& p : positional) into.positional.push_back(p->eval(rt));
  for (auto const& [name, argument] : named) into.named.emplace_back(name, argument->eval(rt));
  if (star) {
    value const list = star->eval(rt);
    for (auto& item : to_items(rt, list)) into.positional.push_back(std::move(item));
  }
  if (!star_star) return;
  value const dict = star_star->eval(rt);
  if (!dict.is_dict()) fail(std::string{"argument after ** must be a mapping, not "} + type_name(dict));
  for (auto const& [key, item] : dict.entries()) {
    if (!key.is_string()) fail("names of arguments must be strings");
    rt.step(into.named.size() / 8);
    for (auto const& [name, argument] : into.named)
      if (name == key.text()) fail("argument '" + name + "' is given twice");
    into.named.emplace_back(key.text(), item);
  }
}

value call::invoke(runtime& rt, value const* caller) const {
  arguments given;
  // A method is called without making a function value for it first.
  if (member) {
    value const object = member->of->eval(rt);
    if (auto const* method = find_method(object, member->name.text()); method && !method->mutates) {
      args.evaluate(rt, given);
      if (caller) given.named.emplace_back("caller", *caller);
      rt.at = at;
      return method->invoke(rt, object, given);
    }
    rt.at = member->at;
    value const function = get_attribute(rt, object, member->name);
    args.evaluate(rt, given);
    if (caller) given.named.emplace_back("caller", *caller);
    rt.at = at;
    return call_value(rt, function, given);
  }
  value const function = callee->eval(rt);
  args.evaluate(rt, given);
  if (caller) given.named.emplace_back("caller", *caller);
  rt.at = at;
  return call_value(rt, function, given);
}

value filter::apply(runtime& rt, value subject_value) const {
  if (!function) {
    rt.at = at;
    fail("unknown filter '" + name + "'");
  }
  arguments given;
  args.evaluate(rt, given);
  rt.at = at;
  return function->invoke(rt, subject_value, given);
}

value filter::evaluate(runtime& rt) const {
  return apply(rt, subject ? subject->eval(rt) : rt.filter_subject);
}

value test::evaluate(runtime& rt) const {
  value const v = subject->eval(rt);
  if (!function) {
    rt.at = at;
    fail("unknown test '" + name + "'");
  }
  arguments given;
  args.evaluate(rt, given);
  rt.at = at;
  return function->invoke(rt, v, given);
}

}  // namespace fermata::jinja

// Execution of statements.
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/runtime.hpp"
#include "frontend/jinja/syntax.hpp"

namespace fermata::jinja {
namespace {

void check_namespaces(runtime& rt, expression const& target) {
  if (auto const* tuple = dynamic_cast<tuple_literal const*>(&target)) {
    for (auto const& item : tuple->items) check_namespaces(rt, *item);
  } else if (auto const* reference = dynamic_cast<namespace_reference const*>(&target)) {
    value const& v = rt.read(reference->where);
    if (v.is_object() && dynamic_cast<name_space*>(&v.as_object())) return;
    rt.at = reference->at;
    fail("cannot set an attribute of '" + reference->name + "': it is not a namespace");
  }
}

void assign(runtime& rt, expression const& target, value v) {
  if (auto const* name = dynamic_cast<name_expression const*>(&target)) {
    rt.slot(name->where) = std::move(v);
    return;
  }
  if (auto const* reference = dynamic_cast<namespace_reference const*>(&target)) {
    value const ns = rt.read(reference->where);
    auto* const space = ns.is_object() ? dynamic_cast<name_space*>(&ns.as_object()) : nullptr;
    if (!space) fail("cannot set an attribute of '" + reference->name + "': it is not a namespace");
    space->set(rt, reference->attribute, std::move(v));
    return;
  }
  auto const& items = static_cast<tuple_literal const&>(target).items;
  cursor parts{rt, v};
  std::vector<value> unpacked;
  value part;
  while (parts.next(part)) {
    if (unpacked.size() == items.size()) fail("too many values to unpack (expected " + std::to_string(items.size()) + ")");
    unpacked.push_back(std::move(part));
  }
  if (unpacked.size() < items.size())
    fail("not enough values to unpack (expected " + std::to_string(items.size()) + ", got " + std::to_string(unpacked.size()) + ")");
  for (std::size_t i = 0; i < items.size(); ++i) assign(rt, *items[i], std::move(unpacked[i]));
}

value macro_of(runtime& rt, macro_definition const& definition) {
  rt.keep(rt.current());
  return make_object<macro_object>(rt, definition, rt.current());
}

value filtered_text(runtime& rt, expression const* chain, std::string text) {
  value v = rt.captured(std::move(text));
  if (!chain) return v;
  value const outer = std::exchange(rt.filter_subject, std::move(v));
  value result = chain->eval(rt);
  rt.filter_subject = outer;
  return result;
}

// The elements of a loop that pass its condition, tested one at a time and only when asked for.
class filtered_items final : public iterator {
 public:
  filtered_items(runtime& rt, for_statement const& loop, value over) : loop_{loop}, source_{rt, over} {
    depth = nesting_above(nesting(over));
  }
  bool next(runtime& rt, value& out) override {
    if (!entered_) rt.enter(loop_.condition_plan);
    entered_ = true;
    while (source_.next(out)) {
      rt.step();
      assign(rt, *loop_.condition_target, out);
      value const keep = loop_.condition->eval(rt);
      if (truth(keep)) return true;
    }
    rt.leave(loop_.condition_plan);
    return false;
  }

 private:
  for_statement const& loop_;
  cursor source_;
  bool entered_ = false;
};

}  // namespace

flow statement::run(runtime& rt) const {
  rt.step();
  runtime::deeper const guard{rt};
  return execute(rt);
}

flow run(body const& statements, runtime& rt) {
  for (auto const& s : statements)
    if (auto const f = s->run(rt); f != flow::normal) return f;
  return flow::normal;
}

flow text_statement::execute(runtime& rt) const {
  rt.at = at;
  rt.write(data);
  return flow::normal;
}

flow print_statement::execute(runtime& rt) const {
  value const v = printed->eval(rt);
  rt.at = at;
  if (rt.autoescape)
    rt.write(escaped(rt, v).text());
  else if (v.is_string())
    rt.write(v.text());
  else
    rt.write(to_text(rt, v));
  return flow::normal;
}

flow set_statement::execute(runtime& rt) const {
  check_namespaces(rt, *target);
  value v = assigned->eval(rt);
  rt.at = at;
  assign(rt, *target, std::move(v));
  rt.export_names(exports);
  return flow::normal;
}

flow set_block::execute(runtime& rt) const {
  rt.enter(plan);
  std::string text;
  {
    runtime::capture captured{rt};
    if (auto const f = jinja::run(content, rt); f != flow::normal) return f;
    text = captured.take();
  }
  value v = filtered_text(rt, filtered.get(), std::move(text));
  if (rt.autoescape && filtered) v = value::markup(to_text(rt, v));
  rt.at = at;
  assign(rt, *target, std::move(v));
  rt.export_names(exports);
  rt.leave(plan);
  return flow::normal;
}

flow if_statement::execute(runtime& rt) const {
  for (auto const& [condition, content] : branches) {
    value const v = condition->eval(rt);
    if (truth(v)) return jinja::run(content, rt);
  }
  return jinja::run(otherwise, rt);
}

flow for_statement::execute(runtime& rt) const {
  value const over = iterated->eval(rt);
  rt.at = iterated->at;
  if (!recursive) return iterate(rt, over, 0, nullptr);
  rt.keep(rt.current());
  rt.write(render_recursive(rt, over, 0, rt.current()));
  return flow::normal;
}

std::string for_statement::render_recursive(runtime& rt, value const& over, unsigned depth0, activation* around) const {
  runtime::deeper const guard{rt};
  shared_part<activation> const own{new activation{around, function.slots}};
  runtime::scope const here{rt, own.get()};
  runtime::capture captured{rt};
  iterate(rt, over, depth0, around);
  return captured.take();
}

flow for_statement::iterate(runtime& rt, value const& over, unsigned depth0, activation* around) const {
  value const items = condition ? make_object<filtered_items>(rt, rt, *this, over) : over;
  bool none = true;  // as in Jinja2, until a turn gets to its end without break or continue
  if (uses_loop) {
    value const loop = make_object<loop_object>(rt, rt, items, depth0, recursive ? this : nullptr, around);
    auto& state = static_cast<loop_object&>(loop.as_object());
    value item;
    while (state.advance(item)) {
      rt.step();
      rt.enter(loop_plan);
      rt.slot(loop_variable) = loop;
      assign(rt, *target, std::move(item));
      auto const f = jinja::run(content, rt);
      if (f == flow::break_loop) break;
      if (f == flow::normal) none = false;
    }
    state.finish();
  } else {
    cursor each{rt, items};
    value item;
    while (each.next(item)) {
      rt.step();
      rt.enter(loop_plan);
      assign(rt, *target, std::move(item));
      auto const f = jinja::run(content, rt);
      if (f == flow::break_loop) break;
      if (f == flow::normal) none = false;
    }
  }
  rt.leave(loop_plan);
  if (!none || otherwise.empty()) return flow::normal;
  rt.enter(else_plan);
  auto const f = jinja::run(otherwise, rt);
  rt.leave(else_plan);
  return f;
}

flow macro_statement::execute(runtime& rt) const {
  rt.slot(where) = macro_of(rt, macro);
  rt.export_names(exports);
  return flow::normal;
}

flow call_block::execute(runtime& rt) const {
  value const body_macro = macro_of(rt, caller);
  value const v = called->invoke(rt, &body_macro);
  rt.at = at;
  rt.write(rt.autoescape ? escaped(rt, v).text() : to_text(rt, v));
  return flow::normal;
}

flow generation_block::execute(runtime& rt) const {
  value const body_macro = macro_of(rt, caller);
  arguments none;
  value const v = call_value(rt, body_macro, none);
  std::size_t const begin = rt.written();
  rt.write(v.text());
  rt.mark_generation(begin, begin + v.text().size());
  return flow::normal;
}

flow filter_block::execute(runtime& rt) const {
  rt.enter(plan);
  std::string text;
  {
    runtime::capture captured{rt};
    if (auto const f = jinja::run(content, rt); f != flow::normal) return f;
    text = captured.take();
  }
  value const v = filtered_text(rt, filtered.get(), std::move(text));
  rt.write(rt.autoescape ? escaped(rt, v).text() : to_text(rt, v));
  rt.leave(plan);
  return flow::normal;
}

flow with_statement::execute(runtime& rt) const {
  rt.enter(plan);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    value v = values[i]->eval(rt);
    rt.at = targets[i]->at;
    assign(rt, *targets[i], std::move(v));
  }
  auto const f = jinja::run(content, rt);
  rt.leave(plan);
  return f;
}

flow autoescape_statement::execute(runtime& rt) const {
  rt.enter(plan);
  value const on = enabled->eval(rt);
  bool const before = std::exchange(rt.autoescape, truth(on));
  auto const f = jinja::run(content, rt);
  rt.autoescape = before;
  rt.leave(plan);
  return f;
}

flow block_statement::execute(runtime& rt) const {
  rt.at = at;
  if (required) fail("the required block '" + name + "' is not filled in");
  std::map<std::string, value, std::less<>> handed;
  for (auto const& [name, where] : handed_down)
    if (value const& v = rt.read(where); !v.is_missing()) handed.emplace(name, v);
  rt.block_scopes.push_back(std::move(handed));
  shared_part<activation> const own{new activation{nullptr, function.slots}};
  runtime::scope const here{rt, own.get()};
  rt.enter(plan);
  jinja::run(content, rt);
  rt.block_scopes.pop_back();
  return flow::normal;
}

flow loading_statement::execute(runtime& rt) const {
  rt.at = at;
  fail("'" + tag + "' cannot be used: a chat template is a single file");
}

}  // namespace fermata::jinja

// Macros and the `loop` variable: what a template itself can call.
#include <algorithm>

#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/syntax.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

// Takes a named argument out of the arguments; missing when it isn't there.
value take(runtime& rt, arguments& args, std::string_view name) {
  rt.step(args.named.size() / 8);
  for (auto it = args.named.begin(); it != args.named.end(); ++it)
    if (it->first == name) {
      value v = std::move(it->second);
      args.named.erase(it);
      return v;
    }
  return value::missing();
}

}  // namespace

// ---- macros

// The order of things is Jinja2's (Macro.__call__): positional, then named, then caller, kwargs and varargs.
std::vector<value> macro_object::take_parameters(runtime& rt, arguments& args, bool& found_caller) const {
  auto const& d = *definition_;
  std::size_t const count = d.parameters.size();
  std::vector<value> taken;
  taken.reserve(count);
  for (std::size_t i = 0; i < std::min(count, args.positional.size()); ++i) taken.push_back(std::move(args.positional[i]));
  found_caller = taken.size() == count && d.explicit_caller;
  while (taken.size() < count) {
    auto const& name = d.parameters[taken.size()]->name;
    if (name == "caller") found_caller = true;
    taken.push_back(take(rt, args, name));
  }
  return taken;
}

value macro_object::call(runtime& rt, arguments& args) {
  auto const& d = *definition_;
  std::size_t const count = d.parameters.size();
  bool found_caller = false;
  auto parameters = take_parameters(rt, args, found_caller);
  value caller = value::missing();
  if (d.uses_caller && !found_caller) {
    caller = take(rt, args, "caller");
    if (caller.is_missing() || caller.is_none()) caller = undefined_hint("No caller defined");
  }
  std::string const shown = d.name.empty() ? "a call block" : "macro '" + d.name + "'";
  if (!d.uses_kwargs && !args.named.empty()) fail(shown + " takes no keyword argument '" + args.named.front().first + "'");
  if (!d.uses_varargs && args.positional.size() > count)
    fail(shown + " takes not more than " + std::to_string(count) + " arguments, " + std::to_string(args.positional.size()) + " were given");

  shared_part<activation> const own{new activation{closure_.get(), d.function.slots}};
  runtime::scope const here{rt, own.get()};
  rt.allocate(sizeof(activation) + d.function.slots * sizeof(value));
  rt.enter(d.plan);
  for (std::size_t i = 0; i < count; ++i) rt.slot(d.parameters[i]->where) = std::move(parameters[i]);
  if (!caller.is_missing()) rt.slot(d.caller) = std::move(caller);
  if (d.uses_kwargs) {
    std::vector<value::pair> named;
    for (auto& [name, v] : args.named) named.emplace_back(value{name}, std::move(v));
    rt.slot(d.kwargs) = rt.make_dict(std::move(named));
  }
  if (d.uses_varargs) {
    std::vector<value> rest;
    for (std::size_t i = count; i < args.positional.size(); ++i) rest.push_back(std::move(args.positional[i]));
    rt.slot(d.varargs) = rt.make_tuple(std::move(rest));
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto const& parameter = *d.parameters[i];
    if (!rt.slot(parameter.where).is_missing()) continue;
    std::size_t const without = count - d.defaults.size();
    value v = i >= without ? d.defaults[i - without]->eval(rt) : undefined_hint("parameter '" + parameter.name + "' was not provided");
    rt.slot(parameter.where) = std::move(v);
  }
  runtime::capture captured{rt};
  run(d.content, rt);
  return rt.captured(captured.take());
}

value macro_object::attribute(runtime& rt, std::string_view name) {
  auto const& d = *definition_;
  if (name == "name") return d.name.empty() ? value{} : value{d.name};
  if (name == "catch_kwargs") return value{d.uses_kwargs};
  if (name == "catch_varargs") return value{d.uses_varargs};
  if (name == "caller") return value{d.uses_caller};
  if (name == "explicit_caller") return value{d.explicit_caller};
  if (name != "arguments") return value::missing();
  std::vector<value> names;
  for (auto const& p : d.parameters) names.push_back(value{p->name});
  return rt.make_tuple(std::move(names));
}

void macro_object::print(runtime&, std::string& to) {
  to += "<Macro ";
  if (definition_->name.empty())
    to += "anonymous";
  else
    text::append_quoted(to, definition_->name);
  to += '>';
}

// ---- loop

namespace {
loop_object& loop_of(value const& v) { return static_cast<loop_object&>(v.as_object()); }
builtin const loop_cycle{"cycle", [](runtime&, value const& self, arguments& args) { return loop_of(self).cycle(args); }};
builtin const loop_changed{"changed", [](runtime& rt, value const& self, arguments& args) { return value{loop_of(self).changed(rt, args)}; }};
}  // namespace

loop_object::loop_object(runtime& rt, value over, unsigned depth0, for_statement const* recursive, activation* closure)
    : rt_{rt}, items_{rt, over}, length_{}, depth0_{depth0}, recursive_{recursive}, closure_{closure} {
  depth = nesting_above(nesting(over));
  if (!over.is_object() || over.as_object().length(rt)) length_ = jinja::length(rt, over);
}

bool loop_object::advance(value& out) {
  if (!after_.is_missing()) {
    out = std::exchange(after_, value::missing());
  } else if (eager_at_ < eager_.size()) {
    out = std::move(eager_[eager_at_++]);
  } else if (!items_.next(out)) {
    return false;
  }
  ++index0_;
  before_ = std::move(current_);
  current_ = out;
  return true;
}

void loop_object::finish() {
  closure_ = {};
  recursive_ = nullptr;
}

bool loop_object::peek() {
  if (!after_.is_missing()) return true;
  if (eager_at_ < eager_.size()) {
    after_ = std::move(eager_[eager_at_++]);
    return true;
  }
  value v;
  if (!items_.next(v)) return false;
  after_ = std::move(v);
  return true;
}

std::int64_t loop_object::total() {
  if (length_) return *length_;
  value v;
  while (items_.next(v)) {
    rt_.allocate(sizeof(value));
    eager_.push_back(std::move(v));
  }
  length_ = static_cast<std::int64_t>(eager_.size() - eager_at_) + index0_ + 1 + (after_.is_missing() ? 0 : 1);
  return *length_;
}

value loop_object::attribute(runtime& rt, std::string_view name) {
  if (name == "index") return value{index0_ + 1};
  if (name == "index0") return value{index0_};
  if (name == "first") return value{index0_ == 0};
  if (name == "last") return value{!peek()};
  if (name == "length") return value{total()};
  if (name == "revindex") return value{total() - index0_};
  if (name == "revindex0") return value{total() - index0_ - 1};
  if (name == "previtem") return index0_ == 0 ? undefined_hint("there is no previous item") : before_;
  if (name == "nextitem") return peek() ? after_ : undefined_hint("there is no next item");
  if (name == "depth") return value{static_cast<std::int64_t>(depth0_) + 1};
  if (name == "depth0") return value{static_cast<std::int64_t>(depth0_)};
  if (name == "cycle") return make_object<function_object>(rt, &loop_cycle, value::of(this));
  if (name == "changed") return make_object<function_object>(rt, &loop_changed, value::of(this));
  return value::missing();
}

value loop_object::cycle(arguments& args) const {
  if (args.positional.empty() || !args.named.empty()) fail("loop.cycle() needs the items to cycle through");
  return args.positional[static_cast<std::size_t>(index0_) % args.positional.size()];
}

bool loop_object::changed(runtime& rt, arguments& args) {
  value now = rt.make_tuple(std::move(args.positional));
  if (!last_changed_.is_missing() && equal(rt, last_changed_, now)) return false;
  last_changed_ = std::move(now);
  return true;
}

value loop_object::call(runtime& rt, arguments& args) {
  positional_only(args, "loop", 1, 1);
  if (!recursive_) fail("the loop needs the 'recursive' marker to be called");
  return rt.captured(recursive_->render_recursive(rt, args.positional[0], depth0_ + 1, closure_.get()));
}

void loop_object::print(runtime&, std::string& to) {
  to += "<LoopContext " + std::to_string(index0_ + 1) + "/" + std::to_string(total()) + ">";
}

}  // namespace fermata::jinja

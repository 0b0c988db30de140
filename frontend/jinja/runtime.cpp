// See runtime.hpp.
#include "frontend/jinja/runtime.hpp"

#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/syntax.hpp"

namespace fermata::jinja {

runtime::runtime(tree const& t, value const& context, render_options const& options) : tree_{t}, options_{options} {
  globals_.reserve(t.globals.size());
  for (auto const& name : t.globals) {
    if (auto const* given = context.find(name))
      globals_.push_back(*given);
    else if (value v = environment_global(name); !v.is_missing())
      globals_.push_back(std::move(v));
    else
      globals_.push_back(undefined_name(value{name}));
  }
}

runtime::~runtime() {
  // Empties what may hold itself; whole chains of such objects go one by one, not by recursion.
  for (auto const& n : namespaces_) n->clear();
  for (auto const& a : activations_) a->values.assign(a->values.size(), value{});
}

void runtime::write(std::string_view s) {
  if (out_ == &root_) {
    if (root_.size() + s.size() > options_.bounds.output_bytes_max)
      fail(error_kind::limit, "the output is longer than " + std::to_string(options_.bounds.output_bytes_max) + " bytes");
    scan(s.size());
  } else {
    allocate(s.size());
  }
  out_->append(s);
}

value runtime::captured(std::string s) { return autoescape ? value::markup(std::move(s)) : value{std::move(s)}; }

value const& runtime::read(variable const& v) {
  switch (v.in) {
    case variable::place::global: return globals_[v.index];
    case variable::place::slot: return slot(v);
    case variable::place::dynamic: break;
  }
  auto const& name = tree_.globals[v.index];
  if (!block_scopes.empty())
    if (auto const found = block_scopes.back().find(name); found != block_scopes.back().end()) return found->second;
  if (auto const found = exported_.find(name); found != exported_.end()) return found->second;
  return globals_[v.index];
}

value& runtime::slot(variable const& v) {
  auto* a = current_;
  for (unsigned i = 0; i < v.hops; ++i) a = a->outer.get();
  return a->values[v.index];
}

void runtime::enter(frame_plan const& plan) {
  step(plan.enter.size() / 8);
  for (auto const& action : plan.enter) {
    value v = action.copies ? read(action.from) : value::missing();
    current_->values[action.slot] = std::move(v);
  }
}

void runtime::leave(frame_plan const& plan) {
  for (auto const slot : plan.leave) current_->values[slot] = value::missing();
}

void runtime::export_names(export_plan const& plan) {
  if (!tree_.has_blocks) return;
  for (auto const& [name, where] : plan.names) exported_.insert_or_assign(name, read(where));
}

void runtime::keep(activation* a) {
  if (a->registered) return;
  a->registered = true;
  allocate(sizeof(activation) + a->values.size() * sizeof(value));
  activations_.emplace_back(a);
}

void runtime::keep(name_space* n) { namespaces_.emplace_back(n); }

local_time runtime::now() const {
  if (!options_.now) fail("strftime_now: no clock was given to this rendering");
  return options_.now();
}

void runtime::steps_exceeded() const {
  fail(error_kind::limit, "the template takes more than " + std::to_string(options_.bounds.steps_max) + " steps");
}
void runtime::memory_exceeded() const {
  fail(error_kind::limit, "the template makes more than " + std::to_string(options_.bounds.allocated_bytes_max) + " bytes of values");
}
void runtime::depth_exceeded() const {
  fail(error_kind::limit, "evaluation nests more than " + std::to_string(options_.bounds.depth_max) + " deep (endless recursion?)");
}

}  // namespace fermata::jinja

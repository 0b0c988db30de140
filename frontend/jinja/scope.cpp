// See scope.hpp.
#include "frontend/jinja/scope.hpp"

#include "frontend/jinja/fault.hpp"

namespace fermata::jinja {

std::uint32_t function_scope::slot(unsigned level, std::string const& name) {
  return slots.try_emplace({level, name}, static_cast<std::uint32_t>(slots.size())).first->second;
}

symbols const* symbols::find(std::string const& name) const {
  for (auto const* s = this; s; s = s->parent)
    if (s->known_here(name)) return s;
  return nullptr;
}

bool symbols::known_here(std::string const& name) const {
  for (auto const* s = this; s; s = s->base)
    if (s->loads.count(name)) return true;
  return false;
}

bool symbols::stored_here(std::string const& name) const {
  for (auto const* s = this; s; s = s->base)
    if (s->stores.count(name)) return true;
  return false;
}

symbols symbols::branch() const {
  symbols layer;
  layer.base = this;
  layer.parent = parent;
  layer.function = function;
  layer.level = level;
  return layer;
}

void symbols::load(std::string const& name) {
  if (!find(name)) loads.emplace(name, load_kind::resolve);
}

void symbols::store(std::string const& name) {
  stores.insert(name);
  if (known_here(name)) return;
  loads.emplace(name, parent && parent->find(name) ? load_kind::alias : load_kind::undefined);
}

void symbols::declare_parameter(std::string const& name) {
  stores.insert(name);
  loads[name] = load_kind::parameter;
}

void symbols::merge(std::vector<symbols> const& branches) {
  std::set<std::string> stored;
  for (auto const& b : branches)
    for (auto const& name : b.stores)
      if (!stored_here(name)) stored.insert(name);
  for (auto const& b : branches) {
    for (auto const& [name, kind] : b.loads) loads[name] = kind;
    stores.insert(b.stores.begin(), b.stores.end());
  }
  // Stored in some branch only: in the others the name keeps the meaning it has outside.
  for (auto const& name : stored) loads[name] = parent && parent->find(name) ? load_kind::alias : load_kind::resolve;
}

symbols& binder::make_symbols(symbols* parent, function_scope* function) {
  symbols_.push_back(std::make_unique<symbols>());
  auto& made = *symbols_.back();
  made.parent = parent;
  made.function = function;
  made.level = static_cast<unsigned>(symbols_.size());
  return made;
}

function_scope& binder::make_function(function_scope* outer, bool is_block) {
  functions_.push_back(std::make_unique<function_scope>());
  functions_.back()->outer = outer;
  functions_.back()->is_block = is_block;
  return *functions_.back();
}

std::uint32_t binder::global(std::string const& name) {
  auto const [at, fresh] = global_index_.try_emplace(name, static_cast<std::uint32_t>(globals_.size()));
  if (fresh) globals_.push_back(name);
  return at->second;
}

frame frame::inner() const {
  frame made;
  made.shared = shared;
  made.names = &shared->make_symbols(names, names->function);
  return made;
}

frame frame::inner_function(bool block) const {
  frame made;
  made.shared = shared;
  auto& function = shared->make_function(block ? nullptr : names->function, block);
  made.names = &shared->make_symbols(block ? nullptr : names, &function);
  made.in_block = block;
  return made;
}

frame frame::softened() const {
  frame made = *this;
  made.soft = true;
  return made;
}

variable frame::find(std::string const& name) const {
  auto const* owner = names->find(name);
  if (!owner) throw fault{error_kind::syntax, "name '" + name + "' has no scope"};
  variable v;
  if (owner->loads.at(name) == load_kind::resolve && !owner->stores.count(name)) {
    v.in = owner->function->is_block ? variable::place::dynamic : variable::place::global;
    v.index = shared->global(name);
    return v;
  }
  for (auto const* f = names->function; f != owner->function; f = f->outer) ++v.hops;
  v.index = owner->function->slot(owner->level, name);
  return v;
}

frame_plan frame::plan() const {
  frame_plan made;
  for (auto const& [name, kind] : names->loads) {
    if (kind == load_kind::resolve && !names->stores.count(name)) continue;
    auto const slot = names->function->slot(names->level, name);
    made.leave.push_back(slot);
    if (kind == load_kind::parameter) continue;
    frame_action action;
    action.slot = slot;
    action.copies = kind != load_kind::undefined;
    if (kind == load_kind::resolve) {
      action.from.in = names->function->is_block ? variable::place::dynamic : variable::place::global;
      action.from.index = shared->global(name);
    } else if (kind == load_kind::alias) {
      frame outside = *this;
      outside.names = names->parent;
      action.from = outside.find(name);
      // The alias is taken inside this frame's function, which may be one further in than its parent.
      if (names->parent->function != names->function && action.from.in == variable::place::slot) ++action.from.hops;
    }
    made.enter.push_back(action);
  }
  return made;
}

function_plan frame::function() const { return {static_cast<std::uint32_t>(names->function->slots.size())}; }

}  // namespace fermata::jinja

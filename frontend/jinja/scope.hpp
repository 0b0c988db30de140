// Which variable a name means. Jinja2 decides this when a template is compiled, and templates rely on its rules: a `set`
// inside a loop makes a new variable that starts each turn as a copy of the outer one, `if` makes no scope, macros see
// the variables around them as they are when called. This follows jinja2/idtracking.py.
//
// Names become slots of activations. A function (the template, a macro, a call block, a recursive loop, a block) has one
// activation per call; frames inside it (loops, with, set blocks) share its slots.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata::jinja {

// Where a variable lives at run time.
struct variable {
  enum class place : std::uint8_t { global, slot, dynamic };
  place in = place::slot;
  std::uint16_t hops = 0;   // activations outwards, for slots
  std::uint32_t index = 0;  // of the slot, or of the name in tree::globals
};

// Done when a frame is entered: `slot` starts as missing, or as a copy of another variable.
struct frame_action {
  std::uint32_t slot = 0;
  bool copies = false;
  variable from;
};

struct frame_plan {
  std::vector<frame_action> enter;
  std::vector<std::uint32_t> leave;  // slots that end with the frame
};

struct function_plan {
  std::uint32_t slots = 0;
};

// Top-level assignments that blocks can see, by name.
struct export_plan {
  std::vector<std::pair<std::string, variable>> names;
};

enum class load_kind : std::uint8_t { parameter, resolve, alias, undefined };

// Slots of one function, given out while its frames are bound.
struct function_scope {
  function_scope* outer = nullptr;
  bool is_block = false;  // names resolve at run time, through what the top level exported
  std::map<std::pair<unsigned, std::string>, std::uint32_t> slots;
  std::uint32_t slot(unsigned level, std::string const& name);
};

// Names of one frame. While a branch of an if is read it is a layer over the frame: it holds only what the branch adds, so
// that a template of many ifs isn't quadratic.
struct symbols {
  symbols const* base = nullptr;  // what this is a layer over
  symbols* parent = nullptr;
  function_scope* function = nullptr;
  unsigned level = 0;  // unique among all scopes
  std::map<std::string, load_kind> loads;
  std::set<std::string> stores;

  symbols const* find(std::string const& name) const;
  symbols branch() const;
  void load(std::string const& name);
  void store(std::string const& name);
  void declare_parameter(std::string const& name);
  void merge(std::vector<symbols> const& branches);

 private:
  bool known_here(std::string const& name) const;
  bool stored_here(std::string const& name) const;
};

// What binding shares across the whole tree.
class binder {
 public:
  symbols& make_symbols(symbols* parent, function_scope* function);
  function_scope& make_function(function_scope* outer, bool is_block);
  std::uint32_t global(std::string const& name);
  std::vector<std::string> take_globals() { return std::move(globals_); }
  std::set<std::string> block_names;

 private:
  std::vector<std::unique_ptr<symbols>> symbols_;
  std::vector<std::unique_ptr<function_scope>> functions_;
  std::vector<std::string> globals_;
  std::map<std::string, std::uint32_t> global_index_;
};

struct frame {
  binder* shared = nullptr;
  symbols* names = nullptr;
  bool top_level = false;
  bool in_loop = false;
  bool in_block = false;
  bool soft = false;  // below an if: an unknown filter is an error only when reached
  std::set<std::string>* assigned = nullptr;

  frame inner() const;                     // a new scope of the same function
  frame inner_function(bool block) const;  // a new scope in a function of its own
  frame softened() const;
  variable find(std::string const& name) const;
  frame_plan plan() const;
  function_plan function() const;
};

}  // namespace fermata::jinja

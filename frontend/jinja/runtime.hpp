// State of one rendering: where names are looked up, where text goes, what has been used up.
//
// Values made while rendering may form cycles through namespaces and macros; those objects register here and are emptied
// when the rendering ends, so nothing outlives it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/jinja/builtins.hpp"
#include "frontend/jinja/fault.hpp"
#include "frontend/jinja/scope.hpp"
#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

class name_space;

// A counted pointer to a heap part that isn't a value.
template <class T>
class shared_part {
 public:
  shared_part() = default;
  explicit shared_part(T* p) noexcept : p_{p} {
    if (p_) p_->references.fetch_add(1, std::memory_order_relaxed);
  }
  shared_part(shared_part const& other) noexcept : shared_part{other.p_} {}
  shared_part(shared_part&& other) noexcept : p_{std::exchange(other.p_, nullptr)} {}
  shared_part& operator=(shared_part other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~shared_part() {
    if (p_ && p_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p_;
  }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }

 private:
  T* p_ = nullptr;
};

// The variables of one call of a function (see scope.hpp).
struct activation : counted {
  activation(activation* around, std::size_t slots) : outer{around}, values(slots, value::missing()) {}
  shared_part<activation> outer;
  std::vector<value> values;
  bool registered = false;
};

class runtime {
 public:
  runtime(tree const& t, value const& context, render_options const& options);
  ~runtime();
  runtime(runtime const&) = delete;
  runtime& operator=(runtime const&) = delete;

  // ---- limits
  void step(std::uint64_t n = 1) {
    steps_ += n;
    if (steps_ > options_.bounds.steps_max) steps_exceeded();
  }
  void scan(std::size_t bytes) { step(bytes / 64); }  // reading a long text
  void allocate(std::size_t bytes) {                  // before making something of this size
    allocated_ += bytes;
    if (bytes > options_.bounds.allocated_bytes_max || allocated_ > options_.bounds.allocated_bytes_max) memory_exceeded();
    step(bytes / 64);
  }
  class deeper {
   public:
    explicit deeper(runtime& rt) : rt_{rt} {
      if (++rt_.depth_ > rt_.options_.bounds.depth_max) {
        --rt_.depth_;
        rt_.depth_exceeded();
      }
    }
    ~deeper() { --rt_.depth_; }
    deeper(deeper const&) = delete;
    deeper& operator=(deeper const&) = delete;

   private:
    runtime& rt_;
  };

  // ---- making values, counted against the limits (with what a small heap object costs)
  static constexpr std::size_t object_bytes = 96;
  value make_text(std::string s) {
    allocate(object_bytes + s.size());
    return value{std::move(s)};
  }
  value make_list(std::vector<value> items) {
    allocate(object_bytes + items.size() * sizeof(value));
    return value::list(std::move(items));
  }
  value make_tuple(std::vector<value> items) {
    allocate(object_bytes + items.size() * sizeof(value));
    return value::tuple(std::move(items));
  }
  value make_dict(std::vector<value::pair> entries) {
    allocate(object_bytes + entries.size() * sizeof(value::pair));
    return value::dict(std::move(entries));
  }

  // ---- text
  void write(std::string_view s);
  std::size_t written() const noexcept { return root_.size(); }  // bytes of the final text so far
  // Output between begin and end goes to a string of its own. Nests; end_capture may be skipped when unwinding.
  class capture {
   public:
    explicit capture(runtime& rt) : rt_{rt}, outer_{rt.out_} { rt_.out_ = &text_; }
    ~capture() { rt_.out_ = outer_; }
    capture(capture const&) = delete;
    capture& operator=(capture const&) = delete;
    std::string take() { return std::move(text_); }

   private:
    runtime& rt_;
    std::string* outer_;
    std::string text_;
  };
  bool autoescape = false;
  value captured(std::string s);  // a captured text as a value: markup under autoescape

  // ---- variables
  value const& read(variable const& v);
  value& slot(variable const& v);  // for places in slots only
  void enter(frame_plan const& plan);
  void leave(frame_plan const& plan);
  void export_names(export_plan const& plan);
  activation* current() const noexcept { return current_; }
  class scope {  // makes `a` current for a while
   public:
    scope(runtime& rt, activation* a) : rt_{rt}, before_{rt.current_} { rt_.current_ = a; }
    ~scope() { rt_.current_ = before_; }
    scope(scope const&) = delete;
    scope& operator=(scope const&) = delete;

   private:
    runtime& rt_;
    activation* before_;
  };
  // Names handed to a scoped block, innermost last.
  std::vector<std::map<std::string, value, std::less<>>> block_scopes;

  void keep(activation* a);
  void keep(name_space* n);

  // ---- the environment
  local_time now() const;
  void mark_generation(std::size_t begin, std::size_t end) { generation_.push_back({begin, end}); }
  rendering finish() { return {std::move(root_), std::move(generation_)}; }

  value filter_subject;  // what an innermost filter of a {% filter %} or {% set %} block filters

  std::uint32_t at = 0;  // where the template is, for errors

 private:
  [[noreturn]] void steps_exceeded() const;
  [[noreturn]] void memory_exceeded() const;
  [[noreturn]] void depth_exceeded() const;

  tree const& tree_;
  render_options const& options_;
  std::vector<value> globals_;
  std::map<std::string, value, std::less<>> exported_;
  value dynamic_;
  activation* current_ = nullptr;
  std::string root_;
  std::string* out_ = &root_;
  std::vector<byte_span> generation_;
  std::uint64_t steps_ = 0;
  std::size_t allocated_ = 0;
  unsigned depth_ = 0;
  std::vector<shared_part<activation>> activations_;
  std::vector<shared_part<name_space>> namespaces_;
};

}  // namespace fermata::jinja

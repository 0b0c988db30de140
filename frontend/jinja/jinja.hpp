// Chat templates: a Jinja engine that renders what Hugging Face transformers renders.
//
// The reference is transformers' environment: Jinja2's immutable sandbox with trim_blocks and lstrip_blocks, loop
// controls, `{% generation %}`, and `tojson` as json.dumps. Where it raises, this raises `error`.
//
// A program is parsed once, is immutable and may be rendered by many threads at a time. Nothing here reads a clock or a
// file: the time for strftime_now comes in through the options. Templates are untrusted; every resource they use is bounded.
//
//   auto p = jinja::program::parse(source);
//   std::string prompt = p.render(jinja::value::from_json(context));
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/jinja/value.hpp"

namespace fermata::jinja {

enum class error_kind {
  syntax,     // the template cannot be parsed
  runtime,    // an operation Python would refuse
  undefined,  // something was done with an undefined value
  security,   // the sandbox forbids it (mutation, private attributes)
  limit,      // a limit of `limits` was reached
  raised,     // the template called raise_exception
};

// What went wrong and where. `what()` reads "line L, column C: message"; line and column count from 1 (characters), and
// are 0 where there is no template position (a malformed context).
class error : public std::runtime_error {
 public:
  error(error_kind kind, std::string message, unsigned line = 0, unsigned column = 0);
  error_kind kind() const noexcept { return kind_; }
  std::string const& message() const noexcept { return message_; }
  unsigned line() const noexcept { return line_; }
  unsigned column() const noexcept { return column_; }

 private:
  error_kind kind_;
  std::string message_;
  unsigned line_;
  unsigned column_;
};

// Bounds on one rendering. Reaching one raises error_kind::limit.
struct limits {
  std::uint64_t steps_max = 20'000'000;           // nodes evaluated; long strings cost a step every 64 bytes
  std::size_t output_bytes_max = 64u << 20;       // the rendered text
  std::size_t allocated_bytes_max = 512u << 20;  // all strings and containers made on the way, added up
  unsigned depth_max = 2000;                      // nested evaluations (macro calls, recursive loops)
};

// Local time, as datetime.now() would give it (strftime_now).
struct local_time {
  std::tm fields{};  // as std::localtime fills it
  unsigned microseconds = 0;
};

struct render_options {
  limits bounds{};
  std::function<local_time()> now{};  // empty: strftime_now raises
};

struct byte_span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct rendering {
  std::string text;
  std::vector<byte_span> generation;  // what {% generation %} blocks wrote, in bytes of `text`
};

struct tree;

class program {
 public:
  // Throws error_kind::syntax. One trailing newline of the source is dropped, line ends become "\n".
  static program parse(std::string_view source);

  // `context` is a dict of the template's variables (messages, tools, add_generation_prompt, ...).
  std::string render(value const& context, render_options const& options = {}) const;
  rendering render_with_generation_spans(value const& context, render_options const& options = {}) const;

  // Variables that the template reads from its context, sorted.
  std::vector<std::string> const& variables() const noexcept;

 private:
  explicit program(std::shared_ptr<tree const> parsed) : tree_{std::move(parsed)} {}
  std::shared_ptr<tree const> tree_;
};

}  // namespace fermata::jinja

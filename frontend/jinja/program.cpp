// The public face: parse, render, and errors with a place.
#include <algorithm>
#include <new>
#include <limits>

#include "frontend/jinja/fault.hpp"
#include "frontend/jinja/jinja.hpp"
#include "frontend/jinja/lexer.hpp"
#include "frontend/jinja/parser.hpp"
#include "frontend/jinja/runtime.hpp"
#include "frontend/jinja/syntax.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

// Templates of models stay below 100 KiB.
constexpr std::size_t source_bytes_max = 1u << 20;

std::string place_first(std::string const& message, unsigned line, unsigned column) {
  if (line == 0) return message;
  return "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + message;
}

error located(error_kind category, std::string message, std::string_view source, std::size_t at) {
  auto const before = source.substr(0, std::min(at, source.size()));
  auto const line = 1 + std::count(before.begin(), before.end(), '\n');
  auto const newline = before.rfind('\n');
  auto const column = 1 + text::count(newline == std::string_view::npos ? before : before.substr(newline + 1));
  return {category, std::move(message), static_cast<unsigned>(line), static_cast<unsigned>(column)};
}

}  // namespace

error::error(error_kind kind, std::string message, unsigned line, unsigned column)
    : std::runtime_error{place_first(message, line, column)}, kind_{kind}, message_{std::move(message)}, line_{line}, column_{column} {}

program program::parse(std::string_view source) {
  if (source.size() > source_bytes_max)
    throw error{error_kind::limit, "the template is longer than " + std::to_string(source_bytes_max) + " bytes"};
  if (!text::valid_utf8(source)) throw error{error_kind::syntax, "the template is not valid UTF-8"};
  std::string normalised = normalise_source(source);
  std::string const shown = normalised;
  try {
    return program{parse_tree(std::move(normalised))};
  } catch (syntax_fault& f) {
    throw located(error_kind::syntax, std::move(f.message), shown, f.at);
  } catch (fault& f) {
    throw located(f.category, std::move(f.message), shown, 0);
  }
}

std::string program::render(value const& context, render_options const& options) const {
  return render_with_generation_spans(context, options).text;
}

rendering program::render_with_generation_spans(value const& context, render_options const& options) const {
  if (!context.is_dict()) throw error{error_kind::runtime, "the context of a template has to be a dict of its variables"};
  runtime rt{*tree_, context, options};
  try {
    shared_part<activation> const top{new activation{nullptr, tree_->function.slots}};
    runtime::scope const here{rt, top.get()};
    rt.enter(tree_->plan);
    run(tree_->content, rt);
    return rt.finish();
  } catch (fault& f) {
    throw located(f.category, std::move(f.message), tree_->source, rt.at);
  } catch (std::bad_alloc const&) {
    throw located(error_kind::limit, "out of memory", tree_->source, rt.at);
  }
}

std::vector<std::string> const& program::variables() const noexcept { return tree_->variables; }

}  // namespace fermata::jinja

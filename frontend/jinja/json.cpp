// See json.hpp. Numbers print as Python's repr, NaN and infinities as the names json.dumps uses.
#include "frontend/jinja/json.hpp"

#include <algorithm>
#include <cmath>

#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/json_text.hpp"

namespace fermata::jinja {
namespace {

class writer {
 public:
  writer(runtime& rt, json_style const& style) : rt_{rt}, style_{style} {}
  std::string take() {
    charge();
    return std::move(out_);
  }

  void put(value const& v) {
    rt_.step();
    charge();
    switch (v.type()) {
      case kind::none: out_ += "null"; break;
      case kind::boolean: out_ += v.boolean() ? "true" : "false"; break;
      case kind::integer: out_ += std::to_string(v.integer()); break;
      case kind::real: out_ += number(v.real()); break;
      case kind::string: quote(v.text()); break;
      case kind::list:
      case kind::tuple: put_list(v.items()); break;
      case kind::dict: put_dict(v); break;
      default:
        if (is_integer(v)) {
          out_ += integer_to_text(v);
          break;
        }
        fail(std::string{"Object of type "} + type_name(v) + " is not JSON serializable");
    }
  }

 private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return real_to_text(d);
  }

  void charge() {
    rt_.allocate(out_.size() - charged_);
    charged_ = out_.size();
  }

  void line() {
    if (!style_.multiline) return;
    out_ += '\n';
    rt_.allocate(level_ * style_.indent.size());
    for (std::size_t i = 0; i < level_; ++i) out_ += style_.indent;
  }

  void put_list(std::vector<value> const& items) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) out_ += style_.item_separator;
      line();
      put(items[i]);
    }
    --level_;
    line();
    out_ += ']';
  }

  void put_dict(value const& v) {
    if (v.entries().empty()) {
      out_ += "{}";
      return;
    }
    auto entries = v.entries();
    rt_.allocate(entries.size() * sizeof(value::pair));
    if (style_.sort_keys) sort_items(rt_, entries, [](value::pair const& p) -> value const& { return p.first; }, false);
    out_ += '{';
    ++level_;
    bool first = true;
    for (auto const& [key, item] : entries) {
      if (!first) out_ += style_.item_separator;
      first = false;
      line();
      put_key(key);
      out_ += style_.key_separator;
      put(item);
    }
    --level_;
    line();
    out_ += '}';
  }

  void put_key(value const& key) {
    switch (key.type()) {
      case kind::string: quote(key.text()); return;
      case kind::none: out_ += "\"null\""; return;
      case kind::boolean: out_ += key.boolean() ? "\"true\"" : "\"false\""; return;
      case kind::integer: out_ += '"' + std::to_string(key.integer()) + '"'; return;
      case kind::real: out_ += '"' + number(key.real()) + '"'; return;
      default:
        if (is_integer(key)) {
          out_ += '"' + integer_to_text(key) + '"';
          return;
        }
        fail(std::string{"keys must be str, int, float, bool or None, not "} + type_name(key));
    }
  }

  void quote(std::string const& s) {
    rt_.scan(s.size());
    append_json_string(out_, s, style_.ascii_only ? json_bytes::ascii : json_bytes::utf8);
  }

  runtime& rt_;
  json_style const& style_;
  std::string out_;
  std::size_t charged_ = 0;
  std::size_t level_ = 0;
};

}  // namespace

std::string to_json(runtime& rt, value const& v, json_style const& style) {
  writer w{rt, style};
  w.put(v);
  return w.take();
}

}  // namespace fermata::jinja

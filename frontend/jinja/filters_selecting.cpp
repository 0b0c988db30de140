// map, select, reject, selectattr, rejectattr: generators that apply a filter or a test to one element at a time, when it
// is asked for.
#include <algorithm>
#include <optional>

#include "frontend/jinja/attribute_path.hpp"
#include "frontend/jinja/methods.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {

attribute_path::attribute_path(runtime& rt, value const& path, value fallback)
    : fallback_{fallback.is_none() ? value::missing() : std::move(fallback)} {
  if (path.is_missing() || path.is_none()) return;
  if (!path.is_string()) {
    parts_.push_back(path);
    return;
  }
  for (auto const& part : split_left(rt, path.text(), ".", static_cast<std::size_t>(-1))) {
    bool const number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    parts_.push_back(number && part.size() < 19 ? value{static_cast<std::int64_t>(std::stoll(std::string{part}))} : value{part});
  }
}

value attribute_path::of(runtime& rt, value item) const {
  for (auto const& part : parts_) {
    item = get_item(rt, item, part);
    if (item.is_undefined() && !fallback_.is_missing()) item = fallback_;
  }
  return item;
}

std::vector<attribute_path> attribute_paths(runtime& rt, value const& paths) {
  std::vector<attribute_path> out;
  if (!paths.is_string()) {
    out.emplace_back(rt, paths);
    return out;
  }
  for (auto const& path : split_left(rt, paths.text(), ",", static_cast<std::size_t>(-1))) out.emplace_back(rt, value{path});
  return out;
}

value lowered(runtime& rt, value const& v, bool case_sensitive) {
  if (case_sensitive || !v.is_string()) return v;
  rt.allocate(v.text().size());
  return value{text::lower(v.text())};
}

namespace {

builtin const& named(value const& name, char const* what, builtin const* (*find)(std::string_view) noexcept) {
  auto const* function = name.is_string() ? find(name.text()) : nullptr;
  if (function) return *function;
  if (name.is_undefined()) fail(std::string{"unknown "} + what + ": its name is undefined (did you forget the quotes?)");
  fail(std::string{"unknown "} + what + " '" + (name.is_string() ? name.text() : type_name(name)) + "'");
}

value take_first(arguments& args) {
  value v = std::move(args.positional.front());
  args.positional.erase(args.positional.begin());
  return v;
}

class mapped final : public iterator {
 public:
  mapped(value over, arguments args) : over_{std::move(over)}, args_{std::move(args)} {
    depth = nesting_above(std::max(nesting(over_), nesting(args_)));
  }
  bool next(runtime& rt, value& out) override {
    runtime::deeper const guard{rt};
    if (!started_) start(rt);
    value item;
    if (!source_ || !source_->next(item)) return false;
    if (path_) {
      out = path_->of(rt, std::move(item));
    } else {
      arguments args = args_;
      out = named(filter_, "filter", find_filter).invoke(rt, item, args);
    }
    return true;
  }

 private:
  void start(runtime& rt) {
    started_ = true;
    if (!truth(over_)) return;
    auto const attribute = std::find_if(args_.named.begin(), args_.named.end(), [](auto const& a) { return a.first == "attribute"; });
    if (args_.positional.empty() && attribute != args_.named.end()) {
      auto const p = bind_arguments(args_, "map", {"attribute", "default"}, 0);
      path_.emplace(rt, p[0], p[1]);
    } else {
      if (args_.positional.empty()) fail("map requires a filter argument");
      filter_ = take_first(args_);
    }
    source_.emplace(rt, over_);
  }

  value over_;
  arguments args_;
  bool started_ = false;
  value filter_;
  std::optional<attribute_path> path_;
  std::optional<cursor> source_;
};

class selected final : public iterator {
 public:
  selected(value over, arguments args, bool keep, bool by_attribute)
      : over_{std::move(over)}, args_{std::move(args)}, keep_{keep}, by_attribute_{by_attribute} {
    depth = nesting_above(std::max(nesting(over_), nesting(args_)));
  }
  bool next(runtime& rt, value& out) override {
    runtime::deeper const guard{rt};
    if (!started_) start(rt);
    while (source_ && source_->next(out))
      if (passes(rt, out) == keep_) return true;
    return false;
  }

 private:
  void start(runtime& rt) {
    started_ = true;
    if (!truth(over_)) return;
    if (by_attribute_) {
      if (args_.positional.empty()) fail("the name of an attribute is missing");
      path_.emplace(rt, take_first(args_));
    }
    if (!args_.positional.empty()) test_ = take_first(args_);
    source_.emplace(rt, over_);
  }

  bool passes(runtime& rt, value const& item) const {
    value const subject = path_ ? path_->of(rt, item) : item;
    if (test_.is_missing()) return truth(subject);
    arguments args = args_;
    return truth(named(test_, "test", find_test).invoke(rt, subject, args));
  }

  value over_;
  arguments args_;
  bool keep_, by_attribute_;
  bool started_ = false;
  value test_ = value::missing();
  std::optional<attribute_path> path_;
  std::optional<cursor> source_;
};

value map(runtime& rt, value const& v, arguments& args) { return make_object<mapped>(rt, v, std::move(args)); }

template <bool Keep, bool ByAttribute>
value select(runtime& rt, value const& v, arguments& args) {
  return make_object<selected>(rt, v, std::move(args), Keep, ByAttribute);
}

}  // namespace

std::vector<builtin> const& selecting_filters() {
  static std::vector<builtin> const filters{
      {"map", map}, {"select", select<true, false>}, {"reject", select<false, false>}, {"selectattr", select<true, true>},
      {"rejectattr", select<false, true>},
  };
  return filters;
}

}  // namespace fermata::jinja

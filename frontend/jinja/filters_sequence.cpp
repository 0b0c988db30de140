// Filters that take a sequence as a whole. Those that are generators in Jinja2 give one-shot iterators here, and do
// nothing (not even fail) until they are walked.
#include <algorithm>
#include <functional>
#include <optional>

#include "frontend/jinja/attribute_path.hpp"
#include "frontend/jinja/methods.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

// A generator whose elements are made together when the first one is asked for.
class deferred final : public iterator {
 public:
  using maker = std::function<std::vector<value>(runtime&)>;
  deferred(maker m, unsigned below) : make_{std::move(m)} { depth = nesting_above(below); }
  bool next(runtime& rt, value& out) override {
    if (make_) {
      runtime::deeper const guard{rt};
      items_ = std::exchange(make_, nullptr)(rt);
    }
    if (at_ >= items_.size()) return false;
    out = std::move(items_[at_++]);
    return true;
  }

 private:
  maker make_;
  std::vector<value> items_;
  std::size_t at_ = 0;
};

// `held` are the other values that `make` holds on to.
value generator(runtime& rt, value const& over, std::vector<value> const& held, deferred::maker make) {
  return make_object<deferred>(rt, std::move(make), std::max(nesting(over), nesting(held)));
}

bool flag(value const& v) { return !v.is_missing() && truth(v); }

value first(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "first", 0, 0);
  cursor each{rt, v};
  value item;
  return each.next(item) ? item : undefined_hint("No first item, sequence was empty.");
}

bool reversible(value const& v) {
  return v.is_sequence() || v.is_string() || v.is_dict() || v.is_undefined() ||
         (v.is_object() && (dynamic_cast<range_object*>(&v.as_object()) || dynamic_cast<dict_view*>(&v.as_object())));
}

value last(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "last", 0, 0);
  if (!reversible(v)) fail(std::string{"'"} + type_name(v) + "' object is not reversible");
  if (v.is_sequence() && !v.items().empty()) return v.items().back();
  if (v.is_string() && !v.text().empty()) return value{v.text().substr(text::previous(v.text(), v.text().size()))};
  auto const items = to_items(rt, v);
  return items.empty() ? undefined_hint("No last item, sequence was empty.") : items.back();
}

value reverse(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "reverse", 0, 0);
  if (v.is_string()) return get_slice(rt, v, value::missing(), value::missing(), value{-1});
  if (!is_iterable(v)) fail("reverse: argument must be iterable");
  auto items = to_items(rt, v);
  std::reverse(items.begin(), items.end());
  if (!reversible(v)) return rt.make_list(std::move(items));
  return generator(rt, v, {}, [items = std::move(items)](runtime&) mutable { return std::move(items); });
}

value list(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "list", 0, 0);
  if (v.type() == kind::list) return v;
  return rt.make_list(to_items(rt, v));
}

value join(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "join", {"d", "attribute"}, 0);
  std::optional<attribute_path> path;
  if (!p[1].is_missing() && !p[1].is_none()) path.emplace(rt, p[1]);
  value const separator = p[0].is_missing() ? value{""} : p[0];
  auto items = to_items(rt, v);
  bool markup = separator.is_markup();
  for (auto& item : items) {
    if (path) item = path->of(rt, item);
    markup = markup || item.is_markup();
  }
  markup = markup && rt.autoescape;
  std::string const between = markup ? escaped(rt, separator).text() : to_text(rt, separator);
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::size_t const before = out.size();
    if (i) out += between;
    if (markup)
      out += escaped(rt, items[i]).text();
    else
      append_text(rt, out, items[i]);
    rt.allocate(out.size() - before);
  }
  return markup ? value::markup(std::move(out)) : value{std::move(out)};
}

value items_filter(runtime& rt, value const& v, arguments& args) {
  positional_only(args, "items", 0, 0);
  return generator(rt, v, {}, [v](runtime& state) {
    std::vector<value> out;
    if (v.is_undefined()) return out;
    if (!v.is_dict()) fail("can only get item pairs from a mapping");
    for (auto const& [key, item] : v.entries()) out.push_back(state.make_tuple({key, item}));
    return out;
  });
}

value dictsort(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "dictsort", {"case_sensitive", "by", "reverse"}, 0);
  bool by_value = false;
  if (!p[1].is_missing()) {
    if (!p[1].is_string() || (p[1].text() != "key" && p[1].text() != "value")) fail("dictsort: you can only sort by either \"key\" or \"value\"");
    by_value = p[1].text() == "value";
  }
  if (v.is_undefined()) refuse_undefined(v);
  if (!v.is_dict()) fail(std::string{"dictsort needs a dict, not "} + type_name(v));
  struct row {
    value key;
    value pair;
  };
  std::vector<row> rows;
  for (auto const& [key, item] : v.entries())
    rows.push_back({lowered(rt, by_value ? item : key, flag(p[0])), rt.make_tuple({key, item})});
  sort_items(rt, rows, [](row const& r) -> value const& { return r.key; }, flag(p[2]));
  std::vector<value> out;
  for (auto& r : rows) out.push_back(std::move(r.pair));
  return rt.make_list(std::move(out));
}

struct keyed {
  value key;
  value item;
};
std::vector<value> unkeyed(std::vector<keyed> rows) {
  std::vector<value> out;
  out.reserve(rows.size());
  for (auto& r : rows) out.push_back(std::move(r.item));
  return out;
}
value const& key_of(keyed const& k) { return k.key; }

value sort(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "sort", {"reverse", "case_sensitive", "attribute"}, 0);
  auto const paths = attribute_paths(rt, p[2]);
  std::vector<keyed> rows;
  for (auto& item : to_items(rt, v)) {
    std::vector<value> keys;
    for (auto const& path : paths) keys.push_back(lowered(rt, path.of(rt, item), flag(p[1])));
    value key = rt.make_list(std::move(keys));
    rows.push_back({std::move(key), std::move(item)});
  }
  sort_items(rt, rows, key_of, flag(p[0]));
  return rt.make_list(unkeyed(std::move(rows)));
}

value unique(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "unique", {"case_sensitive", "attribute"}, 0);
  return generator(rt, v, p, [v, p](runtime& state) {
    attribute_path const path{state, p[1]};
    std::vector<value::pair> seen;
    for (auto& item : to_items(state, v)) seen.emplace_back(lowered(state, path.of(state, item), flag(p[0])), std::move(item));
    // A dict keeps the first key of equal ones; what it holds is the index of the first item.
    std::vector<value::pair> index;
    for (std::size_t i = seen.size(); i-- > 0;) index.emplace_back(seen[i].first, value{static_cast<std::int64_t>(i)});
    value const first_of = state.make_dict(std::move(index));
    std::vector<value> out;
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (first_of.entries()[first_of.mapping().find(seen[i].first)].second.integer() == static_cast<std::int64_t>(i))
        out.push_back(std::move(seen[i].second));
    return out;
  });
}

template <bool Max>
value extreme(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, Max ? "max" : "min", {"case_sensitive", "attribute"}, 0);
  cursor each{rt, v};
  value item;
  if (!each.next(item)) return undefined_hint("No aggregated item, sequence was empty.");
  attribute_path const path{rt, p[1]};
  value best = item, best_key = lowered(rt, path.of(rt, item), flag(p[0]));
  while (each.next(item)) {
    value key = lowered(rt, path.of(rt, item), flag(p[0]));
    if (!ordered(rt, Max ? operation::gt : operation::lt, key, best_key)) continue;
    best = std::move(item);
    best_key = std::move(key);
  }
  return best;
}

value sum(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "sum", {"attribute", "start"}, 0);
  value total = p[1].is_missing() ? value{0} : p[1];
  if (total.is_string()) fail("sum cannot add strings, use join");
  attribute_path const path{rt, p[0]};
  cursor each{rt, v};
  value item;
  while (each.next(item)) total = arithmetic(rt, operation::add, total, path.of(rt, item));
  return total;
}

value batch(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "batch", {"linecount", "fill_with"}, 1);
  return generator(rt, v, p, [v, p](runtime& state) {
    auto const per_line = p[0].is_integral() ? p[0].integer() : -1;
    std::vector<value> out, line;
    for (auto& item : to_items(state, v)) {
      if (static_cast<std::int64_t>(line.size()) == per_line) out.push_back(state.make_list(std::exchange(line, {})));
      line.push_back(std::move(item));
    }
    if (line.empty()) return out;
    bool const fill = !p[1].is_missing() && !p[1].is_none();
    if (fill && to_index(p[0], "linecount of batch") > static_cast<std::int64_t>(line.size())) {
      state.allocate(static_cast<std::size_t>(per_line));
      state.allocate(static_cast<std::size_t>(per_line) * sizeof(value));
      line.resize(static_cast<std::size_t>(per_line), p[1]);
    }
    out.push_back(state.make_list(std::move(line)));
    return out;
  });
}

value slice_filter(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "slice", {"slices", "fill_with"}, 1);
  return generator(rt, v, p, [v, p](runtime& state) {
    auto const items = to_items(state, v);
    auto const slices = to_index(p[0], "slices of slice");
    if (slices == 0) fail("integer division or modulo by zero");
    std::vector<value> out;
    auto const total = static_cast<std::int64_t>(items.size());
    auto const each = slices > 0 ? total / slices : 0, extra = slices > 0 ? total % slices : 0;
    std::int64_t from = 0;
    for (std::int64_t n = 0; n < slices; ++n) {
      auto const to = from + each + (n < extra ? 1 : 0);
      std::vector<value> part(items.begin() + from, items.begin() + to);
      if (!p[1].is_missing() && !p[1].is_none() && n >= extra) part.push_back(p[1]);
      out.push_back(state.make_list(std::move(part)));
      from = to;
    }
    return out;
  });
}

value groupby(runtime& rt, value const& v, arguments& args) {
  auto const p = bind_arguments(args, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  attribute_path const path{rt, p[0], p[1]};
  std::vector<keyed> rows;
  for (auto& item : to_items(rt, v)) {
    value key = lowered(rt, path.of(rt, item), flag(p[2]));
    rows.push_back({std::move(key), std::move(item)});
  }
  sort_items(rt, rows, key_of, false);
  std::vector<value> out;
  for (std::size_t i = 0; i < rows.size();) {
    std::vector<value> group;
    value const key = rows[i].key;
    value const shown = path.of(rt, rows[i].item);  // in the case of the first item
    do group.push_back(rows[i++].item);
    while (i < rows.size() && equal(rt, rows[i].key, key));
    out.push_back(value::group(shown, rt.make_list(std::move(group))));
  }
  return rt.make_list(std::move(out));
}

}  // namespace

std::vector<builtin> const& sequence_filters() {
  static std::vector<builtin> const filters{
      {"first", first}, {"last", last}, {"reverse", reverse}, {"list", list}, {"join", join}, {"items", items_filter},
      {"dictsort", dictsort}, {"sort", sort}, {"unique", unique}, {"min", extreme<false>}, {"max", extreme<true>}, {"sum", sum},
      {"batch", batch}, {"slice", slice_filter}, {"groupby", groupby},
  };
  return filters;
}

}  // namespace fermata::jinja

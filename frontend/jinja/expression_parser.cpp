// See expression_parser.hpp.
#include "frontend/jinja/expression_parser.hpp"

#include <optional>
#include <set>

#include "frontend/jinja/numbers.hpp"

namespace fermata::jinja {
namespace {

std::optional<operation> compared(token_type type) noexcept {
  switch (type) {
    case token_type::eq: return operation::eq;
    case token_type::ne: return operation::ne;
    case token_type::lt: return operation::lt;
    case token_type::lteq: return operation::lteq;
    case token_type::gt: return operation::gt;
    case token_type::gteq: return operation::gteq;
    default: return std::nullopt;
  }
}

std::optional<operation> multiplied(token_type type) noexcept {
  switch (type) {
    case token_type::mul: return operation::mul;
    case token_type::div: return operation::div;
    case token_type::floordiv: return operation::floordiv;
    case token_type::mod: return operation::mod;
    default: return std::nullopt;
  }
}

bool reserved(std::string_view name) noexcept {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" || name == "None";
}

}  // namespace

expression_ptr expression_parser::parse_tuple(tuple_mode mode) {
  nest const guard{*this};
  std::size_t const at = current().at;
  std::vector<expression_ptr> items;
  bool is_tuple = false;
  auto const ends = [&] {
    return is(token_type::variable_end) || is(token_type::block_end) || is(token_type::rparen) ||
           (!mode.end_name.empty() && is_name(mode.end_name));
  };
  while (true) {
    if (!items.empty()) expect(token_type::comma);
    if (ends()) break;
    items.push_back(mode.simplified ? parse_primary(mode.with_namespace) : parse_expression(mode.with_conditional));
    if (!is(token_type::comma)) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items.front());
    if (!mode.parenthesised) refuse("expected an expression, got " + shown(current()), current().at);
  }
  auto tuple = std::make_unique<tuple_literal>();
  tuple->items = std::move(items);
  return made(std::move(tuple), at);
}

expression_ptr expression_parser::parse_expression(bool with_conditional) {
  return with_conditional ? parse_conditional() : parse_or();
}

expression_ptr expression_parser::parse_conditional() {
  nest const guard{*this};
  std::size_t const at = current().at;
  auto e = parse_or();
  while (skip_if_name("if")) {
    auto c = std::make_unique<conditional>();
    c->then = std::move(e);
    c->test = parse_or();
    if (skip_if_name("else")) c->otherwise = parse_conditional();
    e = made(std::move(c), at);
  }
  return e;
}

expression_ptr expression_parser::parse_or() {
  std::size_t const at = current().at;
  auto left = parse_and();
  while (skip_if_name("or")) {
    auto l = std::make_unique<logical>();
    l->left = std::move(left);
    l->right = parse_and();
    left = made(std::move(l), at);
  }
  return left;
}

expression_ptr expression_parser::parse_and() {
  std::size_t const at = current().at;
  auto left = parse_not();
  while (skip_if_name("and")) {
    auto l = std::make_unique<logical>();
    l->is_and = true;
    l->left = std::move(left);
    l->right = parse_not();
    left = made(std::move(l), at);
  }
  return left;
}

expression_ptr expression_parser::parse_not() {
  if (!is_name("not")) return parse_comparison();
  nest const guard{*this};
  std::size_t const at = next().at;
  auto u = std::make_unique<unary>();
  u->op = operation::negate;
  u->operand = parse_not();
  return made(std::move(u), at);
}

expression_ptr expression_parser::parse_comparison() {
  std::size_t const at = current().at;
  auto first = parse_sum();
  std::vector<std::pair<operation, expression_ptr>> rest;
  while (true) {
    if (auto const op = compared(current().type)) {
      next();
      rest.emplace_back(*op, parse_sum());
    } else if (skip_if_name("in")) {
      rest.emplace_back(operation::in, parse_sum());
    } else if (is_name("not") && is_name(look(), "in")) {
      next();
      next();
      rest.emplace_back(operation::not_in, parse_sum());
    } else {
      break;
    }
  }
  if (rest.empty()) return first;
  auto c = std::make_unique<comparison>();
  c->first = std::move(first);
  c->rest = std::move(rest);
  return made(std::move(c), at);
}

expression_ptr expression_parser::binary_of(operation op, expression_ptr left, expression_ptr right, std::size_t at) {
  auto b = std::make_unique<binary>();
  b->op = op;
  b->left = std::move(left);
  b->right = std::move(right);
  return made(std::move(b), at);
}

expression_ptr expression_parser::parse_sum() {
  std::size_t const at = current().at;
  auto left = parse_concatenation();
  while (is(token_type::add) || is(token_type::sub)) {
    auto const op = next().type == token_type::add ? operation::add : operation::sub;
    auto right = parse_concatenation();
    left = binary_of(op, std::move(left), std::move(right), at);
  }
  return left;
}

expression_ptr expression_parser::parse_concatenation() {
  std::size_t const at = current().at;
  auto first = parse_product();
  if (!is(token_type::tilde)) return first;
  auto c = std::make_unique<concatenation>();
  c->parts.push_back(std::move(first));
  while (skip_if(token_type::tilde)) c->parts.push_back(parse_product());
  return made(std::move(c), at);
}

expression_ptr expression_parser::parse_product() {
  std::size_t const at = current().at;
  auto left = parse_power();
  while (auto const op = multiplied(current().type)) {
    next();
    auto right = parse_power();
    left = binary_of(*op, std::move(left), std::move(right), at);
  }
  return left;
}

// Jinja2 writes chains of ** into Python code, where they group from the right; but each step is put in brackets first.
expression_ptr expression_parser::parse_power() {
  std::size_t const at = current().at;
  auto left = parse_unary();
  while (skip_if(token_type::pow)) {
    auto right = parse_unary();
    left = binary_of(operation::pow, std::move(left), std::move(right), at);
  }
  return left;
}

expression_ptr expression_parser::parse_unary(bool with_filters) {
  nest const guard{*this};
  std::size_t const at = current().at;
  expression_ptr e;
  if (is(token_type::sub) || is(token_type::add)) {
    auto u = std::make_unique<unary>();
    u->op = next().type == token_type::sub ? operation::neg : operation::pos;
    u->operand = parse_unary(false);
    e = made(std::move(u), at);
  } else {
    e = parse_primary();
  }
  e = parse_postfix(std::move(e));
  return with_filters ? parse_filter_expression(std::move(e)) : std::move(e);
}

expression_ptr expression_parser::parse_name(bool with_namespace) {
  auto const& t = next();
  if (reserved(t.text)) {
    auto c = std::make_unique<constant>();
    char const initial = static_cast<char>(t.text[0] | 0x20);
    if (initial != 'n') c->literal = value{initial == 't'};
    return made(std::move(c), t.at);
  }
  if (with_namespace && skip_if(token_type::dot)) {
    auto r = std::make_unique<namespace_reference>();
    r->name = t.text;
    r->attribute = expect(token_type::name).text;
    return made(std::move(r), t.at);
  }
  auto n = std::make_unique<name_expression>();
  n->name = t.text;
  return made(std::move(n), t.at);
}

expression_ptr expression_parser::parse_primary(bool with_namespace) {
  auto const& t = current();
  switch (t.type) {
    case token_type::name: return parse_name(with_namespace);
    case token_type::string: {
      std::string joined;
      while (is(token_type::string)) joined += next().text;
      auto c = std::make_unique<constant>();
      c->literal = value{std::move(joined)};
      return made(std::move(c), t.at);
    }
    case token_type::integer:
    case token_type::real: {
      auto c = std::make_unique<constant>();
      c->literal = t.type == token_type::integer ? integer_from_text(t.text, 0) : value{real_from_text(t.text).value_or(0)};
      next();
      return made(std::move(c), t.at);
    }
    case token_type::lparen: {
      next();
      auto e = parse_tuple({.parenthesised = true});
      expect(token_type::rparen);
      return e;
    }
    case token_type::lbracket: return parse_list();
    case token_type::lbrace: return parse_dict();
    default: refuse("unexpected " + shown(t), t.at);
  }
}

expression_ptr expression_parser::parse_list() {
  nest const guard{*this};
  std::size_t const at = expect(token_type::lbracket).at;
  auto list = std::make_unique<list_literal>();
  while (!is(token_type::rbracket)) {
    if (!list->items.empty()) expect(token_type::comma);
    if (is(token_type::rbracket)) break;
    list->items.push_back(parse_expression());
  }
  expect(token_type::rbracket);
  return made(std::move(list), at);
}

expression_ptr expression_parser::parse_dict() {
  nest const guard{*this};
  std::size_t const at = expect(token_type::lbrace).at;
  auto dict = std::make_unique<dict_literal>();
  while (!is(token_type::rbrace)) {
    if (!dict->entries.empty()) expect(token_type::comma);
    if (is(token_type::rbrace)) break;
    auto key = parse_expression();
    expect(token_type::colon);
    dict->entries.emplace_back(std::move(key), parse_expression());
  }
  expect(token_type::rbrace);
  return made(std::move(dict), at);
}

expression_ptr expression_parser::parse_postfix(expression_ptr e) {
  while (true) {
    if (is(token_type::dot) || is(token_type::lbracket))
      e = parse_subscript(std::move(e));
    else if (is(token_type::lparen))
      e = parse_call(std::move(e));
    else
      return e;
  }
}

expression_ptr expression_parser::parse_filter_expression(expression_ptr e) {
  while (true) {
    if (is(token_type::pipe))
      e = parse_filter(std::move(e));
    else if (is_name("is"))
      e = parse_test(std::move(e));
    else if (is(token_type::lparen))
      e = parse_call(std::move(e));
    else
      return e;
  }
}

expression_ptr expression_parser::parse_subscript(expression_ptr e) {
  auto const& t = next();
  if (t.type == token_type::lbracket) return parse_bracketed(std::move(e), t.at);
  auto const& name = next();
  if (name.type == token_type::name) {
    auto a = std::make_unique<attribute>();
    a->of = std::move(e);
    a->name = value{name.text};
    return made(std::move(a), t.at);
  }
  if (name.type != token_type::integer) refuse("expected a name or a number behind '.'", name.at);
  auto s = std::make_unique<subscript>();
  auto c = std::make_unique<constant>();
  c->literal = integer_from_text(name.text, 10);
  s->key = made(std::move(c), name.at);
  s->of = std::move(e);
  return made(std::move(s), t.at);
}

expression_ptr expression_parser::parse_bracketed(expression_ptr of, std::size_t at) {
  std::vector<expression_ptr> keys;
  std::unique_ptr<slice> sliced;
  bool several = false;
  while (!is(token_type::rbracket)) {
    if (!keys.empty() || sliced) {
      expect(token_type::comma);
      several = true;
    }
    if (sliced) refuse("a slice is the only thing allowed between its brackets", at);
    expression_ptr first;
    if (!is(token_type::colon)) {
      first = parse_expression();
      if (!is(token_type::colon)) {
        keys.push_back(std::move(first));
        continue;
      }
    }
    if (several) refuse("a slice is the only thing allowed between its brackets", at);
    next();
    sliced = std::make_unique<slice>();
    sliced->start = std::move(first);
    if (!is(token_type::colon) && !is(token_type::rbracket) && !is(token_type::comma)) sliced->stop = parse_expression();
    if (skip_if(token_type::colon) && !is(token_type::rbracket) && !is(token_type::comma)) sliced->step = parse_expression();
  }
  expect(token_type::rbracket);
  if (sliced) {
    sliced->of = std::move(of);
    return made(std::move(sliced), at);
  }
  auto s = std::make_unique<subscript>();
  s->of = std::move(of);
  if (keys.size() == 1) {
    s->key = std::move(keys.front());
  } else {
    auto tuple = std::make_unique<tuple_literal>();
    tuple->items = std::move(keys);
    s->key = made(std::move(tuple), at);
  }
  return made(std::move(s), at);
}

void expression_parser::parse_arguments(call_arguments& into) {
  nest const guard{*this};
  std::size_t const at = expect(token_type::lparen).at;
  auto const ensure = [&](bool good) {
    if (!good) refuse("arguments are in a wrong order: positional, then named, then *list, then **dict", at);
  };
  std::set<std::string> names;
  bool comma = false;
  while (!is(token_type::rparen)) {
    if (comma) {
      expect(token_type::comma);
      if (is(token_type::rparen)) break;
    }
    comma = true;
    if (skip_if(token_type::mul)) {
      ensure(!into.star && !into.star_star);
      into.star = parse_expression();
    } else if (skip_if(token_type::pow)) {
      ensure(!into.star_star);
      into.star_star = parse_expression();
    } else if (is(token_type::name) && look().type == token_type::assign) {
      ensure(!into.star_star);
      std::string name = next().text;
      if (!names.insert(name).second) refuse("argument '" + name + "' is given twice", at);
      next();
      into.named.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(!into.star && !into.star_star && into.named.empty());
      into.positional.push_back(parse_expression());
    }
  }
  expect(token_type::rparen);
}

expression_ptr expression_parser::parse_call(expression_ptr e) {
  auto c = std::make_unique<call>();
  std::size_t const at = current().at;
  c->member = dynamic_cast<attribute const*>(e.get());
  c->callee = std::move(e);
  parse_arguments(c->args);
  return made(std::move(c), at);
}

std::string expression_parser::dotted_name() {
  std::string name = expect(token_type::name).text;
  while (skip_if(token_type::dot)) name += "." + expect(token_type::name).text;
  return name;
}

expression_ptr expression_parser::parse_filter(expression_ptr subject, bool start_inline) {
  while (is(token_type::pipe) || start_inline) {
    if (!start_inline) next();
    start_inline = false;
    auto f = std::make_unique<filter>();
    std::size_t const at = current().at;
    f->name = dotted_name();
    f->subject = std::move(subject);
    if (is(token_type::lparen)) parse_arguments(f->args);
    subject = made(std::move(f), at);
  }
  return subject;
}

expression_ptr expression_parser::parse_test(expression_ptr e) {
  std::size_t const at = next().at;
  bool const negated = skip_if_name("not");
  auto t = std::make_unique<test>();
  t->subject = std::move(e);
  t->name = dotted_name();
  if (is(token_type::lparen)) {
    parse_arguments(t->args);
  } else if ((is(token_type::name) || is(token_type::string) || is(token_type::integer) || is(token_type::real) ||
              is(token_type::lbracket) || is(token_type::lbrace)) &&
             !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) refuse("tests cannot be chained with 'is'", current().at);
    t->args.positional.push_back(parse_postfix(parse_primary()));
  }
  expression_ptr result = made(std::move(t), at);
  if (!negated) return result;
  auto u = std::make_unique<unary>();
  u->op = operation::negate;
  u->operand = std::move(result);
  return made(std::move(u), at);
}

std::unique_ptr<name_expression> expression_parser::parse_name_target() {
  auto const& t = expect(token_type::name);
  if (reserved(t.text)) refuse("cannot assign to '" + t.text + "'", t.at);
  auto n = std::make_unique<name_expression>();
  n->name = t.text;
  n->use = name_use::store;
  return made(std::move(n), t.at);
}

void expression_parser::make_target(expression& e, name_use use) const {
  if (auto* name = dynamic_cast<name_expression*>(&e)) {
    name->use = use;
  } else if (auto* tuple = dynamic_cast<tuple_literal*>(&e)) {
    for (auto& item : tuple->items) make_target(*item, use);
  } else if (!dynamic_cast<namespace_reference*>(&e)) {
    refuse("cannot assign to this expression; a name, a tuple of names or namespace.attribute can be set", e.at);
  }
}

expression_ptr expression_parser::parse_target(std::string_view end_name, bool with_namespace) {
  auto target = parse_tuple({.simplified = true, .end_name = end_name, .with_namespace = with_namespace});
  make_target(*target, name_use::store);
  return target;
}

}  // namespace fermata::jinja

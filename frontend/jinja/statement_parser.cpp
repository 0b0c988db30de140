// Statements of a template. Knows what Python's compiler would refuse in the code that Jinja2 generates: a break outside a
// loop, a parameter named twice.
#include <set>
#include <string>

#include "frontend/jinja/expression_parser.hpp"
#include "frontend/jinja/parser.hpp"

namespace fermata::jinja {
namespace {

class statement_parser final : expression_parser {
 public:
  explicit statement_parser(std::vector<token> tokens) : expression_parser{std::move(tokens)} {}

  body parse() { return parse_until({}); }
  bool has_blocks() const noexcept { return has_blocks_; }

 private:
  using names = std::initializer_list<std::string_view>;

  bool at_any(names ends) const {
    for (auto const& end : ends)
      if (is_name(end)) return true;
    return false;
  }

  // Statements up to a tag named in `ends`, whose name is then the current token.
  body parse_until(names ends) {
    nest const guard{*this};
    body out;
    while (!is(token_type::eof)) {
      if (is(token_type::data)) {
        auto text = std::make_unique<text_statement>();
        std::size_t const at = current().at;
        text->data = next().text;
        out.push_back(made(std::move(text), at));
      } else if (is(token_type::variable_begin)) {
        std::size_t const at = next().at;
        auto print = std::make_unique<print_statement>();
        print->printed = parse_tuple({});
        expect(token_type::variable_end);
        out.push_back(made(std::move(print), at));
      } else {
        expect(token_type::block_begin);
        if (at_any(ends)) return out;
        parse_statement(out, ends);
        expect(token_type::block_end);
      }
    }
    if (ends.size()) {
      std::string wanted;
      for (auto const& end : ends) wanted += (wanted.empty() ? "'" : " or '") + std::string{end} + "'";
      refuse("unexpected end of the template; " + wanted + " is missing for the block '" + open_tags_.back().first + "'",
             open_tags_.back().second);
    }
    return out;
  }

  body parse_body(names ends) {
    skip_if(token_type::colon);
    expect(token_type::block_end);
    return parse_until(ends);
  }
  body parse_body_to(std::string_view end) {
    auto content = parse_body({end});
    next();
    return content;
  }

  void parse_statement(body& out, names ends) {
    auto const t = current();
    if (t.type != token_type::name) refuse("expected the name of a tag, got " + shown(t), t.at);
    open_tags_.emplace_back(t.text, t.at);
    auto statement = dispatch(t, out, ends);
    open_tags_.pop_back();
    if (statement) out.push_back(std::move(statement));
  }

  std::unique_ptr<statement> dispatch(token const& t, body& out, names ends) {
    if (t.text == "if") return parse_if();
    if (t.text == "for") return parse_for();
    if (t.text == "set") return parse_set();
    if (t.text == "macro") return parse_macro();
    if (t.text == "call") return parse_call_block();
    if (t.text == "filter") return parse_filter_block();
    if (t.text == "generation") return parse_generation();
    if (t.text == "with") return parse_with();
    if (t.text == "break" || t.text == "continue") return parse_loop_control(t);
    if (t.text == "autoescape") return parse_autoescape();
    if (t.text == "block") return parse_block();
    if (t.text == "print") return parse_print(out);
    if (t.text == "include" || t.text == "import" || t.text == "from" || t.text == "extends") return parse_loading(t);
    std::string message = "unknown tag '" + t.text + "'";
    if (ends.size()) {
      message += "; expected";
      for (auto const& end : ends) message += (&end == ends.begin() ? " '" : " or '") + std::string{end} + "'";
      if (open_tags_.size() > 1) message += " to end the block '" + open_tags_[open_tags_.size() - 2].first + "'";
    }
    refuse(message, t.at);
  }

  std::unique_ptr<statement> parse_if() {
    auto node = std::make_unique<if_statement>();
    std::size_t const at = next().at;
    while (true) {
      auto condition = parse_tuple({.with_conditional = false});
      node->branches.emplace_back(std::move(condition), parse_body({"elif", "else", "endif"}));
      auto const& end = next();
      if (end.text == "elif") continue;
      if (end.text == "else") node->otherwise = parse_body_to("endif");
      break;
    }
    return made(std::move(node), at);
  }

  std::unique_ptr<statement> parse_for() {
    auto node = std::make_unique<for_statement>();
    std::size_t const at = next().at;
    node->target = parse_target("in", false);
    expect_name("in");
    node->iterated = parse_tuple({.with_conditional = false, .end_name = "recursive"});
    if (skip_if_name("if")) {
      node->condition = parse_expression();
      node->condition_target = copy_target(*node->target);
    }
    node->recursive = skip_if_name("recursive");
    unsigned const loops = std::exchange(loops_, node->recursive ? 1 : loops_ + 1);
    node->content = parse_body({"endfor", "else"});
    loops_ = node->recursive ? 0 : loops;
    if (next().text == "else") node->otherwise = parse_body_to("endfor");
    loops_ = loops;
    refuse_loop_target(*node);
    return made(std::move(node), at);
  }

  expression_ptr copy_target(expression const& target) {
    if (auto const* name = dynamic_cast<name_expression const*>(&target)) {
      auto copy = std::make_unique<name_expression>();
      copy->name = name->name;
      copy->use = name->use;
      return made(std::move(copy), name->at);
    }
    auto copy = std::make_unique<tuple_literal>();
    for (auto const& item : static_cast<tuple_literal const&>(target).items) copy->items.push_back(copy_target(*item));
    return made(std::move(copy), target.at);
  }

  static void refuse_loop_target(node& in) {
    in.children([](node& child) {
      if (auto const* name = dynamic_cast<name_expression const*>(&child); name && name->use == name_use::store && name->name == "loop")
        refuse("cannot assign to 'loop' inside a for loop", name->at);
      refuse_loop_target(child);
    });
  }

  std::unique_ptr<statement> parse_set() {
    std::size_t const at = next().at;
    auto target = parse_target({}, true);
    if (skip_if(token_type::assign)) {
      auto node = std::make_unique<set_statement>();
      node->target = std::move(target);
      node->assigned = parse_tuple({});
      return made(std::move(node), at);
    }
    auto node = std::make_unique<set_block>();
    node->target = std::move(target);
    node->filtered = parse_filter(nullptr);
    node->content = parse_body_to("endset");
    return made(std::move(node), at);
  }

  void parse_signature(macro_definition& macro) {
    std::set<std::string> seen;
    expect(token_type::lparen);
    while (!is(token_type::rparen)) {
      if (!macro.parameters.empty()) expect(token_type::comma);
      auto parameter = parse_name_target();
      parameter->use = name_use::parameter;
      if (!seen.insert(parameter->name).second) refuse("parameter '" + parameter->name + "' is named twice", parameter->at);
      if (skip_if(token_type::assign))
        macro.defaults.push_back(parse_expression());
      else if (!macro.defaults.empty())
        refuse("a parameter without default follows one with a default", parameter->at);
      macro.parameters.push_back(std::move(parameter));
    }
    expect(token_type::rparen);
  }

  void parse_macro_body(macro_definition& macro, std::string_view end) {
    unsigned const loops = std::exchange(loops_, 0);
    macro.content = parse_body_to(end);
    loops_ = loops;
  }

  std::unique_ptr<statement> parse_macro() {
    auto node = std::make_unique<macro_statement>();
    std::size_t const at = next().at;
    node->macro.at = static_cast<std::uint32_t>(at);
    node->macro.name = parse_name_target()->name;
    parse_signature(node->macro);
    parse_macro_body(node->macro, "endmacro");
    return made(std::move(node), at);
  }

  std::unique_ptr<statement> parse_call_block() {
    auto node = std::make_unique<call_block>();
    std::size_t const at = next().at;
    node->caller.at = static_cast<std::uint32_t>(at);
    if (is(token_type::lparen)) parse_signature(node->caller);
    auto called = parse_expression();
    if (!dynamic_cast<call*>(called.get())) refuse("expected a call behind '{% call'", at);
    node->called.reset(static_cast<call*>(called.release()));
    parse_macro_body(node->caller, "endcall");
    return made(std::move(node), at);
  }

  std::unique_ptr<statement> parse_generation() {
    auto node = std::make_unique<generation_block>();
    std::size_t const at = next().at;
    node->caller.at = static_cast<std::uint32_t>(at);
    parse_macro_body(node->caller, "endgeneration");
    return made(std::move(node), at);
  }

  std::unique_ptr<statement> parse_filter_block() {
    auto node = std::make_unique<filter_block>();
    std::size_t const at = next().at;
    node->filtered = parse_filter(nullptr, true);
    node->content = parse_body_to("endfilter");
    return made(std::move(node), at);
  }

  std::unique_ptr<statement> parse_with() {
    auto node = std::make_unique<with_statement>();
    std::size_t const at = next().at;
    while (!is(token_type::block_end)) {
      if (!node->targets.empty()) expect(token_type::comma);
      auto target = parse_target({}, false);
      make_target(*target, name_use::parameter);
      node->targets.push_back(std::move(target));
      expect(token_type::assign);
      node->values.push_back(parse_expression());
    }
    node->content = parse_body_to("endwith");
    return made(std::move(node), at);
  }

  std::unique_ptr<statement> parse_loop_control(token const& t) {
    auto node = std::make_unique<loop_control>();
    node->is_break = t.text == "break";
    next();
    if (loops_ == 0) refuse("'" + t.text + "' outside a for loop", t.at);
    return made(std::move(node), t.at);
  }

  std::unique_ptr<statement> parse_autoescape() {
    auto node = std::make_unique<autoescape_statement>();
    std::size_t const at = next().at;
    node->enabled = parse_expression();
    node->content = parse_body_to("endautoescape");
    return made(std::move(node), at);
  }

  std::unique_ptr<statement> parse_block() {
    auto node = std::make_unique<block_statement>();
    std::size_t const at = next().at;
    node->name = expect(token_type::name).text;
    node->scoped = skip_if_name("scoped");
    node->required = skip_if_name("required");
    unsigned const loops = std::exchange(loops_, 0);
    node->content = parse_body_to("endblock");
    loops_ = loops;
    skip_if_name(node->name);
    has_blocks_ = true;
    return made(std::move(node), at);
  }

  std::unique_ptr<statement> parse_print(body& out) {
    std::size_t const at = next().at;
    bool first = true;
    while (!is(token_type::block_end)) {
      if (!first) expect(token_type::comma);
      first = false;
      auto node = std::make_unique<print_statement>();
      node->printed = parse_expression();
      out.push_back(made(std::move(node), at));
    }
    return nullptr;
  }

  // The arguments don't matter: running the statement is an error.
  std::unique_ptr<statement> parse_loading(token const& t) {
    auto node = std::make_unique<loading_statement>();
    node->tag = t.text;
    next();
    while (!is(token_type::block_end) && !is(token_type::eof)) next();
    return made(std::move(node), t.at);
  }

  std::vector<std::pair<std::string, std::size_t>> open_tags_;
  unsigned loops_ = 0;
  bool has_blocks_ = false;
};

}  // namespace

std::shared_ptr<tree const> parse_tree(std::string source) {
  auto made = std::make_shared<tree>();
  made->source = std::move(source);
  statement_parser parser{tokenize(made->source)};
  made->content = parser.parse();
  made->has_blocks = parser.has_blocks();
  bind_tree(*made);
  return made;
}

}  // namespace fermata::jinja

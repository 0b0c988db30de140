// Cuts a template into tokens, with the white-space rules of Jinja2 under trim_blocks and lstrip_blocks:
// a newline behind `%}` or `#}` is dropped, blanks before `{%` or `{#` at the start of a line are dropped, `-` eats all
// white space on its side, `+` keeps it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::jinja {

enum class token_type : unsigned char {
  data, variable_begin, variable_end, block_begin, block_end, name, string, integer, real,
  add, assign, colon, comma, div, dot, eq, floordiv, gt, gteq, lbrace, lbracket, lparen, lt, lteq, mod, mul, ne, pipe,
  pow, rbrace, rbracket, rparen, semicolon, sub, tilde, eof,
};

struct token {
  token_type type = token_type::eof;
  std::string text;    // data and strings decoded; numbers without underscores
  std::size_t at = 0;  // byte of the source
};

// How an error message names a token type.
std::string_view describe(token_type type) noexcept;

// Line ends become "\n"; one trailing newline is dropped.
std::string normalise_source(std::string_view source);

// Tokens of a normalised source; ends with one eof token. Throws syntax_fault.
std::vector<token> tokenize(std::string_view source);

}  // namespace fermata::jinja

// Tokens to tree. Accepts what Jinja2's parser and compiler accept, with the extensions that transformers loads.
#pragma once

#include <memory>
#include <string>

#include "frontend/jinja/syntax.hpp"

namespace fermata::jinja {

// Parses and binds a normalised source. Throws syntax_fault.
std::shared_ptr<tree const> parse_tree(std::string source);

// Resolves the names, filters and tests of a parsed tree (binding.cpp).
void bind_tree(tree& t);

}  // namespace fermata::jinja

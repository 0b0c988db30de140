// The text of a simulated node: a random byte-level vocabulary with a tokenizer, a chat template and Program's token
// table, all from one description, as a real node makes them. Half characters and malformed bytes are among the tokens.
//
// What text a client must see is computed here by a second, plainer way: bytes in a row, characters repaired over the
// whole, cut before the first stop string.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/planning/text_model.hpp"
#include "native/program.hpp"
#include "random.hpp"

namespace fermata::simulation {

struct words {
    std::shared_ptr<const text_model> model;   // null: no text layer
    std::shared_ptr<const token_table> table;  // what Program's guard sees
};

// Letters a to f and the bytes of one two-byte character are the first tokens; the last id ends an answer.
// `vocabulary` is at least 12.
words draw_words(random_source& random, std::uint32_t vocabulary);

// No merges: text becomes one token a byte, of the first ids. Only for letters that draw_words knows.
std::vector<token_id> encoded(std::string_view text);
// The whole answer's text; half a character at its end is withheld.
std::string expected_text(const words& of, const std::vector<token_id>& tokens, const std::vector<std::string>& stop);

}  // namespace fermata::simulation

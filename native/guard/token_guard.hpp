// Decides, between sampling and commit, whether a token ends its row: end-of-generation ids, stop tokens, stop
// strings over token bytes, the token budget, the context limit. A row that ends never runs another unit.
//
// All state is derived from the answer's tokens, in order: feed a fresh guard the same tokens and it stands at the
// same place (fault 77).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "messages/generation.hpp"
#include "native/guard/stop_matcher.hpp"

namespace fermata {

struct token_table;  // native/program.hpp

namespace guard {

class token_guard {
public:
    token_guard() = default;
    // `room` is how many tokens the context leaves for the answer. `table` may be null: no ids end an answer and no
    // token has bytes.
    token_guard(const guard_spec& spec, std::shared_ptr<const token_table> table, token_pos room);

    // How many answer tokens there can be at most: the smaller of budget and context.
    token_pos tokens_max() const noexcept { return tokens_max_; }

    // The token became the answer's `generated`-th. `none`: the row goes on.
    finish_reason accept(token_id token, token_pos generated);

private:
    bool ends_generation(token_id token) const;
    std::vector<token_id> ends_;  // sorted: stop tokens and, unless ignored, end-of-generation ids
    std::shared_ptr<const token_table> table_;
    stop_matcher stops_;
    token_pos tokens_max_{0};
};

}  // namespace guard
}  // namespace fermata

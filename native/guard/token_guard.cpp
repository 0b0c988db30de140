// See token_guard.hpp.
#include "native/guard/token_guard.hpp"

#include <algorithm>

#include "native/program.hpp"

namespace fermata::guard {

token_guard::token_guard(const guard_spec& spec, std::shared_ptr<const token_table> table, token_pos room)
    : ends_(spec.stop_tokens), table_(std::move(table)), stops_(spec.stop),
      tokens_max_(std::min(spec.max_new_tokens, room)) {
    if (table_ && !spec.ignore_eos)
        ends_.insert(ends_.end(), table_->end_of_generation.begin(), table_->end_of_generation.end());
    std::sort(ends_.begin(), ends_.end());
}

bool token_guard::ends_generation(token_id token) const {
    return std::binary_search(ends_.begin(), ends_.end(), token);
}

finish_reason token_guard::accept(token_id token, token_pos generated) {
    if (ends_generation(token)) return finish_reason::stop;
    if (!stops_.empty() && table_ && token >= 0 && static_cast<std::size_t>(token) < table_->bytes.size() &&
        stops_.feed(table_->bytes[static_cast<std::size_t>(token)]))
        return finish_reason::stop;
    return generated < tokens_max_ ? finish_reason::none : finish_reason::length;
}

}  // namespace fermata::guard

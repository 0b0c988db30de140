// What messages promise beyond their types, checked where they come from a file. Cores rely on these promises: on the
// bus the sender keeps them, in a journal anybody may have written.
#pragma once

#include <string>

#include "messages/all.hpp"

namespace fermata {

// Empty: the promises hold. Else what does not.
template <class M>
std::string contract_fault(const M&) {
    return {};
}

inline std::string contract_fault(const enqueue& m) {
    if (m.choices.empty()) return "enqueue.choices: empty";
    for (const auto& each : m.choices)
        if (!each || each->prompt.empty()) return "enqueue.choices: a choice without a prompt";
    return {};
}
inline std::string contract_fault(const checkpoint_published& m) {
    return m.tokens.size() < m.coverage.value ? "checkpoint_published.tokens: fewer than it covers" : std::string();
}

}  // namespace fermata

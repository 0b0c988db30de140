// What a journal without text may show of a message. Token ids go through a random one-to-one map drawn for this
// journal and kept in memory only: equality of tokens stays, so that every decision about content replays, but nobody
// can read the text. Names of sessions become numbers in order of appearance; every other string becomes its length.
// Applying it twice changes nothing more (a masked string keeps its form), so replays can mask what they compare.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "messages/wire/reflect.hpp"

namespace fermata {

// "<12 bytes>"; the empty string and what has this form already stay.
std::string masked_text(std::string_view text);

class journal_mask {
public:
    // `text`: nothing is masked. Ids in [0, vocabulary) are permuted among themselves.
    journal_mask(bool text, std::uint32_t vocabulary);

    void apply(bus_message& message);

private:
    template <class T>
    void walk(T& x, std::string_view name);
    token_id token(token_id id) const;
    std::string session(const std::string& name);

    bool text_ = false;
    std::vector<token_id> map_;
    std::unordered_map<std::string, std::uint32_t> sessions_;
};

}  // namespace fermata

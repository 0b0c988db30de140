// The oracle's right output, computed from tokens alone.
#include "native/models/oracle/hashes.hpp"
#include "native/models/oracle/oracle.hpp"

namespace fermata::oracle {

reference::reference(const options& how)
    : how_(how), prefix_(empty_prefix), digest_(empty_digest), page_digest_(empty_digest) {}

void reference::feed(token_id token) {
    prefix_ = extend_prefix(prefix_, token);
    const std::uint64_t page = fed_ / how_.page_tokens;
    if (how_.verify == verify_mode::tail && fed_ % how_.page_tokens == 0) {
        // A new page begins: the window drops the page before the last one. Page 1's window starts at page 0.
        if (page > 0) digest_ = page_digest_;
        page_digest_ = empty_digest;
    }
    for (std::uint32_t layer = 0; layer < how_.layers; ++layer)
        for (std::uint32_t word = 0; word < how_.kv_bytes / 8; ++word) {
            const std::uint64_t value = kv_word(prefix_, page, layer, word);
            digest_ = fold(digest_, value);
            page_digest_ = fold(page_digest_, value);
        }
    ++fed_;
}

std::uint64_t reference::seed() const { return seed_of(prefix_, digest_); }

token_id reference::next() const { return static_cast<token_id>(seed() % how_.vocabulary); }

void reference::logits(std::span<float> out) const { write_logits(seed(), out); }

std::vector<token_id> expected(const options& how, std::span<const token_id> prompt, std::size_t n) {
    reference known(how);
    for (token_id token : prompt) known.feed(token);
    std::vector<token_id> out;
    out.reserve(n);
    while (out.size() < n) {
        out.push_back(known.next());
        known.feed(out.back());
    }
    return out;
}

}  // namespace fermata::oracle

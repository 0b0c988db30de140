// An immutable run of token ids, shared between actors without copying: a shared vector, an offset and a length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "messages/vocabulary.hpp"

namespace fermata {

class token_run {
public:
    token_run() = default;
    explicit token_run(std::vector<token_id> tokens)
        : tokens_(std::make_shared<const std::vector<token_id>>(std::move(tokens))), size_(tokens_->size()) {}

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    token_id operator[](std::size_t i) const { return (*tokens_)[offset_ + i]; }
    std::span<const token_id> span() const noexcept {
        return tokens_ ? std::span<const token_id>(tokens_->data() + offset_, size_) : std::span<const token_id>{};
    }
    // The part [offset, offset + size); clamped to this run. Shares the tokens.
    token_run part(std::size_t offset, std::size_t size) const {
        token_run result = *this;
        offset = offset < size_ ? offset : size_;
        result.offset_ = offset_ + offset;
        result.size_ = size < size_ - offset ? size : size_ - offset;
        return result;
    }
    friend bool operator==(const token_run& a, const token_run& b) {
        auto x = a.span(), y = b.span();
        return x.size() == y.size() && (x.data() == y.data() || std::equal(x.begin(), x.end(), y.begin()));
    }

private:
    std::shared_ptr<const std::vector<token_id>> tokens_;
    std::size_t offset_ = 0;
    std::size_t size_ = 0;
};

}  // namespace fermata

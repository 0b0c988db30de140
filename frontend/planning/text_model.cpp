#include "frontend/planning/text_model.hpp"

#include <algorithm>
#include <utility>

namespace fermata {

text_model::text_model(std::shared_ptr<const text::tokenizer> words, std::string template_source)
    : words_(std::move(words)) {
    if (!template_source.empty()) template_ = jinja::program::parse(template_source);
    if (!words_) return;
    for (std::size_t i = 0; i < words_->vocabulary_size(); ++i)
        token_bytes_max_ = std::max<std::uint64_t>(token_bytes_max_, words_->token_bytes(static_cast<token_id>(i)).size());
    if (words_->bos() != no_token) bos_text_ = words_->token_bytes(words_->bos());
    if (words_->eos() != no_token) eos_text_ = words_->token_bytes(words_->eos());
}

// A normalizer may shorten a text: composing takes at most three bytes for one, and nothing that models use more than
// four.
std::uint64_t text_model::bytes_of_tokens_max(std::uint64_t tokens) const noexcept {
    constexpr std::uint64_t shortening_max = 4;
    return tokens * token_bytes_max_ * (words_ && words_->normalizes() ? shortening_max : 1);
}

std::vector<std::string> text_model::answer_bytes() const {
    std::vector<std::string> bytes;
    if (!words_) return bytes;
    bytes.resize(words_->vocabulary_size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto id = static_cast<token_id>(i);
        if (!words_->is_special(id)) bytes[i] = words_->token_bytes(id);
    }
    return bytes;
}

}  // namespace fermata

#include "frontend/planning/text_model.hpp"

#include <utility>

namespace fermata {

text_model::text_model(std::shared_ptr<const text::tokenizer> words, std::string template_source)
    : words_(std::move(words)) {
    if (!template_source.empty()) template_ = jinja::program::parse(template_source);
    if (!words_) return;
    if (words_->bos() != no_token) bos_text_ = words_->token_bytes(words_->bos());
    if (words_->eos() != no_token) eos_text_ = words_->token_bytes(words_->eos());
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

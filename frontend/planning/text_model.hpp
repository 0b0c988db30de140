// The text side of a resident model: tokenizer and chat template, made once, immutable, shared by all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/jinja/jinja.hpp"
#include "frontend/tokenizer/tokenizer.hpp"

namespace fermata {

class text_model {
public:
    // `words` may be null: the model then takes and gives token ids only. `template_source` empty: no chat template.
    // Throws jinja::error when the template can't be parsed.
    text_model(std::shared_ptr<const text::tokenizer> words, std::string template_source);

    bool has_text() const noexcept { return words_ != nullptr; }
    bool has_chat_template() const noexcept { return template_.has_value(); }
    const std::shared_ptr<const text::tokenizer>& words() const noexcept { return words_; }
    const jinja::program& chat_template() const { return *template_; }

    // Texts of the special tokens that templates name; empty where the model has none.
    const std::string& bos_text() const noexcept { return bos_text_; }
    const std::string& eos_text() const noexcept { return eos_text_; }

    // What tells before tokenising that a text is longer than any this many tokens can stand for.
    std::uint64_t bytes_of_tokens_max(std::uint64_t tokens) const noexcept;

    // What the token guard sees of each token: its bytes as part of an answer's text, empty for special ones.
    std::vector<std::string> answer_bytes() const;

private:
    std::shared_ptr<const text::tokenizer> words_;
    std::optional<jinja::program> template_;
    std::string bos_text_, eos_text_;
    std::uint64_t token_bytes_max_ = 0;
};

}  // namespace fermata

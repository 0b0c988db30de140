#include "frontend/tokenizer/kinds.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "frontend/tokenizer/tokenizer.hpp"

namespace fermata::text {

namespace {

using steps = std::vector<split_step_pointer>;

// The letters with case that deepseek-llm keeps together, and its punctuation; both as the model's files list them.
constexpr std::string_view deepseek_letters =
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌ"
    "ῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲"
    "𐳀-𐳲𑢠-𑣟𞤀-𞥃";
constexpr std::string_view deepseek_punctuation = "!-/:-~！-／：-～‘-‟　-。";
constexpr std::string_view deepseek_ideographs = "一-龥ࠀ-一가-퟿";

split_step_pointer single_digits() { return split_characters(character_set::number, delimiter::isolated); }
split_step_pointer newlines() { return split_characters(character_set::newline, delimiter::isolated); }

steps llama_bpe() { return {split_cl100k(3, false)}; }
steps gpt_2() { return {split_gpt2()}; }
steps digits_then_gpt_2() { return {single_digits(), split_gpt2()}; }
steps qwen2() { return {split_cl100k(1, false)}; }
steps qwen35() { return {split_cl100k(1, true)}; }
steps deepseek_llm() {
    return {newlines(),
            split_runs(deepseek_letters, true),
            split_runs(deepseek_punctuation, true),
            split_trailing_space(),
            split_runs(deepseek_ideographs, false),
            single_digits()};
}
steps deepseek_coder() {
    return {newlines(), split_letter_runs(), split_punctuation_runs(), split_runs(deepseek_ideographs, false),
            single_digits()};
}

struct family {
    std::string_view name;
    steps (*make)();
    bool ignore_merges;
    bool nfc;  // the models' own tokenizers compose characters first
};

constexpr std::array<family, 10> families{{
    {"llama-bpe", llama_bpe, true, false},
    {"gpt-2", gpt_2, false, false},
    {"smollm", digits_then_gpt_2, false, false},
    {"starcoder", digits_then_gpt_2, false, false},
    {"refact", digits_then_gpt_2, false, false},
    {"command-r", digits_then_gpt_2, false, true},
    {"qwen2", qwen2, false, true},
    {"qwen35", qwen35, false, true},
    {"deepseek-llm", deepseek_llm, false, false},
    {"deepseek-coder", deepseek_coder, false, false},
}};

struct alias {
    std::string_view name, family;
};

constexpr std::array<alias, 25> aliases{{
    {"llama3", "llama-bpe"},      {"llama-v3", "llama-bpe"},   {"falcon3", "llama-bpe"},
    {"falcon-h1", "llama-bpe"},   {"pixtral", "llama-bpe"},    {"midm-2.0", "llama-bpe"},
    {"lfm2", "llama-bpe"},        {"jina-v5-nano", "llama-bpe"},
    {"phi-2", "gpt-2"},           {"jina-es", "gpt-2"},        {"jina-de", "gpt-2"},
    {"gigachat", "gpt-2"},        {"jina-v2-es", "gpt-2"},     {"jina-v2-de", "gpt-2"},
    {"a.x-4.0", "gpt-2"},         {"mellum", "gpt-2"},         {"modern-bert", "gpt-2"},
    {"jina-v1-en", "gpt-2"},      {"jina-v2-code", "gpt-2"},   {"roberta-bpe", "gpt-2"},
    {"exaone4", "gpt-2"},
    {"deepseek-r1-qwen", "qwen2"}, {"kormo", "qwen2"},         {"f2llmv2", "qwen2"},
    {"megrez", "qwen2"},
}};

}  // namespace

tokenizer_kind kind_of_tokenizer(std::string_view name) {
    std::string_view family_name = name;
    for (const auto& a : aliases) {
        if (a.name == name) family_name = a.family;
    }
    for (const auto& f : families) {
        if (f.name != family_name) continue;
        std::vector<normalizing_step_pointer> normal;
        if (f.nfc) normal.push_back(normalize_to(normal_form::nfc));
        return {name, f.name, f.ignore_merges, splitter(f.make()), normalizer(std::move(normal))};
    }
    std::string message = name.empty() ? std::string("the vocabulary states no kind (tokenizer.ggml.pre)")
                                       : "tokenizer kind '" + std::string(name) + "' is not supported";
    message += "; supported:";
    for (const auto& f : families) message.append(" ").append(f.name);
    throw unsupported_tokenizer(message);
}

}  // namespace fermata::text

#include "frontend/tokenizer/kinds.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "frontend/tokenizer/tokenizer.hpp"

namespace fermata::text {

namespace {

using steps = std::vector<split_step_pointer>;

// What the DeepSeek files list as letters with case, as punctuation, and as ideographs and the like.
constexpr code_point_range deepseek_letters[] = {
    {0x41, 0x5A}, {0x61, 0x7A}, {0xB5, 0xB5}, {0xC0, 0xD6}, {0xD8, 0xF6}, {0xF8, 0x1BA}, {0x1BC, 0x1BF},
    {0x1C4, 0x293}, {0x295, 0x2AF}, {0x370, 0x373}, {0x376, 0x377}, {0x37B, 0x37D}, {0x37F, 0x37F},
    {0x386, 0x386}, {0x388, 0x38A}, {0x38C, 0x38C}, {0x38E, 0x3A1}, {0x3A3, 0x3F5}, {0x3F7, 0x481},
    {0x48A, 0x52F}, {0x531, 0x556}, {0x10A0, 0x10C5}, {0x13A0, 0x13F5}, {0x13F8, 0x13FD}, {0x1C90, 0x1CBA},
    {0x1CBD, 0x1CBF}, {0x1D00, 0x1D2B}, {0x1D6B, 0x1D77}, {0x1D79, 0x1D9A}, {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D}, {0x1F20, 0x1F45}, {0x1F48, 0x1F4D}, {0x1F50, 0x1F57}, {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B}, {0x1F5D, 0x1F5D}, {0x1F5F, 0x1F7D}, {0x1F80, 0x1FB4}, {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE}, {0x1FC2, 0x1FC4}, {0x1FC6, 0x1FCC}, {0x1FD0, 0x1FD3}, {0x1FD6, 0x1FDB},
    {0x1FE0, 0x1FEC}, {0x1FF2, 0x1FF4}, {0x1FF6, 0x1FFC}, {0x2102, 0x2102}, {0x2107, 0x2107},
    {0x210A, 0x2113}, {0x2115, 0x2115}, {0x2119, 0x211D}, {0x2124, 0x2124}, {0x2126, 0x2126},
    {0x2128, 0x2128}, {0x212A, 0x212D}, {0x212F, 0x2134}, {0x2139, 0x2139}, {0x213C, 0x213F},
    {0x2145, 0x2149}, {0x214E, 0x214E}, {0x2183, 0x2184}, {0x2C00, 0x2C7B}, {0x2C7E, 0x2CE4},
    {0x2CEB, 0x2CEE}, {0x2CF2, 0x2CF3}, {0xA640, 0xA66D}, {0xA680, 0xA69B}, {0xA722, 0xA76F},
    {0xA771, 0xA787}, {0xA78B, 0xA78E}, {0xAB70, 0xABBF}, {0xFB00, 0xFB06}, {0xFB13, 0xFB17},
    {0xFF21, 0xFF3A}, {0xFF41, 0xFF5A}, {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943}};
constexpr code_point_range deepseek_punctuation[] = {
    {0x21, 0x2F}, {0x3A, 0x7E}, {0x2018, 0x201F}, {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
constexpr code_point_range deepseek_ideographs[] = {
    {0x800, 0x9FA5}, {0xAC00, 0xD7FF}};

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

#include "native/weights/vocabulary.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "native/weights/limits.hpp"

namespace fermata {
namespace {

using weights::fail;
using weights::shown;

std::vector<token_type> read_types(const model_file& file, std::size_t tokens) {
    const std::string_view key = "tokenizer.ggml.token_type";
    const auto numbers = file.metadata().integers(key);
    if (!numbers) return {};
    if (numbers->size() != tokens)
        fail(file.metadata_place(), "key " + std::string(key) + " has " + std::to_string(numbers->size()) +
                                        " entries for " + std::to_string(tokens) + " tokens");
    std::vector<token_type> types;
    types.reserve(numbers->size());
    for (std::size_t i = 0; i < numbers->size(); ++i) {
        const std::int64_t number = (*numbers)[i];
        if (number < 0 || number > static_cast<std::int64_t>(token_type::byte))
            fail(file.metadata_place(), "key " + std::string(key) + " gives token " + std::to_string(i) + " the type " +
                                            std::to_string(number) + "; types go from 0 to 6");
        types.push_back(static_cast<token_type>(number));
    }
    return types;
}

// Absent, or the "none" some converters write, is no token.
token_id read_id(const model_file& file, std::string_view key, std::size_t tokens) {
    constexpr std::uint64_t none = 0xffffffffu;
    const weights::metadata_value* const value = file.metadata().find(key);
    if (value == nullptr) return no_token;
    if (value->type == weights::metadata_type::i32 && file.metadata().number(key) == -1.0) return no_token;
    const std::uint64_t id = *file.metadata().unsigned_integer(key);
    if (id == none) return no_token;
    if (id >= tokens)
        fail(file.metadata_place(), "key " + std::string(key) + " is " + std::to_string(id) + ", but there are " +
                                        std::to_string(tokens) + " tokens");
    return static_cast<token_id>(id);
}

std::vector<token_id> end_ids(const model_file& file, std::size_t tokens) {
    std::set<token_id> ids;
    for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"}) {
        const token_id id = read_id(file, key, tokens);
        if (id != no_token) ids.insert(id);
    }
    return {ids.begin(), ids.end()};
}

// What applies when the file doesn't say, per kind of tokenizer.
bool adds_bos_by_default(const vocabulary_description& vocabulary) {
    if (vocabulary.model == "llama") return true;
    constexpr std::string_view kinds[] = {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral"};
    return std::ranges::find(kinds, vocabulary.pre_tokenizer) != std::end(kinds);
}

}  // namespace

vocabulary_description read_vocabulary(const model_file& file) {
    if (file.format() != model_format::gguf)
        fail(file.path(), "is a folder; its vocabulary is in tokenizer.json");
    const weights::metadata& values = file.metadata();
    const auto model = values.string("tokenizer.ggml.model");
    const auto tokens = values.strings("tokenizer.ggml.tokens");
    if (!model || !tokens || tokens->empty())
        fail(file.metadata_place(), "has no vocabulary (keys tokenizer.ggml.model and tokenizer.ggml.tokens)");
    if (tokens->size() > weights::limits::vocabulary_max)
        fail(file.metadata_place(), "has " + std::to_string(tokens->size()) + " tokens; at most " +
                                        std::to_string(weights::limits::vocabulary_max) + " are allowed");
    vocabulary_description result;
    result.model = *model;
    result.pre_tokenizer = values.string("tokenizer.ggml.pre").value_or("");
    result.tokens.assign(tokens->begin(), tokens->end());
    result.types = read_types(file, result.tokens.size());
    if (const auto merges = values.strings("tokenizer.ggml.merges")) result.merges.assign(merges->begin(), merges->end());
    result.bos = read_id(file, "tokenizer.ggml.bos_token_id", result.tokens.size());
    result.eos = read_id(file, "tokenizer.ggml.eos_token_id", result.tokens.size());
    result.eot = read_id(file, "tokenizer.ggml.eot_token_id", result.tokens.size());
    result.unknown = read_id(file, "tokenizer.ggml.unknown_token_id", result.tokens.size());
    result.padding = read_id(file, "tokenizer.ggml.padding_token_id", result.tokens.size());
    result.end_of_generation = end_ids(file, result.tokens.size());
    result.add_bos = values.boolean("tokenizer.ggml.add_bos_token").value_or(adds_bos_by_default(result));
    result.add_eos = values.boolean("tokenizer.ggml.add_eos_token").value_or(false);
    result.add_space_prefix = values.boolean("tokenizer.ggml.add_space_prefix").value_or(result.model == "llama");
    result.chat_template = values.string("tokenizer.chat_template").value_or("");
    return result;
}

}  // namespace fermata

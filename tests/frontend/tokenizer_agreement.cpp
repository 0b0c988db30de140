// Agreement with the `tokenizers` library: for each kind 10,000 generated texts without and 10,000 with
// special tokens, on real vocabularies (GPT-2, Qwen2, SmolLM2). FERMATA_VOCABULARIES names a folder with
// every kind's own vocabulary, which is read too.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "frontend/tokenizer/tokenizer.hpp"
#include "tests/frontend/tokenizer_support.hpp"

using namespace fermata;
using namespace tokenizer_support;

namespace {

constexpr const char* kinds[] = {"gpt-2",     "smollm", "starcoder", "refact",       "command-r",
                                 "llama-bpe", "qwen2",  "qwen35",    "deepseek-llm", "deepseek-coder"};

void check_kind(const std::string& folder, const std::string& kind) {
    INFO("kind " << kind);
    const auto expected = nlohmann::json::parse(read_file(folder + kind + ".json"));
    auto vocabulary = read_vocabulary(folder + expected.at("vocabulary").get<std::string>() + ".vocabulary");
    vocabulary.pre_tokenizer = kind;
    const auto words = text::tokenizer::from_vocabulary(vocabulary);
    const auto strings = expected.at("strings").get<std::size_t>(),
               block = expected.at("block").get<std::size_t>();
    check_round(*words, expected.at("plain"), strings, block, false);
    check_round(*words, expected.at("special"), strings, block, true);
}

}  // namespace

TEST_CASE("every kind gives the ids of the reference, text by text") {
    for (const char* kind : kinds) check_kind(fixtures(), kind);
}

TEST_CASE("so does every kind with its own vocabulary, where there is a folder of them") {
    const char* folder = std::getenv("FERMATA_VOCABULARIES");
    if (folder == nullptr) {
        MESSAGE("FERMATA_VOCABULARIES is not set");
        return;
    }
    for (const char* kind : kinds) check_kind(std::string(folder) + "/", kind);
}

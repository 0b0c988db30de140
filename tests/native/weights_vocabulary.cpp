// The vocabulary of a GGUF file as data for the text layer.
#include <doctest/doctest.h>

#include "native/weights/vocabulary.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/model_error.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

vocabulary_description read(const gguf_builder& builder) {
    const temporary_folder folder;
    write_file(folder / "v.gguf", builder.build());
    return read_vocabulary(model_file::open(folder / "v.gguf"));
}

std::string refuse(const gguf_builder& builder) {
    return refusal([&] { read(builder); });
}

gguf_builder with_tokens(const std::vector<std::string>& tokens, const char* pre = "gpt-2") {
    gguf_builder builder;
    builder.add_string("tokenizer.ggml.model", "gpt2");
    builder.add_string("tokenizer.ggml.pre", pre);
    builder.add_strings("tokenizer.ggml.tokens", tokens);
    return builder;
}

}  // namespace

TEST_CASE("vocabulary: everything a file says") {
    const temporary_folder folder;
    random_model_options options;
    options.with_tensors = false;
    write_random_gguf(folder / "v.gguf", options);
    const auto vocabulary = read_vocabulary(model_file::open(folder / "v.gguf"));
    const auto& expected = the_random_vocabulary();
    CHECK(vocabulary.model == "gpt2");
    CHECK(vocabulary.pre_tokenizer == "smollm");
    CHECK(vocabulary.tokens == expected.tokens);
    CHECK(vocabulary.merges == expected.merges);
    CHECK(vocabulary.types.size() == expected.tokens.size());
    CHECK(vocabulary.types[0] == token_type::normal);
    CHECK(vocabulary.types.back() == token_type::control);
    CHECK(vocabulary.bos == expected.turn_start);
    CHECK(vocabulary.eos == expected.turn_end);
    CHECK(vocabulary.eot == no_token);
    CHECK(vocabulary.unknown == expected.end_of_text);
    CHECK(vocabulary.end_of_generation == std::vector<token_id>{expected.turn_end});
    CHECK_FALSE(vocabulary.add_bos);
    CHECK_FALSE(vocabulary.add_space_prefix);
    CHECK(vocabulary.chat_template == random_model_template);
}

TEST_CASE("vocabulary: ends of an answer are those the file states") {
    auto builder = with_tokens({"a", "<|eot_id|>", "<|eom_id|>", "b", "c", "<|endoftext|>", "<end_of_turn>"});
    builder.add_u32("tokenizer.ggml.eos_token_id", 3);
    builder.add_u32("tokenizer.ggml.eot_token_id", 1);
    builder.add_u32("tokenizer.ggml.eom_token_id", 4);
    const auto vocabulary = read(builder);
    CHECK(vocabulary.end_of_generation == std::vector<token_id>{1, 3, 4});
    CHECK(vocabulary.eot == 1);
    CHECK(read(with_tokens({"x", "y"})).end_of_generation.empty());
}

TEST_CASE("vocabulary: a beginning token is added by the kinds that add one") {
    CHECK(read(with_tokens({"a"}, "llama-bpe")).add_bos);
    CHECK_FALSE(read(with_tokens({"a"}, "qwen2")).add_bos);
    auto off = with_tokens({"a"}, "llama-bpe");
    off.add_bool("tokenizer.ggml.add_bos_token", false);
    CHECK_FALSE(read(off).add_bos);
    auto on = with_tokens({"a"}, "qwen2");
    on.add_bool("tokenizer.ggml.add_bos_token", true);
    on.add_bool("tokenizer.ggml.add_eos_token", true);
    CHECK(read(on).add_bos);
    CHECK(read(on).add_eos);
}

TEST_CASE("vocabulary: faults") {
    CHECK(mentions(refuse(gguf_builder()), "v.gguf: has no vocabulary"));
    CHECK(mentions(refuse(with_tokens({})), "has no vocabulary"));
    auto types = with_tokens({"a", "b"});
    types.add_i32s("tokenizer.ggml.token_type", {1});
    CHECK(mentions(refuse(types), "tokenizer.ggml.token_type has 1 entries for 2 tokens"));
    auto type = with_tokens({"a", "b"});
    type.add_i32s("tokenizer.ggml.token_type", {1, 7});
    CHECK(mentions(refuse(type), "gives token 1 the type 7; types go from 0 to 6"));
    auto id = with_tokens({"a", "b"});
    id.add_u32("tokenizer.ggml.eos_token_id", 2);
    CHECK(mentions(refuse(id), "key tokenizer.ggml.eos_token_id is 2, but there are 2 tokens"));
    auto none = with_tokens({"a", "b"});
    none.add_u32("tokenizer.ggml.bos_token_id", 0xffffffffu);
    none.add_i32("tokenizer.ggml.padding_token_id", -1);
    CHECK(read(none).bos == no_token);
    CHECK(read(none).padding == no_token);
    auto numbers = with_tokens({"a"});
    numbers.add_i32s("tokenizer.ggml.merges", {1, 2});
    CHECK(mentions(refuse(numbers), "tokenizer.ggml.merges is of type array of i32, it should be an array of strings"));
    const temporary_folder folder;
    write_random_folder(folder.path(), random_model_options{});
    CHECK(mentions(refusal([&] { read_vocabulary(model_file::open(folder.path())); }), "its vocabulary is in tokenizer.json"));
}

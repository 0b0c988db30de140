// Opening a whole model: the demo model's figures, memory given back, digests, summaries.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "native/weights/describe.hpp"
#include "native/weights/tensor_names.hpp"
#include "native/weights/vocabulary.hpp"
#include "tests/support/demo_model.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

// Resident bytes of the mappings of this file, from the kernel's own table.
std::size_t resident_bytes(const std::string& path) {
    std::ifstream table("/proc/self/smaps");
    std::size_t sum = 0;
    bool ours = false;
    for (std::string line; std::getline(table, line);) {
        if (line.find('-') < line.find(' ')) ours = line.find(path) != std::string::npos;
        if (ours && line.starts_with("Rss:")) {
            std::istringstream fields(line.substr(4));
            std::size_t kilobytes = 0;
            fields >> kilobytes;
            sum += kilobytes * 1024;
        }
    }
    return sum;
}

unsigned touch(const tensor_view& tensor) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < tensor.data.size(); i += 1024) sum += static_cast<unsigned>(tensor.data[i]);
    return sum;
}

}  // namespace

TEST_CASE("model file: the demo model's figures") {
    const std::string path = demo_model_path(FERMATA_SOURCE_DIR);
    if (path.empty()) {
        MESSAGE("skipped: 'bash tools/model.sh' gets the demo model");
        return;
    }
    const auto file = model_file::open(path);
    CHECK(file.file_bytes() == 98362432);
    CHECK(file.gguf_version() == 3);
    CHECK(file.architecture() == "llama");
    CHECK(file.tensors().size() == 272);
    CHECK(file.parameters() == 134515008);
    auto sizes = read_llama_hyperparameters(file);
    CHECK(sizes.layers == 30);
    CHECK(sizes.width == 576);
    CHECK(sizes.heads == 9);
    CHECK(sizes.kv_heads == 3);
    CHECK(sizes.head_width == 64);
    CHECK(sizes.feed_forward_width == 1536);
    CHECK(sizes.vocabulary == 49152);
    CHECK(sizes.context_tokens == 8192);
    CHECK(sizes.rope_theta == 100000.0);
    CHECK(sizes.rms_epsilon == 1e-5f);
    CHECK(sizes.tied_head);
    CHECK(sizes.query_key_rows_permuted);
    const llama_tensors tensors(file, sizes);
    CHECK(tensors.skipped().empty());
    CHECK(tensors.require(tensor_role::token_embedding, -1, 49152, 576).type == dtype::q8_0);
    CHECK(tensors.require(tensor_role::down, 29, 576, 1536).type == dtype::q4_1);
    const auto vocabulary = read_vocabulary(file);
    CHECK(vocabulary.tokens.size() == 49152);
    CHECK(vocabulary.merges.size() == 48900);
    CHECK(vocabulary.pre_tokenizer == "smollm");
    CHECK(vocabulary.tokens[2] == "<|im_end|>");
    CHECK(vocabulary.types[2] == token_type::control);
    CHECK(vocabulary.bos == 1);
    CHECK(vocabulary.eos == 2);
    CHECK(vocabulary.end_of_generation == std::vector<token_id>{2});
    CHECK_FALSE(vocabulary.add_bos);
    const auto description = describe(file);
    REQUIRE(description.types.size() == 3);
    CHECK(description.types[0].type == "Q4_1");
    CHECK(description.types[0].tensors == 210);
    CHECK(description.types[0].bytes == 66355200);
    CHECK(description.vocabulary_kind == "gpt2/smollm");
    CHECK(description.chat_template);
}

TEST_CASE("model file: released tensors leave memory and stay readable") {
    const temporary_folder folder;
    random_model_options options;
    options.format = dtype::f32;
    write_random_gguf(folder / "big.gguf", options);
    const auto file = model_file::open(folder / "big.gguf");
    const std::size_t at_start = resident_bytes(folder / "big.gguf");
    unsigned before = 0;
    for (const auto& tensor : file.tensors()) before += touch(tensor.view);
    const std::size_t touched = resident_bytes(folder / "big.gguf");
    CHECK(touched > at_start + file.tensor_bytes() / 2);

    const tensor_view& up = *file.find("blk.0.ffn_up.weight");  // 2 MiB
    file.release(up);
    const std::size_t one_released = resident_bytes(folder / "big.gguf");
    CHECK(one_released + up.data.size() <= touched + 2 * 4096 + 65536);
    file.release_all();
    CHECK(resident_bytes(folder / "big.gguf") <= at_start + 65536);

    unsigned again = 0;
    for (const auto& tensor : file.tensors()) again += touch(tensor.view);
    CHECK(again == before);
    CHECK(file.metadata().string("general.architecture") == "llama");
}

TEST_CASE("model file: a digest knows weights, not paths") {
    const temporary_folder folder;
    random_model_options options;
    options.width = 64;
    options.heads = 4;
    options.head_width = 16;
    options.feed_forward_width = 96;
    const auto digest = [&](const char* name) {
        write_random_gguf(folder / name, options);
        return model_file::open(folder / name).content_digest();
    };
    const std::string first = digest("a.gguf");
    CHECK(first.size() == 32);
    CHECK(digest("b.gguf") == first);
    options.seed = 2;
    CHECK(digest("c.gguf") != first);
    options.seed = 1;
    options.rope_theta = 10001;
    CHECK(digest("d.gguf") != first);
    options.rope_theta = 10000;
    std::string bytes = random_gguf(options);
    bytes[bytes.size() - 40] = static_cast<char>(bytes[bytes.size() - 40] ^ 1);  // one bit of the last tensor
    write_file(folder / "e.gguf", bytes);
    CHECK(model_file::open(folder / "e.gguf").content_digest() != first);
}

TEST_CASE("model file: a summary for people") {
    const temporary_folder folder;
    random_model_options options;
    options.format = dtype::bf16;
    options.rope_divisors = true;
    options.shards = 2;
    write_random_folder(folder / "hf", options);
    const auto description = describe(model_file::open(folder / "hf"));
    CHECK(description.format == "safetensors");
    CHECK(description.files == 2);
    CHECK(description.vocabulary_kind == "tokenizer.json");
    CHECK(description.chat_template);
    const std::string text = to_text(description);
    CHECK(text.find("format: safetensors, 2 files, ") == 0);
    CHECK(text.find("heads: 8 of 64, 2 for keys and values\n") != std::string::npos);
    CHECK(text.find("RoPE: base 10000, 64 dimensions, scaled as Llama 3 by 8\n") != std::string::npos);
    CHECK(text.find("  BF16: 15 tensors, ") != std::string::npos);

    // A vocabulary without a model is described too.
    gguf_builder vocabulary;
    vocabulary.add_string("general.architecture", "llama\n");
    vocabulary.add_string("tokenizer.ggml.model", "gpt2");
    vocabulary.add_strings("tokenizer.ggml.tokens", {"a", "b"});
    write_file(folder / "v.gguf", vocabulary.build());
    const std::string other = to_text(describe(model_file::open(folder / "v.gguf")));
    CHECK(other.find("architecture: 'llama\\x0a'\n") != std::string::npos);
    CHECK(other.find("vocabulary: gpt2, 2 tokens\n") != std::string::npos);
}

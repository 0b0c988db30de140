// Hyperparameters from both forms of file. For config.json the values expected are those that the transformers library
// computes from the same text (tools/fixtures/config_fixtures.py).
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "native/weights/hyperparameters.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/model_error.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/safetensors_builder.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace fermata;
using namespace fermata::test_support;
using json = nlohmann::ordered_json;

namespace {

// A folder with this config.json and no tensors.
llama_hyperparameters read_config(const json& config) {
    const temporary_folder folder;
    write_file(folder / "config.json", config.dump());
    write_file(folder / "model.safetensors", safetensors_builder::assemble("{}", ""));
    return read_llama_hyperparameters(model_file::open(folder.path()));
}

std::string refuse_config(const json& changes) {
    json config = {{"model_type", "llama"}};
    config.update(changes);
    return refusal([&] { read_config(config); });
}

void add_gguf_sizes(gguf_builder& file, const std::string& architecture, const std::string& without) {
    file.add_string("general.architecture", architecture);
    const std::pair<const char*, std::uint32_t> sizes[] = {
        {"block_count", 3},      {"context_length", 1000}, {"embedding_length", 96},
        {"feed_forward_length", 160}, {"attention.head_count", 6},
    };
    for (const auto& [key, value] : sizes)
        if (without != key) file.add_u32(architecture + "." + key, value);
    if (without != "attention.layer_norm_rms_epsilon")
        file.add_f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
    if (without != "vocab_size") file.add_u32(architecture + ".vocab_size", 77);
}

struct gguf_case {
    gguf_builder file;
    explicit gguf_case(const std::string& architecture = "llama", const std::string& without = "") {
        add_gguf_sizes(file, architecture, without);
    }
    llama_hyperparameters read() const {
        const temporary_folder folder;
        write_file(folder / "f.gguf", file.build());
        return read_llama_hyperparameters(model_file::open(folder / "f.gguf"));
    }
    std::string refuse() const {
        return refusal([&] { read(); });
    }
};

std::string floats(std::initializer_list<float> values) {
    std::string bytes;
    for (const float value : values) append(bytes, value);
    return bytes;
}

}  // namespace

TEST_CASE("hyperparameters: config.json as the transformers library reads it") {
    const json cases = json::parse(read_file(FERMATA_SOURCE_DIR "/tests/native/fixtures/configs.json"));
    CHECK(cases.size() >= 19);
    for (const json& entry : cases) {
        CAPTURE(entry["name"].get<std::string>());
        const json& facts = entry["facts"];
        const llama_hyperparameters sizes = read_config(entry["config"]);
        CHECK(sizes.vocabulary == facts["vocabulary"]);
        CHECK(sizes.width == facts["width"]);
        CHECK(sizes.layers == facts["layers"]);
        CHECK(sizes.heads == facts["heads"]);
        CHECK(sizes.kv_heads == facts["kv_heads"]);
        CHECK(sizes.head_width == facts["head_width"]);
        CHECK(sizes.rope_width == facts["head_width"]);
        CHECK(sizes.feed_forward_width == facts["feed_forward_width"]);
        CHECK(sizes.rms_epsilon == static_cast<float>(facts["rms_epsilon"].get<double>()));
        CHECK(sizes.rope_theta == facts["rope_theta"].get<double>());
        CHECK(sizes.tied_head == facts["tied"].get<bool>());
        // Contexts are limited to a sliding window.
        const auto trained = facts["trained_tokens"].get<std::uint32_t>(), window = facts["window"].get<std::uint32_t>();
        CHECK(sizes.context_tokens == (window != 0 && window < trained ? window : trained));
        CHECK(sizes.notes.size() == (window != 0 && window < trained ? 1 : 0));
        const std::string kind = facts["rope_type"];
        CHECK(sizes.scaling.kind == (kind == "llama3"   ? rope_scaling_kind::llama3
                                     : kind == "linear" ? rope_scaling_kind::linear
                                                        : rope_scaling_kind::none));
        CHECK(sizes.scaling.factor == facts["factor"].get<double>());
        CHECK(sizes.scaling.original_context_tokens == facts["original_tokens"]);
        const bool qwen2 = sizes.architecture == "qwen2";
        CHECK(sizes.query_key_value_bias == (facts["attention_bias"].get<bool>() || qwen2));
        CHECK(sizes.attention_output_bias == facts["attention_bias"].get<bool>());
        CHECK(sizes.feed_forward_bias == facts["feed_forward_bias"].get<bool>());
        CHECK(sizes.query_key_norm == (sizes.architecture == "qwen3"));
        CHECK_FALSE(sizes.query_key_rows_permuted);
    }
}

TEST_CASE("hyperparameters: what config.json can't ask for") {
    CHECK(mentions(refuse_config({{"model_type", "mamba"}}),
                   "config.json: has the architecture 'mamba', which isn't in this version; llama, mistral, qwen2"));
    CHECK(mentions(refuse_config({{"model_type", nullptr}}), "has no key model_type"));
    CHECK(mentions(refuse_config({{"hidden_act", "gelu"}}), "key hidden_act is 'gelu'"));
    CHECK(mentions(refuse_config({{"quantization_config", {{"quant_method", "gptq"}}}}), "quantised by 'gptq'"));
    CHECK(mentions(refuse_config({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}}),
                   "RoPE scaling 'yarn' isn't in this version; default, linear and llama3 are"));
    CHECK(mentions(refuse_config({{"rope_scaling", {{"rope_type", "linear"}}}}), "needs the key factor"));
    CHECK(mentions(refuse_config({{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}}}), "needs the key low_freq_factor"));
    CHECK(mentions(refuse_config({{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4},
                                                    {"high_freq_factor", 4}}}}), "should be above its low_freq_factor"));
    CHECK(mentions(refuse_config({{"rope_scaling", "yarn"}}), "key rope_scaling should be an object"));
    CHECK(mentions(refuse_config({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0}}}}), "RoPE scaling factor is 0"));
    CHECK(mentions(refuse_config({{"partial_rotary_factor", 0.5}}), "key partial_rotary_factor isn't in this version"));
    CHECK(mentions(refuse_config({{"rope_theta", 0}}), "RoPE base (rope_theta) is 0"));
    CHECK(mentions(refuse_config({{"rope_theta", -1e4}}), "should be above 0 and finite"));
    CHECK(mentions(refuse_config({{"rms_norm_eps", 0}}), "epsilon of the RMS norm is 0"));
    CHECK(mentions(refuse_config({{"rms_norm_eps", "x"}}), "key rms_norm_eps should be a number"));
    CHECK(mentions(refuse_config({{"rms_norm_eps", 1e300}}), "epsilon of the RMS norm is inf"));
    CHECK(mentions(refuse_config({{"layer_types", {"chunked_attention"}}}), "key layer_types holds '\"chunked_attention\"'"));
    CHECK(mentions(refuse_config({{"tie_word_embeddings", 1}}), "key tie_word_embeddings should be true or false"));
}

TEST_CASE("hyperparameters: sizes out of range name what is wrong") {
    CHECK(mentions(refuse_config({{"hidden_size", 0}}), "the width is 0; it should be from 1 to 131072"));
    CHECK(mentions(refuse_config({{"hidden_size", -4096}}), "key hidden_size should be an integer that isn't negative"));
    CHECK(mentions(refuse_config({{"hidden_size", 4096.5}}), "key hidden_size should be an integer"));
    CHECK(mentions(refuse_config({{"hidden_size", 1ull << 60}}), "key hidden_size is 1152921504606846976, beyond any limit"));
    CHECK(mentions(refuse_config({{"num_hidden_layers", 5000}}), "the number of layers is 5000; it should be from 1 to 1024"));
    CHECK(mentions(refuse_config({{"num_attention_heads", 0}}), "key num_attention_heads is 0"));
    CHECK(mentions(refuse_config({{"num_key_value_heads", 0}}), "the number of KV heads is 0"));
    CHECK(mentions(refuse_config({{"num_key_value_heads", 5}}), "number of heads 32 isn't a multiple of the number of KV heads 5"));
    CHECK(mentions(refuse_config({{"head_dim", 2000}}), "the head width is 2000"));
    CHECK(mentions(refuse_config({{"head_dim", 63}}), "RoPE rotates 63 dimensions; it should be an even number"));
    CHECK(mentions(refuse_config({{"vocab_size", 1 << 23}}), "the vocabulary size is 8388608"));
    CHECK(mentions(refuse_config({{"intermediate_size", 0}}), "the feed-forward width is 0"));
    CHECK(mentions(refuse_config({{"max_position_embeddings", 0}}), "the context length is 0"));
}

TEST_CASE("hyperparameters: windows and dynamic scaling limit the context and say so") {
    const auto window = read_config({{"model_type", "qwen2"}, {"use_sliding_window", true}, {"sliding_window", 500}});
    CHECK(window.context_tokens == 500);
    CHECK(mentions(window.notes.at(0), "windows of 500 tokens"));
    const auto full = read_config({{"model_type", "qwen2"}, {"use_sliding_window", true}, {"sliding_window", 500},
                                   {"layer_types", {"full_attention"}}});
    CHECK(full.context_tokens == 32768);
    const auto dynamic = read_config({{"model_type", "llama"}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}});
    CHECK(dynamic.context_tokens == 2048);
    CHECK(dynamic.scaling.kind == rope_scaling_kind::none);
    CHECK(mentions(dynamic.notes.at(0), "dynamic RoPE scaling"));
}

TEST_CASE("hyperparameters: a GGUF's keys, and what absent ones mean") {
    const auto sizes = gguf_case().read();
    CHECK(sizes.architecture == "llama");
    CHECK(sizes.vocabulary == 77);
    CHECK(sizes.width == 96);
    CHECK(sizes.layers == 3);
    CHECK(sizes.heads == 6);
    CHECK(sizes.kv_heads == 6);
    CHECK(sizes.head_width == 16);
    CHECK(sizes.rope_width == 16);
    CHECK(sizes.feed_forward_width == 160);
    CHECK(sizes.context_tokens == 1000);
    CHECK(sizes.rope_theta == 10000.0);
    CHECK(sizes.tied_head);
    CHECK(sizes.query_key_rows_permuted);
    CHECK(sizes.scaling.kind == rope_scaling_kind::none);

    gguf_case qwen("qwen3");
    qwen.file.add_u32("qwen3.attention.key_length", 32);
    qwen.file.add_u32("qwen3.attention.value_length", 32);
    qwen.file.add_i32s("qwen3.attention.head_count_kv", {2, 2, 2});
    qwen.file.add_tensor("output.weight", {1}, 0, floats({1}));
    const auto other = qwen.read();
    CHECK(other.head_width == 32);
    CHECK(other.kv_heads == 2);
    CHECK(other.query_key_norm);
    CHECK_FALSE(other.query_key_rows_permuted);
    CHECK_FALSE(other.tied_head);
}

TEST_CASE("hyperparameters: a GGUF's RoPE scaling") {
    gguf_case linear;
    linear.file.add_string("llama.rope.scaling.type", "linear");
    linear.file.add_f32("llama.rope.scaling.factor", 4);
    CHECK(linear.read().scaling.kind == rope_scaling_kind::linear);
    CHECK(linear.read().scaling.factor == 4.0);
    gguf_case old;
    old.file.add_f32("llama.rope.scale_linear", 2);
    CHECK(old.read().scaling.factor == 2.0);
    gguf_case none;
    none.file.add_string("llama.rope.scaling.type", "none");
    none.file.add_f32("llama.rope.scaling.factor", 4);
    CHECK(none.read().scaling.kind == rope_scaling_kind::none);
    gguf_case yarn;
    yarn.file.add_string("llama.rope.scaling.type", "yarn");
    CHECK(mentions(yarn.refuse(), "key llama.rope.scaling.type is 'yarn', which isn't in this version"));

    gguf_case divisors;
    divisors.file.add_tensor("rope_freqs.weight", {8}, 0, floats({1, 1, 1, 1, 8, 8, 8, 8}));
    CHECK(divisors.read().scaling.kind == rope_scaling_kind::divisors);
    gguf_case short_ones;
    short_ones.file.add_tensor("rope_freqs.weight", {4}, 0, floats({1, 1, 8, 8}));
    CHECK(mentions(short_ones.refuse(), "tensor 'rope_freqs.weight' is 1 x 4, the model's sizes ask for 1 x 8"));
    gguf_case infinite;
    infinite.file.add_tensor("rope_freqs.weight", {8}, 0, floats({1, 1, 1, 1, 8, 8, 8, INFINITY}));
    CHECK(mentions(infinite.refuse(), "holds a divisor that isn't above 0 and finite"));
}

TEST_CASE("hyperparameters: faults of a GGUF's keys") {
    for (const char* const key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                                  "attention.head_count", "attention.layer_norm_rms_epsilon", "vocab_size"}) {
        CAPTURE(key);
        CHECK(mentions(gguf_case("llama", key).refuse(), "f.gguf: has no key llama." + std::string(key)));
    }
    CHECK(mentions(gguf_case("gpt2").refuse(), "has the architecture 'gpt2', which isn't in this version"));
    const auto with_u32 = [](const char* key, std::uint32_t value, const char* without = "") {
        gguf_case entry("llama", without);
        entry.file.add_u32(std::string("llama.") + key, value);
        return entry.refuse();
    };
    CHECK(mentions(with_u32("attention.head_count_kv", 4), "number of heads 6 isn't a multiple of the number of KV heads 4"));
    CHECK(mentions(with_u32("attention.head_count_kv", 0), "the number of KV heads is 0"));
    CHECK(mentions(with_u32("attention.head_count", 0, "attention.head_count"), "attention.head_count is 0"));
    CHECK(mentions(with_u32("expert_count", 8), "key llama.expert_count: a mixture of experts isn't in this version"));
    CHECK(with_u32("expert_count", 0).empty());
    CHECK(mentions(with_u32("attention.value_length", 8), "keys and values of different widths"));
    CHECK(mentions(with_u32("rope.dimension_count", 8), "RoPE over a part of the head (8 of 16) isn't in this version"));
    CHECK(mentions(with_u32("rope.dimension_count", 15), "RoPE rotates 15 dimensions"));
    CHECK(mentions(with_u32("block_count", 0xffffffffu, "block_count"), "beyond any limit"));

    gguf_case layers;
    layers.file.add_i32s("llama.attention.head_count_kv", {6, 6, 3});
    CHECK(mentions(layers.refuse(), "key llama.attention.head_count_kv differs between layers"));
    gguf_case infinite;
    infinite.file.add_f32("llama.rope.freq_base", INFINITY);
    CHECK(mentions(infinite.refuse(), "key llama.rope.freq_base isn't finite"));
    gguf_case text;
    text.file.add_string("llama.attention.head_count_kv", "six");
    CHECK(mentions(text.refuse(), "key llama.attention.head_count_kv is of type string, it should be an integer"));
    gguf_case tokens("llama", "vocab_size");
    tokens.file.add_strings("tokenizer.ggml.tokens", {"a", "b", "c"});
    CHECK(tokens.read().vocabulary == 3);
    tokens.file.add_tensor("token_embd.weight", {96, 2}, 0, std::string(96 * 2 * 4, '\0'));
    CHECK(mentions(tokens.refuse(), "has 3 tokens, but token_embd.weight has 2 rows"));
}

TEST_CASE("hyperparameters: both forms of one model agree") {
    const temporary_folder folder;
    for (const char* const architecture : {"llama", "qwen2", "qwen3"}) {
        CAPTURE(architecture);
        random_model_options options;
        options.architecture = architecture;
        options.width = 64;
        options.heads = 4;
        options.head_width = 32;
        options.feed_forward_width = 96;
        options.rope_theta = 5e5f;
        options.tied_head = false;
        const std::string name = architecture;
        write_random_gguf((folder / name) + ".gguf", options);
        write_random_folder(folder / name, options);
        const auto a = read_llama_hyperparameters(model_file::open((folder / name) + ".gguf"));
        const auto b = read_llama_hyperparameters(model_file::open(folder / name));
        CHECK(a.vocabulary == b.vocabulary);
        CHECK(a.kv_heads == b.kv_heads);
        CHECK(a.head_width == b.head_width);
        CHECK(a.rms_epsilon == b.rms_epsilon);
        CHECK(a.rope_theta == b.rope_theta);
        CHECK(a.tied_head == b.tied_head);
        CHECK(a.query_key_value_bias == b.query_key_value_bias);
        CHECK(a.query_key_norm == b.query_key_norm);
        CHECK(a.query_key_rows_permuted == (name == "llama"));
    }
}

TEST_CASE("hyperparameters: the permutation of query and key rows by hand") {
    // A head of 6 rows a b c | d e f becomes a d b e c f.
    CHECK(permuted_row(0, 6) == 0);
    CHECK(permuted_row(1, 6) == 2);
    CHECK(permuted_row(2, 6) == 4);
    CHECK(permuted_row(3, 6) == 1);
    CHECK(permuted_row(4, 6) == 3);
    CHECK(permuted_row(5, 6) == 5);
}

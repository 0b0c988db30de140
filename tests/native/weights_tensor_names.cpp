// Names of tensors in both namings, and what a checkpoint may hold beside what its architecture knows.
#include <doctest/doctest.h>

#include "native/weights/tensor_names.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/model_error.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/safetensors_builder.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

bool is(std::string_view name, tensor_role role, std::int32_t layer = -1) {
    return known_tensor(name) == tensor_key{role, layer};
}

random_model_options small(const char* architecture = "llama") {
    random_model_options options;
    options.architecture = architecture;
    options.layers = 2;
    options.width = 32;
    options.heads = 2;
    options.kv_heads = 1;
    options.head_width = 16;
    options.feed_forward_width = 64;
    return options;
}

// A folder of one F32 tensor of one element for each name.
std::string refuse_names(const std::string& config, const std::vector<std::pair<std::string, std::string>>& tensors) {
    const temporary_folder folder;
    safetensors_builder builder;
    for (const auto& [name, data] : tensors) builder.add(name, "F32", {data.size() / 4}, data);
    write_file(folder / "config.json", config);
    write_file(folder / "model.safetensors", builder.build());
    const auto file = model_file::open(folder.path());
    auto sizes = read_llama_hyperparameters(file);
    return refusal([&] { llama_tensors(file, sizes); });
}

}  // namespace

TEST_CASE("names: both namings and all prefixes") {
    CHECK(is("token_embd.weight", tensor_role::token_embedding));
    CHECK(is("output.weight", tensor_role::output_head));
    CHECK(is("rope_freqs.weight", tensor_role::rope_divisors));
    CHECK(is("blk.3.attn_q.weight", tensor_role::query, 3));
    CHECK(is("blk.31.ffn_down.bias", tensor_role::down_bias, 31));
    CHECK(is("blk.0.attn_k_norm.weight", tensor_role::key_norm, 0));
    for (const char* const prefix : {"model.", "model.language_model.", "language_model.model.", "model.text_model.",
                                     "language_model.", ""}) {
        CAPTURE(prefix);
        const std::string start = prefix;
        CHECK(is(start + "embed_tokens.weight", tensor_role::token_embedding));
        CHECK(is(start + "norm.weight", tensor_role::output_norm));
        CHECK(is(start + "layers.12.self_attn.q_proj.weight", tensor_role::query, 12));
        CHECK(is(start + "layers.0.post_attention_layernorm.weight", tensor_role::feed_forward_norm, 0));
        CHECK(is(start + "layers.7.mlp.gate_proj.bias", tensor_role::gate_bias, 7));
    }
    CHECK(is("lm_head.weight", tensor_role::output_head));
    CHECK(is("language_model.lm_head.weight", tensor_role::output_head));
}

TEST_CASE("names: near misses are unknown") {
    for (const char* const name :
         {"blk.attn_q.weight", "blk.-1.attn_q.weight", "blk.03.attn_q.weight", "blk.123456.attn_q.weight",
          "blk.3.attn_q", "blk.3", "blk.3.", "attn_q.weight", "model.layers.x.mlp.up_proj.weight", "",
          "model.layers.3.self_attn.qkv_proj.weight", "model.visual.norm.weight", "xmodel.norm.weight",
          "model.layers.3.mlp.experts.0.up_proj.weight"}) {
        CAPTURE(name);
        CHECK_FALSE(known_tensor(name).has_value());
    }
}

TEST_CASE("names: usual names are understood again") {
    for (int role = 0; role <= static_cast<int>(tensor_role::down_bias); ++role) {
        const auto which = static_cast<tensor_role>(role);
        const tensor_key key{which, role >= static_cast<int>(tensor_role::attention_norm) ? 5 : -1};
        CHECK(known_tensor(usual_name(model_format::gguf, key)) == key);
        if (which != tensor_role::rope_divisors)
            CHECK(known_tensor(usual_name(model_format::safetensors, key)) == key);
        CHECK_FALSE(name_of(which).empty());
    }
}

TEST_CASE("names: parts that are skipped") {
    CHECK(skipped_part("model.visual.blocks.0.attn.proj.bias") == "vision");
    CHECK(skipped_part("visual.merger.mlp.0.weight") == "vision");
    CHECK(skipped_part("vision_tower.vision_model.embeddings.position_ids") == "vision");
    CHECK(skipped_part("model.multi_modal_projector.linear_1.weight") == "vision");
    CHECK(skipped_part("v.blk.0.ln1.weight") == "vision");
    CHECK(skipped_part("mtp.fc.weight") == "draft head");
    CHECK(skipped_part("model.layers.0.self_attn.rotary_emb.inv_freq") == "rotary buffer");
    CHECK(skipped_part("model.layers.0.self_attn.lora_A.weight").empty());
    CHECK(skipped_part("individual.weight").empty());
    CHECK(skipped_part("blk.0.ffn_gate_exps.weight").empty());
}

TEST_CASE("tensors: all of a model are found by role in both forms") {
    const temporary_folder folder;
    for (const char* const architecture : {"llama", "qwen2", "qwen3"}) {
        random_model_options options = small(architecture);
        options.tied_head = false;
        write_random_gguf(folder / "f.gguf", options);
        options.multimodal = options.architecture == "qwen3";
        write_random_folder(folder / "d", options);
        for (const std::string& path : {folder / "f.gguf", folder / "d"}) {
            CAPTURE(path);
            const auto file = model_file::open(path);
            auto sizes = read_llama_hyperparameters(file);
            const llama_tensors tensors(file, sizes);
            const std::size_t vocabulary = sizes.vocabulary;
            CHECK(tensors.require(tensor_role::token_embedding, -1, vocabulary, 32).rows == vocabulary);
            CHECK(tensors.require(tensor_role::output_head, -1, vocabulary, 32).rows == vocabulary);
            for (std::int32_t layer = 0; layer < 2; ++layer) {
                tensors.require(tensor_role::query, layer, 32, 32);
                tensors.require(tensor_role::key, layer, 16, 32);
                tensors.require(tensor_role::down, layer, 32, 64);
                CHECK((tensors.find(tensor_role::query_bias, layer) != nullptr) == sizes.query_key_value_bias);
                CHECK((tensors.find(tensor_role::key_norm, layer) != nullptr) == sizes.query_key_norm);
            }
            CHECK(tensors.find(tensor_role::query, 2) == nullptr);
            CHECK(tensors.skipped().size() == (path == folder / "d" && options.multimodal ? 1 : 0));
            CHECK(mentions(refusal([&] { tensors.require(tensor_role::query, 0, 32, 33); }), "the model's sizes ask for 32 x 33"));
            CHECK(mentions(refusal([&] { tensors.require(tensor_role::up_bias, 1, 1, 64); }),
                           file.format() == model_format::gguf ? "has no tensor 'blk.1.ffn_up.bias' (1 x 64 needed)"
                                                               : "has no tensor 'model.layers.1.mlp.up_proj.bias'"));
        }
    }
}

TEST_CASE("tensors: what has no place is an error that names it") {
    const std::string config = R"({"model_type":"llama","num_hidden_layers":2})";
    const std::string value = "abcd";
    CHECK(refuse_names(config, {{"model.norm.weight", value}}).empty());
    CHECK(mentions(refuse_names(config, {{"model.extra.weight", value}}),
                   "model.safetensors: tensor 'model.extra.weight' isn't known to the architecture llama"));
    CHECK(mentions(refuse_names(config, {{"model.layers.2.mlp.up_proj.weight", value}}),
                   "belongs to layer 2, but the model has 2"));
    CHECK(mentions(refuse_names(config, {{"model.layers.0.self_attn.q_proj.bias", value}}),
                   "'model.layers.0.self_attn.q_proj.bias' has no place in this configuration of llama"));
    CHECK(mentions(refuse_names(config, {{"model.layers.0.self_attn.q_norm.weight", value}}), "has no place"));
    CHECK(mentions(refuse_names(config, {{"model.norm.weight", value}, {"norm.weight", value}}),
                   "'model.norm.weight' and 'norm.weight' are both the output norm"));
}

TEST_CASE("tensors: a tied head that is in the file all the same") {
    const auto tied = [](const std::vector<std::pair<std::string, std::string>>& tensors) {
        const temporary_folder folder;
        safetensors_builder builder;
        for (const auto& [name, data] : tensors) builder.add(name, "F32", {data.size() / 4}, data);
        write_file(folder / "config.json", R"({"model_type":"llama","tie_word_embeddings":true})");
        write_file(folder / "model.safetensors", builder.build());
        const auto file = model_file::open(folder.path());
        auto sizes = read_llama_hyperparameters(file);
        const llama_tensors found(file, sizes);
        return std::pair(sizes.tied_head, found.find(tensor_role::token_embedding) != nullptr);
    };
    CHECK(tied({{"model.embed_tokens.weight", "abcd"}, {"lm_head.weight", "abcd"}}) == std::pair(true, true));
    CHECK(tied({{"model.embed_tokens.weight", "abcd"}, {"lm_head.weight", "abce"}}) == std::pair(false, true));
    CHECK(tied({{"lm_head.weight", "abcd"}}) == std::pair(true, true));
    CHECK(tied({{"model.embed_tokens.weight", "abcd"}}) == std::pair(true, true));
}

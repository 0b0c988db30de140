// Hyperparameters from config.json. What a key means, and what an absent one means, follows the configuration classes
// of the transformers library (LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config, Qwen2VLTextConfig,
// Qwen3VLTextConfig) and its RoPE parameters, in their old (`rope_theta`, `rope_scaling`) and new (`rope_parameters`)
// form.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "native/weights/hyperparameters_detail.hpp"

namespace fermata::weights {

struct folder_variant {
    std::string_view model_type;
    std::string_view architecture;
    std::uint32_t vocabulary, width, feed_forward_width, layers, heads;
    std::uint32_t kv_heads;    // when num_key_value_heads is absent; 0: as heads
    std::uint32_t head_width;  // when head_dim is absent; 0: width / heads
    std::uint32_t context_tokens;
    double rms_epsilon, rope_theta;
};

namespace {

using json = nlohmann::ordered_json;

constexpr folder_variant folder_variants[] = {
    {"llama", "llama", 32000, 4096, 11008, 32, 32, 0, 0, 2048, 1e-6, 1e4},
    {"mistral", "mistral", 32000, 4096, 14336, 32, 32, 8, 0, 131072, 1e-6, 1e4},
    {"qwen2", "qwen2", 151936, 4096, 22016, 32, 32, 32, 0, 32768, 1e-6, 1e4},
    {"qwen3", "qwen3", 151936, 4096, 22016, 32, 32, 32, 128, 32768, 1e-6, 1e4},
    // The text part of multimodal models; for text the position axes are equal, so their RoPE is the plain one.
    {"qwen2_vl", "qwen2", 152064, 8192, 29568, 80, 64, 8, 0, 32768, 1e-5, 1e6},
    {"qwen2_vl_text", "qwen2", 152064, 8192, 29568, 80, 64, 8, 0, 32768, 1e-5, 1e6},
    {"qwen2_5_vl", "qwen2", 152064, 8192, 29568, 80, 64, 8, 0, 32768, 1e-5, 1e6},
    {"qwen2_5_vl_text", "qwen2", 152064, 8192, 29568, 80, 64, 8, 0, 32768, 1e-5, 1e6},
    {"qwen3_vl_text", "qwen3", 151936, 4096, 22016, 32, 32, 32, 128, 128000, 1e-6, 5e5},
};

// Members of one JSON object; null counts as absent unless asked for.
class member_reader {
public:
    member_reader(const json& object, const std::string& place) : object_(object), place_(place) {}

    const json* find(const char* key) const {
        const auto member = object_.find(key);
        return member == object_.end() ? nullptr : &*member;
    }
    const json* value(const char* key) const {
        const json* const member = find(key);
        return member != nullptr && member->is_null() ? nullptr : member;
    }
    bool is_null(const char* key) const {
        const json* const member = find(key);
        return member != nullptr && member->is_null();
    }

    std::uint32_t size(const char* key, std::uint32_t otherwise) const {
        const json* const member = value(key);
        if (member == nullptr) return otherwise;
        if (!member->is_number_unsigned()) wrong(key, "an integer that isn't negative");
        return to_size(member->get<std::uint64_t>(), key, place_);
    }
    double number(const char* key, double otherwise) const {
        const json* const member = value(key);
        if (member == nullptr) return otherwise;
        if (!member->is_number()) wrong(key, "a number");
        return member->get<double>();
    }
    bool boolean(const char* key, bool otherwise) const {
        const json* const member = value(key);
        if (member == nullptr) return otherwise;
        if (!member->is_boolean()) wrong(key, "true or false");
        return member->get<bool>();
    }
    std::string string(const char* key, std::string otherwise) const {
        const json* const member = value(key);
        if (member == nullptr) return otherwise;
        if (!member->is_string()) wrong(key, "a string");
        return member->get<std::string>();
    }
    [[noreturn]] void wrong(const char* key, const char* wanted) const {
        fail(place_, std::string("key ") + key + " should be " + wanted);
    }
    const std::string& place() const { return place_; }

private:
    const json& object_;
    const std::string& place_;
};

bool is_empty_object(const json& value) { return value.is_object() && value.empty(); }

// rope_scaling counts before rope_parameters, as in the library; an empty object is no object.
const json* rope_object(const member_reader& config) {
    for (const char* const key : {"rope_scaling", "rope_parameters"}) {
        const json* const value = config.value(key);
        if (value == nullptr || is_empty_object(*value)) continue;
        if (!value->is_object()) config.wrong(key, "an object");
        return value;
    }
    return nullptr;
}

void read_llama3(const member_reader& rope, const member_reader& config, llama_hyperparameters& sizes) {
    for (const char* const key : {"factor", "low_freq_factor", "high_freq_factor"})
        if (rope.value(key) == nullptr) fail(config.place(), std::string("RoPE scaling llama3 needs the key ") + key);
    rope_scaling& scaling = sizes.scaling;
    scaling.kind = rope_scaling_kind::llama3;
    scaling.factor = rope.number("factor", 1);
    scaling.low_frequency_factor = rope.number("low_freq_factor", 1);
    scaling.high_frequency_factor = rope.number("high_freq_factor", 4);
    scaling.original_context_tokens = config.size(
        "original_max_position_embeddings", rope.size("original_max_position_embeddings", sizes.context_tokens));
}

void read_rope(const member_reader& config, double default_theta, llama_hyperparameters& sizes) {
    static const json none = json::object();
    const json* const object = rope_object(config);
    const member_reader rope(object != nullptr ? *object : none, config.place());
    sizes.rope_theta = rope.number("rope_theta", config.number("rope_theta", default_theta));
    sizes.rope_width = sizes.head_width;
    if (rope.number("partial_rotary_factor", config.number("partial_rotary_factor", 1)) != 1)
        fail(config.place(), "key partial_rotary_factor isn't in this version for this architecture");
    const std::string type = rope.string("rope_type", rope.string("type", "default"));
    if (type == "default" || type == "mrope") return;
    if (type == "linear") {
        sizes.scaling.kind = rope_scaling_kind::linear;
        if (rope.value("factor") == nullptr) fail(config.place(), "RoPE scaling linear needs the key factor");
        sizes.scaling.factor = rope.number("factor", 1);
    } else if (type == "llama3") {
        read_llama3(rope, config, sizes);
    } else if (type == "dynamic") {
        // Changes nothing up to max_position_embeddings, which stays the limit here.
        sizes.notes.push_back("dynamic RoPE scaling isn't in this version: contexts are limited to " +
                              std::to_string(sizes.context_tokens) + " tokens, where it has no effect");
    } else {
        fail(config.place(), "RoPE scaling " + shown(type) + " isn't in this version; default, linear and llama3 are");
    }
}

// Which layers slide is of no concern: contexts will be limited to the window.
std::uint32_t read_window(const member_reader& config, std::string_view architecture) {
    if (const json* const types = config.value("layer_types")) {
        if (!types->is_array()) config.wrong("layer_types", "an array");
        bool slides = false;
        for (const json& type : *types) {
            if (type == "sliding_attention") slides = true;
            if (type != "sliding_attention" && type != "full_attention")
                fail(config.place(), "key layer_types holds " + shown(type.dump()) +
                                         ", which isn't in this version for this architecture");
        }
        if (!slides && architecture != "mistral") return 0;
    }
    constexpr std::uint32_t default_window = 4096;
    if (architecture == "mistral") return config.is_null("sliding_window") ? 0 : config.size("sliding_window", default_window);
    if (architecture == "llama" || !config.boolean("use_sliding_window", false)) return 0;
    return config.is_null("sliding_window") ? 0 : config.size("sliding_window", default_window);
}

void refuse_unknown_mathematics(const member_reader& config, const member_reader& whole) {
    const std::string activation = config.string("hidden_act", "silu");
    if (activation != "silu" && activation != "swish")
        fail(config.place(), "key hidden_act is " + shown(activation) + ", which isn't in this version; silu is");
    for (const member_reader* const reader : {&config, &whole}) {
        const json* const method = reader->value("quantization_config");
        if (method == nullptr) continue;
        const std::string name =
            method->is_object() ? member_reader(*method, config.place()).string("quant_method", "?") : "?";
        fail(config.place(), "holds weights quantised by " + shown(name) +
                                 ", which isn't in this version; F32, F16 and BF16 safetensors are, or a GGUF file");
    }
}

void read_biases(const member_reader& config, llama_hyperparameters& sizes) {
    const bool asked = config.boolean("attention_bias", false);
    sizes.query_key_value_bias = sizes.architecture == "qwen2" || (asked && sizes.architecture != "mistral");
    sizes.attention_output_bias = asked && (sizes.architecture == "llama" || sizes.architecture == "qwen3");
    sizes.feed_forward_bias = sizes.architecture == "llama" && config.boolean("mlp_bias", false);
}

}  // namespace

const folder_variant* find_folder_variant(std::string_view architecture) noexcept {
    const auto* const found = std::ranges::find(folder_variants, architecture, &folder_variant::model_type);
    return found == std::end(folder_variants) ? nullptr : found;
}

llama_hyperparameters read_folder_hyperparameters(const model_file& file) {
    const folder_variant* const variant = find_folder_variant(file.architecture());
    if (variant == nullptr) unknown_architecture(file.metadata_place(), file.architecture());
    const member_reader config(file.text_config(), file.metadata_place());
    const member_reader whole(file.config(), file.metadata_place());
    refuse_unknown_mathematics(config, whole);

    llama_hyperparameters sizes;
    sizes.architecture = variant->architecture;
    sizes.name = whole.string("_name_or_path", "");
    sizes.vocabulary = config.size("vocab_size", variant->vocabulary);
    sizes.width = config.size("hidden_size", variant->width);
    sizes.layers = config.size("num_hidden_layers", variant->layers);
    sizes.heads = config.size("num_attention_heads", variant->heads);
    if (sizes.heads == 0) fail(config.place(), "key num_attention_heads is 0");
    // An absent key and a null one differ for Mistral: 8 against as many as heads.
    const bool as_heads = variant->kv_heads == 0 || config.is_null("num_key_value_heads");
    sizes.kv_heads = config.size("num_key_value_heads", as_heads ? sizes.heads : variant->kv_heads);
    const std::uint32_t even_share = sizes.width / sizes.heads;
    sizes.head_width = config.size("head_dim", variant->head_width != 0 ? variant->head_width : even_share);
    sizes.feed_forward_width = config.size("intermediate_size", variant->feed_forward_width);
    sizes.context_tokens = config.size("max_position_embeddings", variant->context_tokens);
    sizes.sliding_window_tokens = read_window(config, sizes.architecture);
    sizes.rms_epsilon = static_cast<float>(config.number("rms_norm_eps", variant->rms_epsilon));
    read_rope(config, variant->rope_theta, sizes);
    // The whole model's flag counts before the text part's.
    sizes.tied_head = whole.boolean("tie_word_embeddings", config.boolean("tie_word_embeddings", false));
    read_biases(config, sizes);
    sizes.query_key_norm = sizes.architecture == "qwen3";
    finish(sizes, config.place());
    return sizes;
}

}  // namespace fermata::weights

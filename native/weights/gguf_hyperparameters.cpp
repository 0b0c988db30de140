// Hyperparameters from the keys of a GGUF file. Key names and defaults are those of llama.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "native/weights/dequantise.hpp"
#include "native/weights/hyperparameters_detail.hpp"

namespace fermata::weights {

struct gguf_variant {
    std::string_view key;           // general.architecture
    std::string_view architecture;  // what it computes
    bool rows_permuted;
    bool query_key_norm;
};

namespace {

constexpr gguf_variant gguf_variants[] = {
    {"llama", "llama", true, false},
    {"qwen2", "qwen2", false, false},
    {"qwen2vl", "qwen2", false, false},  // for text its three position axes are equal: plain RoPE
    {"qwen3", "qwen3", false, true},
    {"qwen3vl", "qwen3", false, true},
};

class key_reader {
public:
    explicit key_reader(const model_file& file)
        : values_(file.metadata()), place_(file.metadata_place()), prefix_(file.architecture() + ".") {}

    std::uint32_t size(std::string_view name) const {
        const auto value = optional_size(name);
        if (!value) fail(place_, "has no key " + prefix_ + std::string(name));
        return *value;
    }

    // Some converters write one number a layer; layers of different sizes aren't in this version.
    std::optional<std::uint32_t> optional_size(std::string_view name) const {
        const std::string key = prefix_ + std::string(name);
        const metadata_value* const value = values_.find(key);
        if (value == nullptr) return std::nullopt;
        if (value->type != metadata_type::array) return to_size(*values_.unsigned_integer(key), key, place_);
        const std::vector<std::int64_t> numbers = *values_.integers(key);
        if (numbers.empty()) fail(place_, "key " + key + " is an empty array; it should be a number");
        if (std::ranges::any_of(numbers, [&](std::int64_t number) { return number != numbers.front(); }))
            fail(place_, "key " + key + " differs between layers, which isn't in this version");
        if (numbers.front() < 0) fail(place_, "key " + key + " is negative");
        return to_size(static_cast<std::uint64_t>(numbers.front()), key, place_);
    }

    std::optional<double> number(std::string_view name) const { return values_.number(prefix_ + std::string(name)); }

    std::optional<std::string_view> string(std::string_view name) const {
        return values_.string(prefix_ + std::string(name));
    }

    // A key whose presence would change the mathematics.
    void refuse(std::string_view name, std::string_view what) const {
        const std::string key = prefix_ + std::string(name);
        const metadata_value* const value = values_.find(key);
        if (value == nullptr) return;
        if (value->type == metadata_type::boolean || value->type == metadata_type::string ||
            value->type == metadata_type::array || *values_.number(key) != 0)
            fail(place_, "key " + key + ": " + std::string(what) + " isn't in this version");
    }

    const std::string& place() const { return place_; }
    const std::string& prefix() const { return prefix_; }

private:
    const class metadata& values_;
    const std::string& place_;
    std::string prefix_;
};

// Of the vocabulary three things may speak: the embedding's rows (which count), the tokens, a key.
std::uint32_t vocabulary_size(const model_file& file, const key_reader& keys) {
    std::uint64_t rows = 0;
    if (const auto* const embedding = file.entry("token_embd.weight")) rows = embedding->view.rows;
    std::uint64_t tokens = 0;
    if (const auto* const list = file.metadata().find("tokenizer.ggml.tokens")) tokens = list->count;
    if (rows == 0)
        return tokens != 0 ? to_size(tokens, "tokenizer.ggml.tokens", keys.place()) : keys.size("vocab_size");
    if (tokens > rows)
        fail(keys.place(), "has " + std::to_string(tokens) + " tokens, but token_embd.weight has " +
                               std::to_string(rows) + " rows");
    return to_size(rows, "token_embd.weight", keys.place());
}

// Llama 3 files bring the divisor of each frequency as a tensor instead of the formula's four numbers.
bool has_divisors(const model_file& file, std::uint32_t rope_width) {
    constexpr std::string_view name = "rope_freqs.weight";
    if (file.entry(name) == nullptr) return false;
    const tensor_view& tensor = file.require(name, 1, rope_width / 2);
    std::vector<float> divisors(tensor.columns);
    if (divisors.size() % traits_of(tensor.type).block_elements == 0) dequantise(tensor.type, tensor.data, divisors);
    for (const float divisor : divisors)
        if (!std::isfinite(divisor) || !(divisor > 0))
            fail(file.metadata_place(), "tensor 'rope_freqs.weight' holds a divisor that isn't above 0 and finite");
    return true;
}

rope_scaling read_scaling(const model_file& file, const key_reader& keys, std::uint32_t rope_width) {
    rope_scaling scaling;
    const std::string_view type = keys.string("rope.scaling.type").value_or("linear");
    double factor = keys.number("rope.scaling.factor").value_or(0);
    if (factor == 0) factor = keys.number("rope.scale_linear").value_or(0);  // its old name
    if (factor == 0) factor = 1;                                             // 0 means none, as in llama.cpp
    if (type != "none" && type != "linear")
        fail(keys.place(), "key " + keys.prefix() + "rope.scaling.type is " + shown(type) +
                               ", which isn't in this version; none and linear are, and the tensor rope_freqs.weight");
    if (keys.number("rope.scaling.attn_factor").value_or(1) != 1)
        fail(keys.place(), "key " + keys.prefix() + "rope.scaling.attn_factor isn't in this version");
    if (type == "linear" && factor != 1) {
        scaling.kind = rope_scaling_kind::linear;
        scaling.factor = factor;
    }
    if (has_divisors(file, rope_width)) {
        if (scaling.kind == rope_scaling_kind::linear)
            fail(keys.place(), "has linear RoPE scaling and the tensor rope_freqs.weight; only one of them is "
                               "in this version");
        scaling.kind = rope_scaling_kind::divisors;
    }
    return scaling;
}

void refuse_unknown_mathematics(const key_reader& keys) {
    keys.refuse("expert_count", "a mixture of experts");
    keys.refuse("attention.scale", "a scale of attention scores of its own");
    keys.refuse("logit_scale", "a scale of logits");
    keys.refuse("residual_scale", "a scale of residuals");
    keys.refuse("embedding_scale", "a scale of embeddings");
    keys.refuse("attn_logit_softcapping", "a soft cap of attention scores");
    keys.refuse("final_logit_softcapping", "a soft cap of logits");
    keys.refuse("attention.layer_norm_epsilon", "a layer norm");
}

}  // namespace

const gguf_variant* find_gguf_variant(std::string_view architecture) noexcept {
    const auto* const found = std::ranges::find(gguf_variants, architecture, &gguf_variant::key);
    return found == std::end(gguf_variants) ? nullptr : found;
}

void unknown_architecture(const std::string& place, std::string_view architecture) {
    fail(place, "has the architecture " + shown(architecture) +
                    ", which isn't in this version; llama, mistral, qwen2 and qwen3 are");
}

llama_hyperparameters read_gguf_hyperparameters(const model_file& file) {
    const gguf_variant* const variant = find_gguf_variant(file.architecture());
    if (variant == nullptr) unknown_architecture(file.metadata_place(), file.architecture());
    const key_reader keys(file);
    refuse_unknown_mathematics(keys);

    llama_hyperparameters sizes;
    sizes.architecture = variant->architecture;
    sizes.name = std::string(file.metadata().string("general.name").value_or(""));
    sizes.vocabulary = vocabulary_size(file, keys);
    sizes.width = keys.size("embedding_length");
    sizes.layers = keys.size("block_count");
    sizes.heads = keys.size("attention.head_count");
    if (sizes.heads == 0) fail(keys.place(), "key " + keys.prefix() + "attention.head_count is 0");
    sizes.kv_heads = keys.optional_size("attention.head_count_kv").value_or(sizes.heads);
    sizes.head_width = keys.optional_size("attention.key_length").value_or(sizes.width / sizes.heads);
    if (keys.optional_size("attention.value_length").value_or(sizes.head_width) != sizes.head_width)
        fail(keys.place(), "keys and values of different widths aren't in this version (" + keys.prefix() +
                               "attention.value_length)");
    sizes.feed_forward_width = keys.size("feed_forward_length");
    sizes.context_tokens = keys.size("context_length");
    sizes.sliding_window_tokens = keys.optional_size("attention.sliding_window").value_or(0);
    const auto epsilon = keys.number("attention.layer_norm_rms_epsilon");
    if (!epsilon) fail(keys.place(), "has no key " + keys.prefix() + "attention.layer_norm_rms_epsilon");
    sizes.rms_epsilon = static_cast<float>(*epsilon);
    sizes.rope_theta = keys.number("rope.freq_base").value_or(10000);
    sizes.rope_width = keys.optional_size("rope.dimension_count").value_or(sizes.head_width);
    sizes.scaling = read_scaling(file, keys, sizes.rope_width);
    sizes.tied_head = file.entry("output.weight") == nullptr;
    sizes.query_key_value_bias = file.entry("blk.0.attn_q.bias") != nullptr;
    sizes.attention_output_bias = file.entry("blk.0.attn_output.bias") != nullptr;
    sizes.feed_forward_bias = file.entry("blk.0.ffn_gate.bias") != nullptr;
    sizes.query_key_norm = variant->query_key_norm;
    sizes.query_key_rows_permuted = variant->rows_permuted;
    finish(sizes, keys.place());
    return sizes;
}

}  // namespace fermata::weights

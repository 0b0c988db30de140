#include "native/weights/tensor_names.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace fermata {
namespace {

using weights::fail;
using weights::shown;

struct role_names {
    tensor_role role;
    bool of_layer;
    std::string_view text;    // for messages
    std::string_view gguf;    // after "blk.N." for those of a layer
    std::string_view folder;  // after the prefix, and "layers.N." for those of a layer
};

constexpr role_names names[] = {
    {tensor_role::token_embedding, false, "token embedding", "token_embd.weight", "embed_tokens.weight"},
    {tensor_role::output_norm, false, "output norm", "output_norm.weight", "norm.weight"},
    {tensor_role::output_head, false, "output head", "output.weight", "lm_head.weight"},
    {tensor_role::rope_divisors, false, "RoPE divisors", "rope_freqs.weight", ""},
    {tensor_role::attention_norm, true, "attention norm", "attn_norm.weight", "input_layernorm.weight"},
    {tensor_role::query, true, "query", "attn_q.weight", "self_attn.q_proj.weight"},
    {tensor_role::key, true, "key", "attn_k.weight", "self_attn.k_proj.weight"},
    {tensor_role::value, true, "value", "attn_v.weight", "self_attn.v_proj.weight"},
    {tensor_role::attention_output, true, "attention output", "attn_output.weight", "self_attn.o_proj.weight"},
    {tensor_role::query_bias, true, "query bias", "attn_q.bias", "self_attn.q_proj.bias"},
    {tensor_role::key_bias, true, "key bias", "attn_k.bias", "self_attn.k_proj.bias"},
    {tensor_role::value_bias, true, "value bias", "attn_v.bias", "self_attn.v_proj.bias"},
    {tensor_role::attention_output_bias, true, "attention output bias", "attn_output.bias", "self_attn.o_proj.bias"},
    {tensor_role::query_norm, true, "query norm", "attn_q_norm.weight", "self_attn.q_norm.weight"},
    {tensor_role::key_norm, true, "key norm", "attn_k_norm.weight", "self_attn.k_norm.weight"},
    {tensor_role::feed_forward_norm, true, "feed-forward norm", "ffn_norm.weight", "post_attention_layernorm.weight"},
    {tensor_role::gate, true, "gate", "ffn_gate.weight", "mlp.gate_proj.weight"},
    {tensor_role::up, true, "up", "ffn_up.weight", "mlp.up_proj.weight"},
    {tensor_role::down, true, "down", "ffn_down.weight", "mlp.down_proj.weight"},
    {tensor_role::gate_bias, true, "gate bias", "ffn_gate.bias", "mlp.gate_proj.bias"},
    {tensor_role::up_bias, true, "up bias", "ffn_up.bias", "mlp.up_proj.bias"},
    {tensor_role::down_bias, true, "down bias", "ffn_down.bias", "mlp.down_proj.bias"},
};

const role_names& names_of(tensor_role role) noexcept { return names[static_cast<std::size_t>(role)]; }

static_assert([] {
    for (std::size_t i = 0; i < std::size(names); ++i)
        if (static_cast<std::size_t>(names[i].role) != i) return false;
    return true;
}());

// Where checkpoints put the text model; longer ones first.
constexpr std::string_view prefixes[] = {
    "language_model.model.", "model.language_model.", "model.text_model.", "language_model.", "model.", "",
};

// Takes "12." off the front: the layer, or nothing.
std::optional<std::int32_t> take_layer(std::string_view& name) noexcept {
    std::size_t digits = 0;
    std::int32_t layer = 0;
    while (digits < name.size() && digits < 5 && name[digits] >= '0' && name[digits] <= '9')
        layer = layer * 10 + (name[digits++] - '0');
    const bool leading_zero = digits > 1 && name[0] == '0';
    if (digits == 0 || leading_zero || digits == name.size() || name[digits] != '.') return std::nullopt;
    name.remove_prefix(digits + 1);
    return layer;
}

std::optional<tensor_key> match(std::string_view name, std::string_view layers, std::string_view role_names::*member) {
    std::int32_t layer = -1;
    if (name.starts_with(layers)) {
        std::string_view rest = name.substr(layers.size());
        const auto number = take_layer(rest);
        if (!number) return std::nullopt;
        layer = *number;
        name = rest;
    }
    for (const role_names& entry : names)
        if (entry.of_layer == (layer >= 0) && !(entry.*member).empty() && name == entry.*member)
            return tensor_key{entry.role, layer};
    return std::nullopt;
}

struct part_pattern {
    std::string_view fragment, part;
    bool at_start;
};

constexpr part_pattern parts[] = {
    {"visual.", "vision", false},          {"vision_tower.", "vision", false},
    {"vision_model.", "vision", false},    {"vision_encoder.", "vision", false},
    {"multi_modal_projector.", "vision", false}, {"model.connector.", "vision", true},
    {"image_newline", "vision", false},    {"mm_projector.", "vision", false},
    {"mlp1.", "vision", true},             {"v.", "vision", true},
    {"mm.", "vision", true},               {"audio_tower.", "audio", false},
    {"a.", "audio", true},                 {"mtp.", "draft head", true},
    {"model.mtp.", "draft head", true},    {".nextn.", "draft head", false},
    {"rotary_emb.inv_freq", "rotary buffer", false}, {"attn_rot_embd", "rotary buffer", false},
};

// Roles this configuration computes with; the others, if present, would be silently ignored.
bool is_used(tensor_role role, const llama_hyperparameters& sizes) {
    switch (role) {
        case tensor_role::rope_divisors: return sizes.scaling.kind == rope_scaling_kind::divisors;
        case tensor_role::query_bias:
        case tensor_role::key_bias:
        case tensor_role::value_bias: return sizes.query_key_value_bias;
        case tensor_role::attention_output_bias: return sizes.attention_output_bias;
        case tensor_role::query_norm:
        case tensor_role::key_norm: return sizes.query_key_norm;
        case tensor_role::gate_bias:
        case tensor_role::up_bias:
        case tensor_role::down_bias: return sizes.feed_forward_bias;
        default: return true;
    }
}

}  // namespace

std::string_view name_of(tensor_role role) noexcept { return names_of(role).text; }

std::optional<tensor_key> known_tensor(std::string_view name) noexcept {
    if (const auto key = match(name, "blk.", &role_names::gguf)) return key;
    for (const std::string_view prefix : prefixes)
        if (name.starts_with(prefix))
            if (const auto key = match(name.substr(prefix.size()), "layers.", &role_names::folder)) return key;
    return std::nullopt;
}

std::string_view skipped_part(std::string_view name) noexcept {
    for (const part_pattern& entry : parts) {
        const std::size_t at = name.find(entry.fragment);
        const bool at_word = at == 0 || (at != std::string_view::npos && (name[at - 1] == '.' || entry.fragment[0] == '.'));
        if (entry.at_start ? at == 0 : at_word) return entry.part;
    }
    return {};
}

std::string usual_name(model_format format, tensor_key key) {
    const role_names& entry = names_of(key.role);
    if (format == model_format::gguf)
        return (entry.of_layer ? "blk." + std::to_string(key.layer) + "." : "") + std::string(entry.gguf);
    if (key.role == tensor_role::output_head) return std::string(entry.folder);
    return "model." + (entry.of_layer ? "layers." + std::to_string(key.layer) + "." : "") + std::string(entry.folder);
}

llama_tensors::llama_tensors(const model_file& file, llama_hyperparameters& sizes) : file_(&file) {
    struct skipped {
        std::uint64_t count = 0;
        std::string_view first;
    };
    std::map<std::string_view, skipped> skipped_parts;
    for (const weights::file_tensor& tensor : file.tensors()) {
        const std::string_view name = tensor.view.name;
        const auto key = known_tensor(name);
        if (!key) {
            const std::string_view part = skipped_part(name);
            if (part.empty())
                fail(file.file_of(tensor), "tensor " + shown(name) + " isn't known to the architecture " +
                                               sizes.architecture + "; the model can't be computed without it");
            skipped& entry = skipped_parts[part];
            if (entry.count++ == 0) entry.first = name;
            continue;
        }
        if (key->layer >= static_cast<std::int32_t>(sizes.layers))
            fail(file.file_of(tensor), "tensor " + shown(name) + " belongs to layer " + std::to_string(key->layer) +
                                           ", but the model has " + std::to_string(sizes.layers));
        if (!is_used(key->role, sizes))
            fail(file.file_of(tensor), "tensor " + shown(name) + " has no place in this configuration of " +
                                           sizes.architecture);
        const auto [place, fresh] = by_key_.emplace(*key, &tensor);
        if (!fresh)
            fail(file.file_of(tensor), "tensors " + shown(place->second->view.name) + " and " + shown(name) +
                                           " are both the " + std::string(name_of(key->role)));
    }
    for (const auto& [part, entry] : skipped_parts)
        skipped_.push_back(std::string(part) + ": " + std::to_string(entry.count) + " tensors, the first " +
                           shown(entry.first));
    settle_head(sizes);
}

// config.json may say "tied" of a checkpoint that holds a head all the same. As in transformers, one equal to the
// embedding is the embedding, another one is used; and a head alone serves as the embedding.
void llama_tensors::settle_head(llama_hyperparameters& sizes) {
    if (!sizes.tied_head) return;
    const auto head = by_key_.find(tensor_key{tensor_role::output_head});
    if (head == by_key_.end()) return;
    const auto embedding = by_key_.find(tensor_key{tensor_role::token_embedding});
    if (embedding == by_key_.end()) {
        by_key_.emplace(tensor_key{tensor_role::token_embedding}, head->second);
        return;
    }
    const tensor_view& a = head->second->view;
    const tensor_view& b = embedding->second->view;
    const bool same = a.type == b.type && a.data.size() == b.data.size() &&
                      (a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0);
    if (same) return;
    sizes.tied_head = false;
    sizes.notes.push_back("the configuration ties the output head to the embedding, but the file holds a different one, "
                          "which is used");
}

const tensor_view* llama_tensors::find(tensor_role role, std::int32_t layer) const {
    const auto found = by_key_.find(tensor_key{role, layer});
    return found == by_key_.end() ? nullptr : file_->find(found->second->view.name);
}

const tensor_view& llama_tensors::require(tensor_role role, std::int32_t layer, std::size_t rows,
                                          std::size_t columns) const {
    const auto found = by_key_.find(tensor_key{role, layer});
    if (found == by_key_.end())
        fail(file_->path(), "has no tensor " + shown(usual_name(file_->format(), {role, layer})) + " (" +
                                std::to_string(rows) + " x " + std::to_string(columns) + " needed)");
    return file_->require(found->second->view.name, rows, columns);
}

}  // namespace fermata

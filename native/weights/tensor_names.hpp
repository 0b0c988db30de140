// One set of names for the tensors of llama-like models, whatever the file calls them:
//   GGUF          blk.3.attn_q.weight
//   transformers  model.layers.3.self_attn.q_proj.weight   (also under model.language_model., language_model.model.,
//                                                           model.text_model., language_model. and without model.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "native/weights/hyperparameters.hpp"
#include "native/weights/model_file.hpp"

namespace fermata {

enum class tensor_role : std::uint8_t {
    token_embedding,  // vocabulary x width
    output_norm,      // width
    output_head,      // vocabulary x width
    rope_divisors,    // rope_width / 2 (GGUF)
    // of a layer:
    attention_norm,       // width
    query,                // heads * head_width x width
    key,                  // kv_heads * head_width x width
    value,                // kv_heads * head_width x width
    attention_output,     // width x heads * head_width
    query_bias,
    key_bias,
    value_bias,
    attention_output_bias,
    query_norm,           // head_width
    key_norm,             // head_width
    feed_forward_norm,    // width
    gate,                 // feed_forward_width x width
    up,                   // feed_forward_width x width
    down,                 // width x feed_forward_width
    gate_bias,
    up_bias,
    down_bias,
};

std::string_view name_of(tensor_role role) noexcept;

struct tensor_key {
    tensor_role role{};
    std::int32_t layer = -1;  // -1: not of a layer
    friend auto operator<=>(const tensor_key&, const tensor_key&) = default;
};

// What `name` is in a llama-like model, in either naming; nothing when it isn't one of these.
std::optional<tensor_key> known_tensor(std::string_view name) noexcept;

// The part that isn't built into this version and to which `name` belongs ("vision", "audio", "draft head",
// "rotary buffer"); empty when it belongs to none.
std::string_view skipped_part(std::string_view name) noexcept;

// The name a GGUF file (or a folder of transformers) gives to a tensor.
std::string usual_name(model_format format, tensor_key key);

// The tensors of a llama-like checkpoint by role. Construction refuses unknown tensors, tensors the configuration has
// no place for, layers beyond the model's, and two tensors of one role, naming them; what belongs to parts not built
// yet is skipped and listed. It settles sizes.tied_head where file and configuration disagree.
class llama_tensors {
public:
    llama_tensors(const model_file& file, llama_hyperparameters& sizes);

    // Null when absent. Throws when its type can't be read.
    const tensor_view* find(tensor_role role, std::int32_t layer = -1) const;
    // Throws when absent, unreadable, or not of this shape (a vector has one row).
    const tensor_view& require(tensor_role role, std::int32_t layer, std::size_t rows, std::size_t columns) const;

    // One line a part: "vision: 391 tensors, the first 'model.visual.blocks.0.attn.proj.bias'".
    const std::vector<std::string>& skipped() const noexcept { return skipped_; }

private:
    void settle_head(llama_hyperparameters& sizes);

    const model_file* file_;
    std::map<tensor_key, const weights::file_tensor*> by_key_;
    std::vector<std::string> skipped_;
};

}  // namespace fermata

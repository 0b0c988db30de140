#include "native/weights/hyperparameters.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "native/weights/dequantise.hpp"
#include "native/weights/hyperparameters_detail.hpp"
#include "native/weights/limits.hpp"

namespace fermata {
namespace weights {

namespace {

struct bounded {
    std::string_view what;
    std::uint64_t value, maximum;
};

void check_ranges(const llama_hyperparameters& sizes, const std::string& place) {
    const bounded values[] = {
        {"vocabulary size", sizes.vocabulary, limits::vocabulary_max},
        {"width", sizes.width, limits::width_max},
        {"number of layers", sizes.layers, limits::layers_max},
        {"number of heads", sizes.heads, limits::heads_max},
        {"number of KV heads", sizes.kv_heads, limits::heads_max},
        {"head width", sizes.head_width, limits::head_width_max},
        {"feed-forward width", sizes.feed_forward_width, limits::feed_forward_width_max},
        {"context length", sizes.context_tokens, limits::context_tokens_max},
    };
    for (const bounded& entry : values)
        if (entry.value == 0 || entry.value > entry.maximum)
            fail(place, "the " + std::string(entry.what) + " is " + std::to_string(entry.value) +
                            "; it should be from 1 to " + std::to_string(entry.maximum));
}

void check_positive(double value, std::string_view what, const std::string& place) {
    if (!(value > 0) || !std::isfinite(value))
        fail(place, "the " + std::string(what) + " is " + std::to_string(value) + "; it should be above 0 and finite");
}

void check_rope(const llama_hyperparameters& sizes, const std::string& place) {
    check_positive(sizes.rope_theta, "RoPE base (rope_theta)", place);
    if (sizes.rope_width == 0 || sizes.rope_width % 2 != 0 || sizes.rope_width > sizes.head_width)
        fail(place, "RoPE rotates " + std::to_string(sizes.rope_width) + " dimensions; it should be an even number up "
                        "to the head width " + std::to_string(sizes.head_width));
    if (sizes.query_key_rows_permuted && sizes.rope_width != sizes.head_width)
        fail(place, "RoPE over a part of the head (" + std::to_string(sizes.rope_width) + " of " +
                        std::to_string(sizes.head_width) + ") isn't in this version for this architecture");
    const rope_scaling& scaling = sizes.scaling;
    check_positive(scaling.factor, "RoPE scaling factor", place);
    if (scaling.kind != rope_scaling_kind::llama3) return;
    check_positive(scaling.low_frequency_factor, "RoPE scaling's low_freq_factor", place);
    check_positive(scaling.high_frequency_factor, "RoPE scaling's high_freq_factor", place);
    if (scaling.high_frequency_factor <= scaling.low_frequency_factor)
        fail(place, "RoPE scaling's high_freq_factor should be above its low_freq_factor");
    if (scaling.original_context_tokens == 0)
        fail(place, "RoPE scaling's original_max_position_embeddings should be above 0");
}

// Sliding windows aren't computed; up to the window's length they change nothing.
void apply_window(llama_hyperparameters& sizes) {
    const std::uint32_t window = sizes.sliding_window_tokens;
    if (window == 0 || window >= sizes.context_tokens) {
        sizes.sliding_window_tokens = 0;
        return;
    }
    sizes.notes.push_back("attention slides over windows of " + std::to_string(window) +
                          " tokens, which isn't in this version: contexts are limited to one window (trained for " +
                          std::to_string(sizes.context_tokens) + ")");
    sizes.context_tokens = window;
}

}  // namespace

void finish(llama_hyperparameters& sizes, const std::string& place) {
    check_ranges(sizes, place);
    if (sizes.heads % sizes.kv_heads != 0)
        fail(place, "the number of heads " + std::to_string(sizes.heads) + " isn't a multiple of the number of KV heads " +
                        std::to_string(sizes.kv_heads));
    check_positive(static_cast<double>(sizes.rms_epsilon), "epsilon of the RMS norm", place);
    check_rope(sizes, place);
    apply_window(sizes);
}

std::uint32_t to_size(std::uint64_t value, std::string_view key, const std::string& place) {
    if (value > limits::context_tokens_max)  // the largest of all limits; exact ones are checked in `finish`
        fail(place, "key " + std::string(key) + " is " + std::to_string(value) + ", beyond any limit");
    return static_cast<std::uint32_t>(value);
}

}  // namespace weights

bool is_llama_like(std::string_view architecture) noexcept {
    return weights::find_gguf_variant(architecture) != nullptr || weights::find_folder_variant(architecture) != nullptr;
}

llama_hyperparameters read_llama_hyperparameters(const model_file& file) {
    return file.format() == model_format::gguf ? weights::read_gguf_hyperparameters(file)
                                               : weights::read_folder_hyperparameters(file);
}

}  // namespace fermata

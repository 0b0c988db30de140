#include "native/models/llama/weights.hpp"

#include <cmath>
#include <numbers>

#include "native/weights/dequantise.hpp"
#include "native/weights/error.hpp"
#include "native/weights/tensor_names.hpp"

namespace fermata::llama {
namespace {

class loader {
public:
    loader(const model_file& file, backend& device, llama_hyperparameters& sizes)
        : file_(file), device_(device), sizes_(sizes), tensors_(file, sizes) {}

    std::unique_ptr<weight> matrix(tensor_role role, std::int32_t layer, std::size_t rows, std::size_t columns,
                                   std::span<const std::uint32_t> order = {}) {
        const tensor_view& view = tensors_.require(role, layer, rows, columns);
        std::unique_ptr<weight> packed = device_.pack(view, order);
        resident_bytes_ += packed->resident_bytes();
        parameters_ += std::uint64_t{rows} * columns;
        file_.release(view);
        return packed;
    }

    buffer vector(tensor_role role, std::int32_t layer, std::size_t columns, std::span<const std::uint32_t> order = {}) {
        const tensor_view& view = tensors_.require(role, layer, 1, columns);
        buffer packed = device_.pack_vector(view, order);
        resident_bytes_ += packed.size();
        parameters_ += columns;
        return packed;
    }

    buffer vector_if(bool present, tensor_role role, std::int32_t layer, std::size_t columns,
                     std::span<const std::uint32_t> order = {}) {
        return present ? vector(role, layer, columns, order) : buffer{};
    }

    const tensor_view* find(tensor_role role) const { return tensors_.find(role); }
    std::size_t resident_bytes() const { return resident_bytes_; }
    std::uint64_t parameters() const { return parameters_; }

    // Where the rows of a matrix of `heads` heads lie in the file.
    std::vector<std::uint32_t> row_order(std::uint32_t heads) const {
        std::vector<std::uint32_t> order;
        if (!sizes_.query_key_rows_permuted) return order;
        order.reserve(std::size_t{heads} * sizes_.head_width);
        for (std::uint32_t h = 0; h < heads; ++h)
            for (std::uint32_t i = 0; i < sizes_.head_width; ++i)
                order.push_back(h * sizes_.head_width + permuted_row(i, sizes_.head_width));
        return order;
    }

private:
    const model_file& file_;
    backend& device_;
    llama_hyperparameters& sizes_;
    llama_tensors tensors_;
    std::size_t resident_bytes_ = 0;
    std::uint64_t parameters_ = 0;
};

layer_weights load_layer(loader& from, const llama_hyperparameters& s, std::int32_t layer,
                         std::span<const std::uint32_t> query_order, std::span<const std::uint32_t> key_order) {
    const std::size_t width = s.width, queries = std::size_t{s.heads} * s.head_width;
    const std::size_t keys = std::size_t{s.kv_heads} * s.head_width, inner = s.feed_forward_width;
    layer_weights w;
    w.attention_norm = from.vector(tensor_role::attention_norm, layer, width);
    w.query = from.matrix(tensor_role::query, layer, queries, width, query_order);
    w.key = from.matrix(tensor_role::key, layer, keys, width, key_order);
    w.value = from.matrix(tensor_role::value, layer, keys, width);
    w.query_bias = from.vector_if(s.query_key_value_bias, tensor_role::query_bias, layer, queries, query_order);
    w.key_bias = from.vector_if(s.query_key_value_bias, tensor_role::key_bias, layer, keys, key_order);
    w.value_bias = from.vector_if(s.query_key_value_bias, tensor_role::value_bias, layer, keys);
    w.query_norm = from.vector_if(s.query_key_norm, tensor_role::query_norm, layer, s.head_width);
    w.key_norm = from.vector_if(s.query_key_norm, tensor_role::key_norm, layer, s.head_width);
    w.attention_output = from.matrix(tensor_role::attention_output, layer, width, queries);
    w.attention_output_bias =
        from.vector_if(s.attention_output_bias, tensor_role::attention_output_bias, layer, width);
    w.feed_forward_norm = from.vector(tensor_role::feed_forward_norm, layer, width);
    w.gate = from.matrix(tensor_role::gate, layer, inner, width);
    w.up = from.matrix(tensor_role::up, layer, inner, width);
    w.down = from.matrix(tensor_role::down, layer, width, inner);
    w.gate_bias = from.vector_if(s.feed_forward_bias, tensor_role::gate_bias, layer, inner);
    w.up_bias = from.vector_if(s.feed_forward_bias, tensor_role::up_bias, layer, inner);
    w.down_bias = from.vector_if(s.feed_forward_bias, tensor_role::down_bias, layer, width);
    return w;
}

// Llama 3: short wavelengths stay, long ones are divided by the factor, those between are blended.
double llama3_frequency(double frequency, const rope_scaling& scaling) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    const double context = scaling.original_context_tokens;
    if (wavelength < context / scaling.high_frequency_factor) return frequency;
    if (wavelength > context / scaling.low_frequency_factor) return frequency / scaling.factor;
    const double blend = (context / wavelength - scaling.low_frequency_factor) /
                         (scaling.high_frequency_factor - scaling.low_frequency_factor);
    return (1 - blend) * frequency / scaling.factor + blend * frequency;
}

}  // namespace

std::vector<float> inverse_frequencies(const llama_hyperparameters& sizes, const tensor_view* divisors) {
    const std::size_t half = sizes.rope_width / 2;
    std::vector<float> result(half), divisor(half, 1.0f);
    if (divisors != nullptr) dequantise(divisors->type, divisors->data, divisor);
    for (std::size_t i = 0; i < half; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / sizes.rope_width;
        double frequency = std::pow(sizes.rope_theta, exponent);
        switch (sizes.scaling.kind) {
            case rope_scaling_kind::none: break;
            case rope_scaling_kind::linear: frequency /= sizes.scaling.factor; break;
            case rope_scaling_kind::llama3: frequency = llama3_frequency(frequency, sizes.scaling); break;
            case rope_scaling_kind::divisors: frequency /= static_cast<double>(divisor[i]); break;
        }
        result[i] = static_cast<float>(frequency);
    }
    return result;
}

weights load_weights(const model_file& file, backend& device) {
    weights w;
    w.sizes = read_llama_hyperparameters(file);
    if (w.sizes.query_key_rows_permuted && w.sizes.rope_width != w.sizes.head_width)
        fermata::weights::fail(file.metadata_place(), "rotates " + std::to_string(w.sizes.rope_width) + " of " +
                                                          std::to_string(w.sizes.head_width) +
                                                          " dimensions of a head, which isn't in this version");
    loader from(file, device, w.sizes);
    const llama_hyperparameters& s = w.sizes;
    const bool by_divisors = s.scaling.kind == rope_scaling_kind::divisors;
    w.inverse_frequencies = inverse_frequencies(s, by_divisors ? from.find(tensor_role::rope_divisors) : nullptr);
    w.embedding = from.matrix(tensor_role::token_embedding, -1, s.vocabulary, s.width);
    if (!s.tied_head) w.head = from.matrix(tensor_role::output_head, -1, s.vocabulary, s.width);
    w.output_norm = from.vector(tensor_role::output_norm, -1, s.width);
    const std::vector<std::uint32_t> query_order = from.row_order(s.heads), key_order = from.row_order(s.kv_heads);
    for (std::uint32_t layer = 0; layer < s.layers; ++layer)
        w.layers.push_back(load_layer(from, s, static_cast<std::int32_t>(layer), query_order, key_order));
    file.release_all();
    w.resident_bytes = from.resident_bytes();
    w.parameters = from.parameters();
    return w;
}

}  // namespace fermata::llama

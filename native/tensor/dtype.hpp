// Element types of tensors, in files and in memory. Quantised types come in blocks: `block_elements` values
// share `block_bytes` bytes. Numbers follow the GGUF specification and the safetensors header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fermata {

enum class dtype : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };

struct dtype_traits {
    std::string_view name;
    std::size_t block_elements;
    std::size_t block_bytes;
    bool quantised;
};

constexpr dtype_traits traits_of(dtype type) noexcept {
    switch (type) {
        case dtype::f32: return {"F32", 1, 4, false};
        case dtype::f16: return {"F16", 1, 2, false};
        case dtype::bf16: return {"BF16", 1, 2, false};
        case dtype::q8_0: return {"Q8_0", 32, 34, true};
        case dtype::q4_0: return {"Q4_0", 32, 18, true};
        case dtype::q4_1: return {"Q4_1", 32, 20, true};
        case dtype::q5_0: return {"Q5_0", 32, 22, true};
        case dtype::q5_1: return {"Q5_1", 32, 24, true};
        case dtype::q4_k: return {"Q4_K", 256, 144, true};
        case dtype::q5_k: return {"Q5_K", 256, 176, true};
        case dtype::q6_k: return {"Q6_K", 256, 210, true};
    }
    return {"?", 1, 1, false};
}

}  // namespace fermata

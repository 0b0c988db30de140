#include "native/backend.hpp"

namespace fermata {

std::string_view name_of(compute_mode mode) noexcept { return mode == compute_mode::int8 ? "int8" : "f32"; }

std::string_view name_of(kv_dtype type) noexcept {
    switch (type) {
        case kv_dtype::f32: return "f32";
        case kv_dtype::f16: return "f16";
        case kv_dtype::bf16: return "bf16";
    }
    return "?";
}

std::size_t element_bytes(kv_dtype type) noexcept { return type == kv_dtype::f32 ? 4 : 2; }

kv_dtype parse_kv_dtype(std::string_view name) {
    if (name == "f32") return kv_dtype::f32;
    if (name == "f16") return kv_dtype::f16;
    if (name == "bf16") return kv_dtype::bf16;
    if (name == "fp8" || name == "int8")
        throw backend_error("--kv-dtype " + std::string(name) + ": not in this version; one of f32, f16, bf16");
    throw backend_error("--kv-dtype " + std::string(name) + ": unknown; one of f32, f16, bf16");
}

compute_mode parse_compute_mode(std::string_view name) {
    if (name == "int8") return compute_mode::int8;
    if (name == "f32") return compute_mode::f32;
    throw backend_error("--compute " + std::string(name) + ": unknown; one of int8, f32");
}

}  // namespace fermata

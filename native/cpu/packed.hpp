// Weights in the kernels' layout (packed_format.hpp): packing from a file's tensor, and single rows back out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "native/backend.hpp"
#include "native/cpu/kernel_table.hpp"
#include "native/cpu/packed_format.hpp"

namespace fermata::cpu {

// The least multiple of `to` that is not below n.
constexpr std::size_t round_up(std::size_t n, std::size_t to) noexcept { return (n + to - 1) / to * to; }

packing packing_of(dtype type) noexcept;
constexpr bool is_integer(packing form) noexcept { return form >= packing::q8_0; }
const integer_format& integer_format_of(packing form) noexcept;  // of an integer packing

// Bytes of a panel of 16 outputs, a multiple of 64, and where its quants begin.
struct panel_size {
    std::size_t bytes = 0;
    std::size_t quants_offset = 0;
};
panel_size size_of_panel(packing form, std::size_t inputs) noexcept;

class packed_matrix final : public weight {
public:
    panels layout{};
    std::string name;

    std::size_t outputs() const noexcept override { return layout.outputs; }
    std::size_t inputs() const noexcept override { return layout.inputs; }
    std::size_t resident_bytes() const noexcept override { return panel_count() * layout.panel_bytes; }
    std::size_t panel_count() const noexcept { return (layout.outputs + 15) / 16; }
    bool integer() const noexcept { return is_integer(layout.form); }
};

// Packs panel `panel` of the tensor into `to` (layout.panel_bytes, zeroed). Returns false when a scale or a value isn't
// finite. `row_order` as in backend::pack.
bool pack_panel(const tensor_view& tensor, std::span<const std::uint32_t> row_order, const panels& layout,
                std::size_t panel, std::byte* to) noexcept;

// Row `output` as float32, the value that the float path computes with; `to` holds `inputs` floats.
void unpack_row(const panels& layout, std::size_t output, float* to) noexcept;

}  // namespace fermata::cpu

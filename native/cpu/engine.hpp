// The CPU backend's class: memory in memory.cpp, operations in operations.cpp and attention_operation.cpp.
//
// Every operation is cut into items over rows, panels of outputs or heads, never over a reduction, and the items go to
// the pool; small operations stay on the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "native/backend.hpp"
#include "native/cpu/cpu_backend.hpp"
#include "native/cpu/kernel_table.hpp"
#include "native/cpu/levels.hpp"
#include "native/cpu/packed.hpp"
#include "native/cpu/pool.hpp"

namespace fermata::cpu {

// Anonymous memory that costs only what was touched. Weights are cut from large chunks of it, never freed singly.
class arena {
public:
    arena() = default;
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;
    ~arena();
    std::byte* take(std::size_t bytes);  // zeroed, aligned to 64; throws backend_error

private:
    struct chunk {
        std::byte* data;
        std::size_t size, used;
    };
    std::vector<chunk> chunks_;
};

std::byte* map_memory(std::size_t bytes, bool large_pages);  // zeroed; throws backend_error
void unmap_memory(std::byte* data, std::size_t bytes) noexcept;

// Query vectors that one attention item handles at most.
inline constexpr std::size_t queries_max = 32;

class engine final : public backend {
public:
    explicit engine(const cpu_options& options);
    ~engine() override;

    std::string_view name() const noexcept override { return "cpu"; }
    std::string describe() const override;
    numerics numeric_contract() const noexcept override { return numerics::invariant; }
    compute_mode compute() const noexcept override { return compute_; }
    std::size_t workspace_bytes() const noexcept override { return workspace_bytes_; }

    buffer allocate(std::size_t bytes, memory_kind kind) override;
    copy_event copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
    bool complete(copy_event) noexcept override { return true; }
    void wait(copy_event) override {}
    void synchronize() override {}

    std::unique_ptr<weight> pack(const tensor_view& tensor, std::span<const std::uint32_t> row_order) override;
    buffer pack_vector(const tensor_view& tensor, std::span<const std::uint32_t> row_order) override;

    void prepare(const unit_limits& limits) override;
    void begin_unit(const unit_rows& rows, std::span<const float> inverse_frequencies) override;
    void embed(const weight& table, std::span<const token_id> tokens, float* out) override;
    void rms_norm(const float* x, const float* scale, float epsilon, std::size_t rows, std::size_t width,
                  float* out) override;
    void linear(const float* x, std::size_t rows, std::span<const linear_part> parts) override;
    void rotate(float* x, std::size_t heads, std::size_t head_width) override;
    void gather_rows(const float* x, std::size_t width, std::span<const std::uint32_t> rows, float* out) override;
    void store_kv(const kv_shape& shape, std::uint32_t layer, std::byte* pool, const float* keys,
                  const float* values) override;
    void attention(const kv_shape& shape, std::uint32_t layer, const std::byte* pool, const float* queries,
                   std::size_t query_heads, float scale, float* out) override;
    void silu_multiply(const float* gate, const float* up, std::size_t rows, std::size_t width, float* out) override;
    void logits(const weight& head, const float* x, std::size_t rows, float* const* out) override;

private:
    struct linear_plan;
    struct attention_plan;

    void free(std::byte* data, std::size_t size) noexcept override;
    void quantise_rows(const float* x, std::size_t rows, std::size_t inputs);
    void run_linear(const float* x, std::size_t rows, std::span<const linear_part> parts, float* const* out_rows);
    void attention_item_of(const attention_plan& plan, std::size_t item, unsigned thread);
    // Runs task(first, last) over [0, count) in pieces; on the calling thread when count * cost is small.
    template <class Task>
    void over_rows(std::size_t count, std::size_t cost, Task&& task);

    level level_;
    const kernel_table* kernels_ = nullptr;
    compute_mode compute_;
    fork_join_pool pool_;
    arena weights_;

    unit_limits limits_{};
    std::size_t workspace_bytes_ = 0;
    buffer quants_, scales_, scaled_sums_, sums_;  // activations in blocks of 32
    quantised_rows quantised_{};
    buffer cosines_, sines_;
    std::vector<buffer> scratch_;  // a thread's own
    std::size_t score_stride_ = 0;

    unit_rows unit_{};
    std::size_t rotary_half_ = 0;
    std::vector<std::size_t> tiles_before_;  // of each sequence of the unit; then the total
};

}  // namespace fermata::cpu

// Memory, weights and options of the CPU backend.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "native/cpu/engine.hpp"
#include "native/weights/dequantise.hpp"
#include "native/weights/error.hpp"

namespace fermata {
namespace cpu {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{32} << 20;
constexpr std::size_t large_page_bytes = std::size_t{2} << 20;

}  // namespace

std::byte* map_memory(std::size_t bytes, bool large_pages) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        throw backend_error("cpu: no memory for " + std::to_string(bytes) + " bytes");
    if (large_pages) madvise(data, bytes, MADV_HUGEPAGE);  // fewer TLB misses; a refusal changes nothing else
    return static_cast<std::byte*>(data);
}

void unmap_memory(std::byte* data, std::size_t bytes) noexcept { munmap(data, bytes); }

arena::~arena() {
    for (const chunk& c : chunks_) unmap_memory(c.data, c.size);
}

std::byte* arena::take(std::size_t bytes) {
    bytes = round_up(std::max<std::size_t>(bytes, 1), 64);
    if (chunks_.empty() || chunks_.back().size - chunks_.back().used < bytes) {
        const std::size_t size = round_up(std::max(bytes, chunk_bytes), large_page_bytes) + large_page_bytes;
        std::byte* const data = map_memory(size, true);
        // Large pages need aligned addresses; what lies before the first is never touched.
        const auto address = reinterpret_cast<std::uintptr_t>(data);
        chunks_.push_back({data, size, round_up(address, large_page_bytes) - address});
    }
    chunk& last = chunks_.back();
    std::byte* data = last.data + last.used;
    last.used += bytes;
    return data;
}

engine::engine(const cpu_options& options)
    : level_(choose_level(options.simd)),
      kernels_(level_.table),
      compute_(options.compute),
      pool_(options.threads == 0 ? physical_cores() : options.threads) {}

engine::~engine() = default;

std::string engine::describe() const {
    return "cpu: " + level_.description + ", " + std::to_string(pool_.threads()) +
           (pool_.threads() == 1 ? " thread, " : " threads, ") + std::string(name_of(compute_)) + " activations";
}

buffer engine::allocate(std::size_t bytes, memory_kind) {
    bytes = std::max<std::size_t>(bytes, 1);
    return {*this, map_memory(bytes, false), bytes};
}

void engine::free(std::byte* data, std::size_t size) noexcept { unmap_memory(data, size); }

copy_event engine::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    return {};
}

std::unique_ptr<weight> engine::pack(const tensor_view& tensor, std::span<const std::uint32_t> row_order) {
    auto matrix = std::make_unique<packed_matrix>();
    matrix->name = std::string(tensor.name);
    panels& layout = matrix->layout;
    layout.form = packing_of(tensor.type);
    layout.outputs = row_order.empty() ? tensor.rows : row_order.size();
    layout.inputs = tensor.columns;
    const panel_size size = size_of_panel(layout.form, layout.inputs);
    layout.panel_bytes = size.bytes;
    layout.quants_offset = size.quants_offset;
    const std::size_t count = matrix->panel_count();
    std::byte* data = weights_.take(count * size.bytes);
    layout.data = data;
    std::atomic<bool> finite{true};
    pool_.run(count, [&](std::size_t panel, unsigned) {
        if (!pack_panel(tensor, row_order, layout, panel, data + panel * size.bytes)) finite.store(false);
    });
    if (!finite.load())
        throw backend_error("tensor " + weights::shown(tensor.name) + " (" + std::string(traits_of(tensor.type).name) +
                            ") has values that are not finite: the file is damaged");
    return matrix;
}

buffer engine::pack_vector(const tensor_view& tensor, std::span<const std::uint32_t> row_order) {
    const std::size_t count = tensor.rows * tensor.columns;
    std::vector<float> values(count);
    dequantise(tensor.type, tensor.data, values);
    buffer packed = allocate(round_up(count, 16) * sizeof(float), memory_kind::device);
    for (std::size_t i = 0; i < count; ++i) {
        const float value = values[row_order.empty() ? i : row_order[i]];
        if (!(value - value == 0.0f))
            throw backend_error("tensor " + weights::shown(tensor.name) + " has the value " + std::to_string(value) +
                                " at " + std::to_string(i) + ": the file is damaged");
        packed.floats()[i] = value;
    }
    return packed;
}

}  // namespace cpu

std::unique_ptr<backend> make_cpu_backend(const cpu_options& options) {
    constexpr unsigned threads_max = 1024;
    if (options.threads > threads_max)
        throw backend_error("--threads " + std::to_string(options.threads) + ": at most " + std::to_string(threads_max));
    return std::make_unique<cpu::engine>(options);
}

}  // namespace fermata

// The seam between model families and a device. A backend owns memory, weights in a layout of its own, and the kernels
// at the granularity of one operation of a layer; a family's forward pass is written once over them, Program and
// stores allocate and copy through them and know nothing else of the device.
//
// Rules every backend keeps:
//  - Operations are issued from one thread and take effect in the order of issue. Their results are visible to the
//    host after `synchronize` (a CPU backend is done when the call returns).
//  - After `prepare` no operation allocates.
//  - `numeric_contract() == numerics::invariant`: a row's results depend on that row's inputs (and, for attention, on
//    the keys and values up to its position) alone: not on other rows, the number of threads or the instruction set.
//  - Sums follow two orders only: products with weights, and weighted sums of values, per output element in ascending
//    order over k or over integer blocks of k; dot products of activations and sums of squares by 16 partial sums
//    (element i into sum i mod 16) and one tree 8-4-2-1. Multiply and add are fused everywhere in such sums.
//
// Pointers to activations are the backend's (device pointers for CUDA). All matrices are row-major, one token a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "messages/ids.hpp"
#include "messages/vocabulary.hpp"
#include "native/model.hpp"
#include "native/tensor/tensor_view.hpp"

namespace fermata {

class backend;

// A device that can't do what it is asked: too little memory, an instruction set the CPU lacks, a lost GPU.
class backend_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

enum class compute_mode : std::uint8_t {
    int8,  // activations that meet quantised weights are quantised too: int8 in blocks of 32
    f32    // activations stay float32
};
enum class kv_dtype : std::uint8_t { f32, f16, bf16 };
enum class memory_kind : std::uint8_t { device, host };  // host: what the device can copy from and to directly

std::string_view name_of(compute_mode mode) noexcept;
std::string_view name_of(kv_dtype type) noexcept;
std::size_t element_bytes(kv_dtype type) noexcept;
// "f32", "f16", "bf16"; throws backend_error for anything else, saying so for the types of later versions.
kv_dtype parse_kv_dtype(std::string_view name);
compute_mode parse_compute_mode(std::string_view name);

// Memory of a backend: zeroed when allocated, aligned to 64 bytes at least, freed on destruction.
class buffer {
public:
    buffer() = default;
    buffer(backend& owner, std::byte* data, std::size_t size) noexcept : owner_(&owner), data_(data), size_(size) {}
    buffer(buffer&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)) {}
    buffer& operator=(buffer&& other) noexcept {
        if (this != &other) {
            release();
            owner_ = std::exchange(other.owner_, nullptr);
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
        }
        return *this;
    }
    ~buffer() { release(); }

    std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    float* floats() const noexcept { return reinterpret_cast<float*>(data_); }
    explicit operator bool() const noexcept { return data_ != nullptr; }

private:
    void release() noexcept;

    backend* owner_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

// The point in the copy stream after a copy; 0 is always complete.
struct copy_event {
    std::uint64_t value = 0;
};

// A matrix (outputs x inputs) in the backend's own layout.
class weight {
public:
    weight() = default;
    weight(const weight&) = delete;
    weight& operator=(const weight&) = delete;
    virtual ~weight() = default;

    virtual std::size_t outputs() const noexcept = 0;
    virtual std::size_t inputs() const noexcept = 0;
    virtual std::size_t resident_bytes() const noexcept = 0;
};

// Where one layer's keys and values lie inside a page of `page_tokens` tokens: per layer first the keys, then the
// values; within each, KV heads one after another, and within a head blocks of 16 tokens. A block of keys is stored
// dimension by dimension, 16 tokens side by side ([head_width][16]); a block of values token by token
// ([16][head_width]). A type with scales would put them behind its values, inside layer_bytes.
struct kv_shape {
    kv_dtype type = kv_dtype::f16;
    std::uint32_t page_tokens = 64;  // a multiple of 16
    std::uint32_t layers = 0;
    std::uint32_t kv_heads = 0;
    std::uint32_t head_width = 0;

    std::size_t head_bytes() const noexcept { return std::size_t{page_tokens} * head_width * element_bytes(type); }
    std::size_t values_offset() const noexcept { return kv_heads * head_bytes(); }
    std::size_t layer_bytes() const noexcept { return 2 * kv_heads * head_bytes(); }
    std::size_t page_bytes() const noexcept { return layers * layer_bytes(); }
};

// The rows of a unit that belong to one sequence: rows first_row .. first_row + count - 1 sit at positions
// first_position .. of the sequence whose page table is `pages`.
struct sequence_rows {
    std::size_t first_row = 0;
    std::size_t count = 0;
    std::uint32_t first_position = 0;
    std::span<const page_id> pages;
};

struct unit_rows {
    std::size_t rows = 0;
    std::span<const sequence_rows> sequences;
};

// The largest things `prepare` makes room for.
struct unit_limits {
    std::size_t rows = 0;              // tokens of a unit
    std::size_t sequences = 0;         // of a unit
    std::size_t inputs = 0;            // of any matrix
    std::size_t context_tokens = 0;    // of any sequence
    std::size_t query_heads = 0;
    std::size_t rotary_width = 0;      // 0: no rotary embedding
    kv_shape kv;
};

// out[row] (+)= matrix * x[row] + bias. `accumulate`: the finished product (bias included) is added to what is there.
struct linear_part {
    const weight* matrix = nullptr;
    const float* bias = nullptr;  // null, or floats of `outputs` rounded up to a multiple of 16
    float* out = nullptr;         // rows x outputs
    bool accumulate = false;
};

class backend {
public:
    backend() = default;
    backend(const backend&) = delete;
    backend& operator=(const backend&) = delete;
    virtual ~backend() = default;

    virtual std::string_view name() const noexcept = 0;         // "cpu", "cuda"
    virtual std::string describe() const = 0;                   // "cpu: avx512 with VNNI, 2 threads, int8 activations"
    virtual numerics numeric_contract() const noexcept = 0;
    virtual compute_mode compute() const noexcept = 0;
    virtual std::size_t workspace_bytes() const noexcept = 0;   // of the kernels, after prepare

    // Memory and copies. Copies run in their own order; source and destination must live until the event is complete.
    virtual buffer allocate(std::size_t bytes, memory_kind kind) = 0;
    virtual copy_event copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
    virtual bool complete(copy_event event) noexcept = 0;
    virtual void wait(copy_event event) = 0;
    virtual void synchronize() = 0;

    // Weights. Throw backend_error naming the tensor for values that aren't finite.
    // `row_order` (empty: as they are): output i is row row_order[i] of the tensor.
    virtual std::unique_ptr<weight> pack(const tensor_view& tensor, std::span<const std::uint32_t> row_order) = 0;
    // A vector as float32, zero-padded to a multiple of 16.
    virtual buffer pack_vector(const tensor_view& tensor, std::span<const std::uint32_t> row_order) = 0;

    virtual void prepare(const unit_limits& limits) = 0;

    // A unit begins (or goes on with some of its rows only): its rows, and the angles of the rotary embedding (position
    // times frequency, in float32) for `inverse_frequencies` (rotary_width / 2 of them). The spans stay valid until the unit's last operation.
    virtual void begin_unit(const unit_rows& rows, std::span<const float> inverse_frequencies) = 0;

    // out[i] = row tokens[i] of the table. Tokens have been checked against the table's size.
    virtual void embed(const weight& table, std::span<const token_id> tokens, float* out) = 0;
    // out = x / sqrt(mean(x^2) + epsilon) * scale, over `rows` rows of `width`.
    virtual void rms_norm(const float* x, const float* scale, float epsilon, std::size_t rows, std::size_t width,
                          float* out) = 0;
    // Several matrices (of equal inputs) applied to the same rows.
    virtual void linear(const float* x, std::size_t rows, std::span<const linear_part> parts) = 0;
    // Rotates the first rotary_width elements of each of `heads` heads of every row of the unit; pairs i, i + half.
    virtual void rotate(float* x, std::size_t heads, std::size_t head_width) = 0;
    // out[i] = x[rows[i]], over rows of `width`. `rows` ascends strictly; out may be x.
    virtual void gather_rows(const float* x, std::size_t width, std::span<const std::uint32_t> rows, float* out) = 0;
    // Writes the unit's keys and values (rows x kv_heads * head_width) into their places in `pool`.
    virtual void store_kv(const kv_shape& shape, std::uint32_t layer, std::byte* pool, const float* keys,
                          const float* values) = 0;
    // Causal attention of the unit's queries (rows x query_heads * head_width) over their sequences' pages.
    virtual void attention(const kv_shape& shape, std::uint32_t layer, const std::byte* pool, const float* queries,
                           std::size_t query_heads, float scale, float* out) = 0;
    // out = silu(gate) * up, elementwise; out may be gate.
    virtual void silu_multiply(const float* gate, const float* up, std::size_t rows, std::size_t width, float* out) = 0;
    // The output head: for each i, host memory out[i] (outputs floats) = head * x[i].
    virtual void logits(const weight& head, const float* x, std::size_t rows, float* const* out) = 0;

private:
    friend class buffer;
    virtual void free(std::byte* data, std::size_t size) noexcept = 0;
};

inline void buffer::release() noexcept {
    if (owner_ != nullptr && data_ != nullptr) owner_->free(data_, size_);
    data_ = nullptr;
}

}  // namespace fermata

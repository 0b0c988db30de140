// The operations of the CPU backend but attention.
#include <algorithm>
#include <cstring>

#include "native/cpu/engine.hpp"
#include "native/cpu/rotary.hpp"

namespace fermata::cpu {
namespace {

// Below this much work (in floats touched) waking other threads costs more than it saves.
constexpr std::size_t alone_below = 16384;

}  // namespace

template <class Task>
void engine::over_rows(std::size_t count, std::size_t cost, Task&& task) {
    if (count < 2 || count * cost < alone_below || pool_.threads() == 1) {
        task(0, count);
        return;
    }
    const std::size_t pieces = std::min(count, std::size_t{4} * pool_.threads());
    pool_.run(pieces, [&](std::size_t piece, unsigned) { task(piece * count / pieces, (piece + 1) * count / pieces); });
}

void engine::prepare(const unit_limits& limits) {
    limits_ = limits;
    const std::size_t inputs = round_up(limits.inputs, 32);
    const std::size_t blocks = inputs / 32;
    if (compute_ == compute_mode::int8) {
        quants_ = allocate(limits.rows * inputs, memory_kind::device);
        scales_ = allocate(limits.rows * blocks * sizeof(float), memory_kind::device);
        scaled_sums_ = allocate(limits.rows * blocks * sizeof(float), memory_kind::device);
        sums_ = allocate(limits.rows * blocks * 2 * sizeof(std::int32_t), memory_kind::device);
    }
    cosines_ = allocate(limits.rows * (limits.rotary_width / 2) * sizeof(float), memory_kind::device);
    sines_ = allocate(limits.rows * (limits.rotary_width / 2) * sizeof(float), memory_kind::device);
    score_stride_ = round_up(limits.context_tokens, 16);
    const std::size_t head = round_up(limits.kv.head_width, 16);
    const std::size_t for_attention = (queries_max * (score_stride_ + 16 + head) + 32 * head) * sizeof(float);
    const std::size_t for_linear = inputs * 16 * sizeof(float) + 4096;
    const std::size_t each = round_up(std::max(for_attention, for_linear), 4096);
    scratch_.clear();
    for (unsigned t = 0; t < pool_.threads(); ++t) scratch_.push_back(allocate(each, memory_kind::device));
    tiles_before_.reserve(limits.sequences + 1);
    workspace_bytes_ = quants_.size() + scales_.size() + scaled_sums_.size() + sums_.size() + cosines_.size() +
                       sines_.size() + pool_.threads() * each;
}

void engine::begin_unit(const unit_rows& rows, std::span<const float> inverse_frequencies) {
    unit_ = rows;
    const std::size_t half = inverse_frequencies.size();
    rotary_half_ = half;
    for (const sequence_rows& s : rows.sequences)
        over_rows(s.count, half * 16, [&](std::size_t first, std::size_t last) {
            for (std::size_t r = first; r < last; ++r) {
                float* c = cosines_.floats() + (s.first_row + r) * half;
                float* sn = sines_.floats() + (s.first_row + r) * half;
                const float position = static_cast<float>(s.first_position + r);
                for (std::size_t i = 0; i < half; ++i)
                    sine_cosine(static_cast<double>(position * inverse_frequencies[i]), sn[i], c[i]);
            }
        });
}

void engine::embed(const weight& table, std::span<const token_id> tokens, float* out) {
    const panels& layout = static_cast<const packed_matrix&>(table).layout;
    over_rows(tokens.size(), 8 * layout.inputs, [&](std::size_t first, std::size_t last) {
        for (std::size_t r = first; r < last; ++r)
            unpack_row(layout, static_cast<std::size_t>(tokens[r]), out + r * layout.inputs);
    });
}

void engine::rms_norm(const float* x, const float* scale, float epsilon, std::size_t rows, std::size_t width,
                      float* out) {
    over_rows(rows, width, [&](std::size_t first, std::size_t last) {
        for (std::size_t r = first; r < last; ++r) kernels_->rms_norm(x + r * width, scale, epsilon, width, out + r * width);
    });
}

void engine::rotate(float* x, std::size_t heads, std::size_t head_width) {
    over_rows(unit_.rows, heads * head_width, [&](std::size_t first, std::size_t last) {
        for (std::size_t r = first; r < last; ++r)
            for (std::size_t h = 0; h < heads; ++h)
                kernels_->rotate(x + (r * heads + h) * head_width, cosines_.floats() + r * rotary_half_,
                                 sines_.floats() + r * rotary_half_, rotary_half_);
    });
}

void engine::gather_rows(const float* x, std::size_t width, std::span<const std::uint32_t> rows, float* out) {
    for (std::size_t i = 0; i < rows.size(); ++i)  // in order: a source is never behind its target
        if (out + i * width != x + rows[i] * width)
            std::memcpy(out + i * width, x + rows[i] * width, width * sizeof(float));
}

void engine::silu_multiply(const float* gate, const float* up, std::size_t rows, std::size_t width, float* out) {
    over_rows(rows, 2 * width, [&](std::size_t first, std::size_t last) {
        kernels_->silu_multiply(gate + first * width, up + first * width, (last - first) * width, out + first * width);
    });
}

void engine::quantise_rows(const float* x, std::size_t rows, std::size_t inputs) {
    const std::size_t blocks = inputs / 32;
    auto* q = reinterpret_cast<std::int8_t*>(quants_.data());
    auto* sums = reinterpret_cast<std::int32_t*>(sums_.data());
    quantised_ = {rows, inputs, q, scales_.floats(), scaled_sums_.floats(), sums};
    over_rows(rows, inputs, [&](std::size_t first, std::size_t last) {
        for (std::size_t r = first; r < last; ++r)
            kernels_->quantise(x + r * inputs, inputs, q + r * inputs, scales_.floats() + r * blocks,
                               scaled_sums_.floats() + r * blocks, sums + r * blocks * 2);
    });
}

// How the panels of several matrices and the rows are cut into items: piece by piece of `group` panels, each over
// `row_pieces` ranges of rows.
struct engine::linear_plan {
    std::size_t group = 1, row_pieces = 1, items = 0;
    std::size_t pieces_before[8] = {};

    linear_plan(std::span<const linear_part> parts, std::size_t rows, unsigned threads) {
        std::size_t total = 0;
        for (const linear_part& part : parts) total += (part.matrix->outputs() + 15) / 16;
        const std::size_t wanted = std::size_t{8} * threads;
        if (total > wanted) group = rows < 16 ? std::min<std::size_t>(total / wanted, 16) : 1;
        if (total < wanted && rows >= 64) row_pieces = std::min(rows / 32, (wanted + total - 1) / total);
        std::size_t pieces = 0;
        for (std::size_t p = 0; p < parts.size(); ++p) {
            pieces += ((parts[p].matrix->outputs() + 15) / 16 + group - 1) / group;
            pieces_before[p + 1] = pieces;
        }
        items = pieces * row_pieces;
    }
};

void engine::run_linear(const float* x, std::size_t rows, std::span<const linear_part> parts, float* const* out_rows) {
    if (rows == 0) return;
    constexpr std::size_t parts_max = 7;
    while (parts.size() > parts_max) {
        run_linear(x, rows, parts.first(parts_max), out_rows);
        parts = parts.subspan(parts_max);
    }
    const std::size_t inputs = parts.front().matrix->inputs();
    const bool int8 = compute_ == compute_mode::int8;
    bool any_integer = false;
    for (const linear_part& part : parts)
        any_integer = any_integer || static_cast<const packed_matrix*>(part.matrix)->integer();
    if (int8 && any_integer) quantise_rows(x, rows, inputs);

    const linear_plan plan(parts, rows, pool_.threads());
    pool_.run(plan.items, [&](std::size_t item, unsigned thread) {
        const std::size_t piece = item / plan.row_pieces, row_piece = item % plan.row_pieces;
        std::size_t p = 0;
        while (plan.pieces_before[p + 1] <= piece) ++p;
        const linear_part& part = parts[p];
        const auto& matrix = *static_cast<const packed_matrix*>(part.matrix);
        const std::size_t first = (piece - plan.pieces_before[p]) * plan.group;
        const std::size_t last = std::min(first + plan.group, matrix.panel_count());
        const std::size_t row_first = row_piece * rows / plan.row_pieces, row_last = (row_piece + 1) * rows / plan.row_pieces;
        const linear_output out{part.out, matrix.layout.outputs, out_rows, part.bias, part.accumulate};
        std::byte* scratch = scratch_[thread].data();
        if (int8 && matrix.integer())
            kernels_->linear_quantised(matrix.layout, quantised_, out, first, last, row_first, row_last, scratch);
        else
            kernels_->linear_float(matrix.layout, x, out, first, last, row_first, row_last, scratch);
    });
}

void engine::linear(const float* x, std::size_t rows, std::span<const linear_part> parts) {
    run_linear(x, rows, parts, nullptr);
}

void engine::logits(const weight& head, const float* x, std::size_t rows, float* const* out) {
    const linear_part part{&head, nullptr, nullptr, false};
    run_linear(x, rows, {&part, 1}, out);
}

}  // namespace fermata::cpu

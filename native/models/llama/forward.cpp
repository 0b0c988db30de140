// The forward pass, written once over a backend's operations.
//
//   x = embedding(token)
//   each layer: x += o(attention(rotate(norm(q h)), rotate(norm(k h)), v h)), h = rms_norm(x)
//               x += down(silu(gate h) * up h), h = rms_norm(x)
//   logits = head(rms_norm(x)), for the rows that ask for them
//
// The rows of all sequences of a unit stand one under another, so every weight is read once a unit. In the last layer
// only rows that ask for logits go on once all keys and values are stored: a chunk of prefill that asks for none ends
// there.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "native/models/llama/llama.hpp"
#include "native/models/llama/weights.hpp"

namespace fermata {
namespace llama {
namespace {

std::string fingerprint(const model_file& file, const backend& device, const kv_shape& kv) {
    const std::string text = "llama 1|" + file.content_digest() + "|" + std::string(name_of(kv.type)) + "|" +
                             std::to_string(kv.page_tokens) + "|" + std::string(device.name()) + "|" +
                             std::string(name_of(device.compute()));
    const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
    char hex[33];
    std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return hex;
}

class llama_model final : public model {
public:
    llama_model(const model_file& file, std::shared_ptr<backend> device, const load_options& options)
        : device_(std::move(device)), weights_(load_weights(file, *device_)) {
        const llama_hyperparameters& s = weights_.sizes;
        kv_ = {options.kv, options.page_tokens, s.layers, s.kv_heads, s.head_width};
        scale_ = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.head_width)));
        layout_.family = "llama";
        layout_.fingerprint = fingerprint(file, *device_, kv_);
        layout_.vocabulary = s.vocabulary;
        // Beyond a sliding window full attention would no longer be what the model computes.
        const std::uint32_t window = s.sliding_window_tokens;
        layout_.max_context_tokens = window == 0 ? s.context_tokens : std::min(window, s.context_tokens);
        if (options.context_tokens_max != 0)
            layout_.max_context_tokens = std::min(layout_.max_context_tokens, options.context_tokens_max);
        layout_.page_tokens = options.page_tokens;
        layout_.pools = {{"main", kv_.page_bytes()}};
        layout_.state_bytes = 0;
        layout_.numeric_contract = device_->numeric_contract();
        layout_.weight_bytes = weights_.resident_bytes;
        layout_.parameters = weights_.parameters;
    }

    const model_layout& layout() const noexcept override { return layout_; }
    std::shared_ptr<backend> device() const override { return device_; }
    void prepare(std::uint32_t unit_tokens_max, std::uint32_t rows_max) override;
    void attach(const context_memory& memory) override { pool_ = memory.pools.at(0); }
    unit_status run(const unit& work) override;

private:
    void take_rows(const unit& work);
    void keep_wanted_rows(const unit& work);
    void project(const float* h, std::span<const linear_part> parts) { device_->linear(h, rows_, parts); }
    void attend(const layer_weights& w, std::uint32_t layer, const unit& work);
    void feed_forward(const layer_weights& w);
    void write_logits(const unit& work);

    std::shared_ptr<backend> device_;  // before everything it has allocated
    weights weights_;
    kv_shape kv_;
    float scale_ = 0;
    model_layout layout_;
    std::byte* pool_ = nullptr;

    std::size_t rows_max_ = 0, sequences_max_ = 0;
    std::size_t rows_ = 0, wanted_ = 0;  // of the unit under way; rows with logits
    buffer x_, h_, query_, key_, value_, mixed_, gate_, up_;
    std::vector<token_id> tokens_;
    std::vector<sequence_rows> sequences_;
    std::vector<std::uint32_t> kept_;
    std::vector<float*> logits_;
};

void llama_model::prepare(std::uint32_t unit_tokens_max, std::uint32_t rows_max) {
    const llama_hyperparameters& s = weights_.sizes;
    const std::size_t queries = std::size_t{s.heads} * s.head_width, keys = std::size_t{s.kv_heads} * s.head_width;
    rows_max_ = unit_tokens_max;
    sequences_max_ = rows_max;
    auto room = [&](std::size_t width) {
        layout_.workspace_bytes += rows_max_ * width * sizeof(float);
        return device_->allocate(rows_max_ * width * sizeof(float), memory_kind::device);
    };
    layout_.workspace_bytes = 0;
    x_ = room(s.width);
    h_ = room(s.width);
    query_ = room(queries);
    key_ = room(keys);
    value_ = room(keys);
    mixed_ = room(queries);
    gate_ = room(s.feed_forward_width);
    up_ = room(s.feed_forward_width);
    tokens_.reserve(rows_max_);
    sequences_.reserve(sequences_max_);
    kept_.reserve(rows_max_);
    logits_.reserve(rows_max_);
    unit_limits limits;
    limits.rows = rows_max_;
    limits.sequences = sequences_max_;
    limits.inputs = std::max({std::size_t{s.width}, queries, std::size_t{s.feed_forward_width}});
    limits.context_tokens = layout_.max_context_tokens;
    limits.query_heads = s.heads;
    limits.rotary_width = s.rope_width;
    limits.kv = kv_;
    device_->prepare(limits);
    layout_.workspace_bytes += device_->workspace_bytes();
}

// A unit that breaks the contract is Program's fault and would read wild memory.
void llama_model::take_rows(const unit& work) {
    tokens_.clear();
    sequences_.clear();
    wanted_ = 0;
    if (work.rows.size() > sequences_max_) throw std::logic_error("llama: a unit of more rows than prepared for");
    for (const unit_row& row : work.rows) {
        const std::size_t end = std::size_t{row.first.value} + row.tokens.size();
        if (tokens_.size() + row.tokens.size() > rows_max_)
            throw std::logic_error("llama: a unit of more tokens than prepared for");
        if (end > layout_.max_context_tokens || end > row.pages.size() * layout_.page_tokens)
            throw std::logic_error("llama: a row beyond the context or its pages");
        if (row.logit_rows > row.tokens.size()) throw std::logic_error("llama: more logit rows than tokens");
        sequences_.push_back({tokens_.size(), row.tokens.size(), row.first.value, row.pages});
        wanted_ += row.logit_rows;
        for (const token_id token : row.tokens) {
            if (token < 0 || static_cast<std::size_t>(token) >= layout_.vocabulary)
                throw std::logic_error("llama: a token outside the vocabulary");
            tokens_.push_back(token);
        }
    }
    rows_ = tokens_.size();
}

// From here on x, h and the unit hold the rows with logits alone.
void llama_model::keep_wanted_rows(const unit& work) {
    const std::size_t width = weights_.sizes.width;
    kept_.clear();
    sequences_.clear();
    std::size_t before = 0;
    for (const unit_row& row : work.rows) {
        const std::size_t skipped = row.tokens.size() - row.logit_rows;
        if (row.logit_rows > 0)
            sequences_.push_back({kept_.size(), row.logit_rows,
                                  row.first.value + static_cast<std::uint32_t>(skipped), row.pages});
        for (std::size_t i = skipped; i < row.tokens.size(); ++i)
            kept_.push_back(static_cast<std::uint32_t>(before + i));
        before += row.tokens.size();
    }
    device_->gather_rows(x_.floats(), width, kept_, x_.floats());
    device_->gather_rows(h_.floats(), width, kept_, h_.floats());
    rows_ = kept_.size();
    if (rows_ > 0) device_->begin_unit({rows_, sequences_}, weights_.inverse_frequencies);
}

void llama_model::attend(const layer_weights& w, std::uint32_t layer, const unit& work) {
    const llama_hyperparameters& s = weights_.sizes;
    float *const x = x_.floats(), *const h = h_.floats();
    const bool shrinks = layer + 1 == s.layers && wanted_ < rows_;
    device_->rms_norm(x, w.attention_norm.floats(), s.rms_epsilon, rows_, s.width, h);
    const linear_part projections[] = {{w.key.get(), w.key_bias.floats(), key_.floats(), false},
                                       {w.value.get(), w.value_bias.floats(), value_.floats(), false},
                                       {w.query.get(), w.query_bias.floats(), query_.floats(), false}};
    const auto all = std::span(projections);
    project(h, shrinks ? all.first(2) : all);
    if (w.key_norm)
        device_->rms_norm(key_.floats(), w.key_norm.floats(), s.rms_epsilon, rows_ * s.kv_heads, s.head_width,
                          key_.floats());
    device_->rotate(key_.floats(), s.kv_heads, s.head_width);
    device_->store_kv(kv_, layer, pool_, key_.floats(), value_.floats());
    if (shrinks) {
        keep_wanted_rows(work);
        if (rows_ == 0) return;
        project(h, all.last(1));
    }
    if (w.query_norm)
        device_->rms_norm(query_.floats(), w.query_norm.floats(), s.rms_epsilon, rows_ * s.heads, s.head_width,
                          query_.floats());
    device_->rotate(query_.floats(), s.heads, s.head_width);
    device_->attention(kv_, layer, pool_, query_.floats(), s.heads, scale_, mixed_.floats());
    const linear_part output{w.attention_output.get(), w.attention_output_bias.floats(), x, true};
    project(mixed_.floats(), {&output, 1});
}

void llama_model::feed_forward(const layer_weights& w) {
    const llama_hyperparameters& s = weights_.sizes;
    float *const x = x_.floats(), *const h = h_.floats();
    device_->rms_norm(x, w.feed_forward_norm.floats(), s.rms_epsilon, rows_, s.width, h);
    const linear_part in[] = {{w.gate.get(), w.gate_bias.floats(), gate_.floats(), false},
                              {w.up.get(), w.up_bias.floats(), up_.floats(), false}};
    device_->linear(h, rows_, in);
    device_->silu_multiply(gate_.floats(), up_.floats(), rows_, s.feed_forward_width, gate_.floats());
    const linear_part out{w.down.get(), w.down_bias.floats(), x, true};
    device_->linear(gate_.floats(), rows_, {&out, 1});
}

// x holds the rows with logits alone, in the order of the unit.
void llama_model::write_logits(const unit& work) {
    const llama_hyperparameters& s = weights_.sizes;
    logits_.clear();
    for (const unit_row& row : work.rows)
        for (std::size_t r = 0; r < row.logit_rows; ++r) logits_.push_back(row.logits + r * layout_.vocabulary);
    device_->rms_norm(x_.floats(), weights_.output_norm.floats(), s.rms_epsilon, rows_, s.width, h_.floats());
    device_->logits(weights_.head ? *weights_.head : *weights_.embedding, h_.floats(), rows_, logits_.data());
}

unit_status llama_model::run(const unit& work) {
    take_rows(work);
    if (rows_ == 0) return unit_status::done;
    device_->begin_unit({rows_, sequences_}, weights_.inverse_frequencies);
    device_->embed(*weights_.embedding, tokens_, x_.floats());
    for (std::uint32_t layer = 0; layer < weights_.sizes.layers; ++layer) {
        if (work.stop != nullptr && work.stop->load(std::memory_order_relaxed)) return unit_status::stopped;
        attend(weights_.layers[layer], layer, work);
        if (rows_ > 0) feed_forward(weights_.layers[layer]);
    }
    if (rows_ > 0) write_logits(work);
    device_->synchronize();
    return unit_status::done;
}

}  // namespace
}  // namespace llama

std::unique_ptr<model> load_llama(const model_file& file, std::shared_ptr<backend> device, const load_options& options) {
    return std::make_unique<llama::llama_model>(file, std::move(device), options);
}

}  // namespace fermata

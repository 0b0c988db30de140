// The oracle as a model family: reads and writes context memory through the page table, as a real family would.
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>

#include "native/models/oracle/hashes.hpp"
#include "native/models/oracle/oracle.hpp"

namespace fermata::oracle {

namespace {

std::string hex(std::uint64_t x) {
    std::string out(16, '0');
    for (std::size_t i = 16; i > 0; --i, x >>= 4) out[i - 1] = "0123456789abcdef"[x & 15];
    return out;
}

// What makes contexts of two oracles interchangeable: everything but the simulated time.
std::string fingerprint_of(const options& how) {
    std::uint64_t x = 0x0123456789ABCDEFu;
    for (std::uint64_t part : {std::uint64_t{how.state_bytes}, std::uint64_t{how.layers}, std::uint64_t{how.kv_bytes},
                               std::uint64_t{how.verify == verify_mode::all}, std::uint64_t{how.vocabulary},
                               std::uint64_t{how.page_tokens}})
        x = mix(x + part);
    return hex(x);
}

class oracle_model final : public model {
public:
    explicit oracle_model(const options& how) : how_(how) {
        layout_.family = "oracle";
        layout_.fingerprint = fingerprint_of(how);
        layout_.vocabulary = how.vocabulary;
        layout_.max_context_tokens = how.context_tokens;
        layout_.page_tokens = how.page_tokens;
        layout_.pools = {{"main", std::size_t{how.page_tokens} * how.layers * how.kv_bytes}};
        layout_.state_bytes = how.state_bytes;
    }

    const model_layout& layout() const noexcept override { return layout_; }

    void prepare(std::uint32_t unit_tokens_max, std::uint32_t rows_max) override {
        unit_tokens_max_ = unit_tokens_max;
        prefixes_.resize(rows_max);
    }

    void attach(const context_memory& memory) override { memory_ = memory; }

    unit_status run(const unit& work) override {
        check(work);
        spend_time(work.stop);
        if (work.stop && work.stop->load(std::memory_order_relaxed)) return unit_status::stopped;
        for (std::size_t i = 0; i < work.rows.size(); ++i) prefixes_[i] = run_row(work.rows[i]);
        // States last, all together: a unit that stops leaves every image as it was.
        if (how_.state_bytes)
            for (std::size_t i = 0; i < work.rows.size(); ++i) write_state(work.rows[i].state, prefixes_[i]);
        return unit_status::done;
    }

private:
    void check(const unit& work) const {
        std::size_t tokens = 0;
        for (const unit_row& row : work.rows) {
            tokens += row.tokens.size();
            const std::size_t end = row.first.value + row.tokens.size();
            if (row.tokens.empty() || row.pages.size() * how_.page_tokens < end || row.logit_rows > row.tokens.size())
                throw std::logic_error("oracle: a row of " + std::to_string(row.tokens.size()) + " tokens up to " +
                                       std::to_string(end) + " with " + std::to_string(row.pages.size()) + " pages");
        }
        if (tokens > unit_tokens_max_ || work.rows.size() > prefixes_.size())
            throw std::logic_error("oracle: a unit of " + std::to_string(tokens) + " tokens in " +
                                   std::to_string(work.rows.size()) + " rows, prepared for " +
                                   std::to_string(unit_tokens_max_) + " in " + std::to_string(prefixes_.size()));
    }

    void spend_time(const std::atomic<bool>* stop) const {
        if (how_.delay_us == 0) return;
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(how_.delay_us);
        while (std::chrono::steady_clock::now() < until)
            if (stop && stop->load(std::memory_order_relaxed)) return;
    }

    std::byte* entry(const unit_row& row, std::size_t position, std::size_t layer) const {
        const std::size_t page = row.pages[position / how_.page_tokens].value;
        const std::size_t in_page = layer * how_.page_tokens + position % how_.page_tokens;
        return memory_.pools[0] + page * layout_.pools[0].page_bytes + in_page * how_.kv_bytes;
    }

    std::uint64_t read_word(const unit_row& row, std::size_t position, std::size_t layer, std::size_t word) const {
        std::uint64_t value = 0;
        std::memcpy(&value, entry(row, position, layer) + word * 8, 8);
        return value;
    }

    void write_token(const unit_row& row, std::size_t position, std::uint64_t prefix) const {
        for (std::size_t layer = 0; layer < how_.layers; ++layer)
            for (std::size_t word = 0; word < how_.kv_bytes / 8; ++word) {
                const std::uint64_t value = kv_word(prefix, position / how_.page_tokens, layer, word);
                std::memcpy(entry(row, position, layer) + word * 8, &value, 8);
            }
    }

    std::uint64_t fold_token(const unit_row& row, std::size_t position, std::uint64_t digest) const {
        for (std::size_t layer = 0; layer < how_.layers; ++layer)
            for (std::size_t word = 0; word < how_.kv_bytes / 8; ++word)
                digest = fold(digest, read_word(row, position, layer, word));
        return digest;
    }

    // Digest of memory over [start of the verified window of `position`, position].
    std::size_t window_start(std::size_t position) const {
        const std::size_t page = position / how_.page_tokens;
        return how_.verify == verify_mode::all || page == 0 ? 0 : (page - 1) * how_.page_tokens;
    }

    // The rolling hash this row starts from, as memory has it.
    std::uint64_t start_of(const unit_row& row) const {
        if (how_.state_bytes) return row.fresh_state ? empty_prefix : read_state(row.state);
        if (row.first.value == 0) return empty_prefix;
        const std::size_t last = row.first.value - 1;
        return read_word(row, last, 0, 0) ^ place_salt(last / how_.page_tokens, 0, 0);
    }

    std::uint64_t run_row(const unit_row& row) const {
        std::uint64_t prefix = start_of(row);
        const std::size_t first = row.first.value, end = first + row.tokens.size();
        const std::size_t logits_from = end - row.logit_rows;
        std::size_t folded_from = window_start(first), folded_to = folded_from;
        std::uint64_t digest = empty_digest;
        for (std::size_t position = first; position < end; ++position) {
            prefix = extend_prefix(prefix, row.tokens[position - first]);
            write_token(row, position, prefix);
            if (position < logits_from) continue;
            if (window_start(position) != folded_from) {
                folded_from = folded_to = window_start(position);
                digest = empty_digest;
            }
            for (; folded_to <= position; ++folded_to) digest = fold_token(row, folded_to, digest);
            write_logits(seed_of(prefix, digest),
                         {row.logits + (position - logits_from) * how_.vocabulary, how_.vocabulary});
        }
        return prefix;
    }

    std::byte* state_at(state_slot slot) const { return memory_.states + std::size_t{slot.value} * how_.state_bytes; }

    // A damaged image gives another prefix, so the damage reaches the output.
    std::uint64_t read_state(state_slot slot) const {
        std::uint64_t prefix = 0, damage = 0;
        std::memcpy(&prefix, state_at(slot), 8);
        for (std::size_t word = 1; word < how_.state_bytes / 8; ++word) {
            std::uint64_t value = 0;
            std::memcpy(&value, state_at(slot) + word * 8, 8);
            damage |= value ^ state_word(prefix, word);
        }
        return damage ? mix(prefix ^ mix(damage)) : prefix;
    }

    void write_state(state_slot slot, std::uint64_t prefix) const {
        for (std::size_t word = 0; word < how_.state_bytes / 8; ++word) {
            const std::uint64_t value = state_word(prefix, word);
            std::memcpy(state_at(slot) + word * 8, &value, 8);
        }
    }

    options how_;
    model_layout layout_;
    context_memory memory_;
    std::uint32_t unit_tokens_max_ = 0;
    std::vector<std::uint64_t> prefixes_;
};

}  // namespace

std::unique_ptr<model> make(const options& how) { return std::make_unique<oracle_model>(how); }

}  // namespace fermata::oracle

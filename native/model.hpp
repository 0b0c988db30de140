// The seam between Program and a model family. A family states its layout (pools, state bytes, vocabulary) and runs
// units. Program owns all context memory; a family only interprets it.
//
// Contract of `run` on a backend whose numerics are `invariant`: the logits of position t depend on the tokens up to
// t (and on memory holding what `run` itself wrote for them), never on how the tokens were cut into units, on other
// rows of the unit, on page numbers, on thread count or instruction set.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/vocabulary.hpp"

namespace fermata {

class backend;  // native/backend.hpp

enum class numerics : std::uint8_t { invariant, pinned };

struct pool_layout {
    std::string name;            // "main", "mtp", "dflash"
    std::size_t page_bytes = 0;  // all layers, keys and values (and their scales) of page_tokens tokens
};

struct model_layout {
    std::string family;       // "llama", "oracle", ...
    std::string fingerprint;  // identity of weights + numerics that make contexts interchangeable (hex)
    std::size_t vocabulary = 0;
    std::uint32_t max_context_tokens = 0;  // what the model was trained for
    std::uint32_t page_tokens = 64;
    std::vector<pool_layout> pools;  // [0] is Main
    std::size_t state_bytes = 0;     // one StateImage; 0: any covered position is resumable (A3)
    numerics numeric_contract = numerics::invariant;
    std::size_t weight_bytes = 0;    // resident after repacking
    std::size_t workspace_bytes = 0; // activations of the largest unit
    std::uint64_t parameters = 0;
};

// Where Program put the context memory. Page p of pool i starts at pools[i] + p * page_bytes.
struct context_memory {
    std::vector<std::byte*> pools;
    std::byte* states = nullptr;  // slot s starts at states + s * state_bytes
};

// One sequence's share of a unit: `tokens` at positions first .. first + tokens.size() - 1.
struct unit_row {
    token_pos first{0};
    std::span<const token_id> tokens;
    std::span<const page_id> pages;  // Main page table; covers first + tokens.size() positions
    state_slot state{};              // read and written; meaningless when state_bytes == 0
    bool fresh_state = false;        // the slot's content is undefined: start from the empty state (faults 11, 13, 14)
    std::uint32_t logit_rows = 0;    // logits are wanted for the last n tokens
    float* logits = nullptr;         // logit_rows x vocabulary
};

struct unit {
    std::span<const unit_row> rows;
    const std::atomic<bool>* stop = nullptr;  // looked at between layers; an abandoned unit commits nothing
};

enum class unit_status : std::uint8_t { done, stopped };

class model {
public:
    model() = default;
    model(const model&) = delete;
    model& operator=(const model&) = delete;
    virtual ~model() = default;

    virtual const model_layout& layout() const noexcept = 0;
    // Where the model runs: Program allocates and copies context memory there. Null: plain memory of the host.
    virtual std::shared_ptr<backend> device() const { return nullptr; }

    // Largest unit this model was prepared for, in tokens over all rows.
    virtual void prepare(std::uint32_t unit_tokens_max, std::uint32_t rows_max) = 0;
    virtual void attach(const context_memory& memory) = 0;
    // Total tokens <= unit_tokens_max. Allocates nothing. Throws only on device failure. A unit that stops leaves every
    // StateImage as it was; what it wrote behind the rows' first positions doesn't count.
    virtual unit_status run(const unit& work) = 0;
};

}  // namespace fermata

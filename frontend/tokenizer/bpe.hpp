// Byte pair merging of one piece of text: pairs of neighbours become one token, lowest rank first, leftmost among
// equals, until no merge applies. O(n log n) in the piece's bytes, by a queue of merges over a linked list.
//
// A vocabulary is two tables made at load: the tokens by their bytes, and the merges by their pair of ids. Whole
// pieces that merging is known to turn into a single token are looked up and never merged twice; that memory is a
// byte a token and shared by all threads (a race writes the same value).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary.hpp"

namespace fermata::text {

// All tokens' bytes one after the other.
class token_store {
public:
    void append(std::string_view bytes) {
        bytes_.append(bytes);
        ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    }
    std::size_t size() const noexcept { return ends_.size(); }
    std::string_view operator[](std::size_t i) const noexcept {
        const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
        return std::string_view(bytes_).substr(begin, ends_[i] - begin);
    }

private:
    std::string bytes_;
    std::vector<std::uint32_t> ends_;
};

// Ids by bytes. The store must outlive the index and keep what was inserted.
class token_index {
public:
    token_index(const token_store& store, std::size_t tokens_max);
    // False, and no change, when the same bytes are there already.
    bool insert(token_id id);
    void replace(token_id id);  // insert, or take the place of the same bytes
    token_id find(std::string_view bytes) const noexcept;

private:
    std::size_t slot_of(std::string_view bytes) const noexcept;

    const token_store* store_;
    std::vector<token_id> slots_;  // a power of two, at most half full
};

class merge_table {
public:
    struct merge {
        std::uint32_t rank = 0;
        token_id result = no_token;
    };
    explicit merge_table(std::size_t merges_max);
    // Of two merges of the same pair the later one counts, as in `tokenizers`.
    void insert(token_id left, token_id right, merge value);
    const merge* find(token_id left, token_id right) const noexcept;
    std::size_t ranks() const noexcept { return ranks_; }  // all ranks are below

private:
    struct entry {
        std::uint64_t pair = ~std::uint64_t{0};
        merge value;
    };
    std::size_t slot_of(std::uint64_t pair) const noexcept;
    std::vector<entry> slots_;
    std::size_t ranks_ = 0;
};

// Merges that could be done, in the order in which they are to be done: by rank, then by position. Positions of one
// rank mostly come in ascending order, so each rank keeps a row that is read from the front, and a heap for the rest;
// a million equal pairs cost no more than reading them.
class merge_queue {
public:
    struct next_merge {
        std::uint32_t position;
        token_id result;
    };
    void reset(std::size_t ranks);
    void push(std::uint32_t rank, token_id result, std::uint32_t position);
    bool pop(next_merge& out);

private:
    struct row {
        std::uint32_t rank = 0;
        token_id result = no_token;
        bool queued = false;
        std::size_t front = 0;
        std::vector<std::uint32_t> ascending, late;
    };
    row& row_of(std::uint32_t rank, token_id result);

    std::vector<row> rows_;  // the first used_ are in use; the others keep their memory
    std::size_t used_ = 0;
    std::vector<std::uint32_t> row_of_rank_;  // index into rows_ plus 1
    std::vector<std::uint32_t> ranks_;        // a heap, lowest first
};

// Working space for merging, reused from piece to piece by one call.
struct bpe_workspace {
    struct symbol {
        token_id id;  // no_token once merged into its left neighbour
        std::int32_t previous, next;
        std::uint32_t length;  // bytes of the piece
    };
    std::vector<symbol> symbols;
    std::vector<merge_table::merge> pairs;  // of each symbol with its right neighbour
    merge_queue queue;
};

// One token of a piece and the bytes it covers.
struct bpe_token {
    token_id id;
    std::uint32_t length;
};

class bpe_model {
public:
    struct options {
        bool ignore_merges = false;          // a piece that is a token as a whole is that token
        token_id unknown = no_token;         // for bytes without a token; without it they are left out
        bool fuse_unknown = false;           // one for a run of them
        std::string continuing_prefix, end_suffix;  // written in tokens not at a word's beginning, at its end
    };

    bpe_model(std::shared_ptr<const token_store> store, token_index index, merge_table merges, options o);

    // Appends the tokens of the piece. Not empty.
    void encode(std::string_view piece, bpe_workspace& space, std::vector<bpe_token>& out) const;

private:
    token_id whole_piece(std::string_view piece, bpe_workspace& space) const;
    void fill_symbols(std::string_view piece, bpe_workspace& space) const;
    void append_unknown(bpe_workspace& space) const;
    void merge_all(std::string_view piece, bpe_workspace& space) const;
    void merge_few(bpe_workspace& space) const;
    void merge_many(bpe_workspace& space) const;
    merge_table::merge pair_at(const bpe_workspace& space, std::size_t left) const;
    void consider(bpe_workspace& space, std::int32_t left) const;

    std::shared_ptr<const token_store> store_;
    token_index index_;
    merge_table merges_;
    options options_;
    // Tokens of single bytes by place in the word: inside or first, plain or with the affixes.
    std::array<std::array<token_id, 256>, 4> byte_tokens_;
    enum : std::uint8_t { not_tried = 0, stays_whole = 1, falls_apart = 2 };
    std::unique_ptr<std::atomic<std::uint8_t>[]> whole_;
};

}  // namespace fermata::text

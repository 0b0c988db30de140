// See limits.hpp.
#include "native/program/limits.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "messages/paging.hpp"

namespace fermata::program_detail {

namespace {

constexpr std::uint32_t lanes_max = 1024;
constexpr std::uint64_t score_bytes = std::uint64_t{64} << 20;  // a chunk of a scored prompt is cut to fit

void in_range(const char* option, std::uint64_t value, std::uint64_t low, std::uint64_t high, const char* unit) {
    if (value >= low && value <= high) return;
    throw std::invalid_argument(std::string(option) + " " + std::to_string(value) + ": must lie between " +
                                std::to_string(low) + " and " + std::to_string(high) + " " + unit);
}

// B2: between max(ceil(max_context / page), C) and C * ceil(max_context / page).
std::uint32_t main_pages(const program_options& options, const model_layout& layout) {
    const std::uint64_t page = layout.page_tokens;
    const std::uint64_t one = pages_for(options.max_context_tokens, layout.page_tokens);
    const std::uint64_t low = std::max<std::uint64_t>(one, options.max_concurrency);
    const std::uint64_t high = std::min<std::uint64_t>(std::max(low, one * options.max_concurrency), 0x7FFFFFFFu);
    if (options.kv_capacity_tokens > 0) {
        const std::uint64_t pages = (options.kv_capacity_tokens - 1) / page + 1;
        if (pages < low || pages > high)
            throw std::invalid_argument(
                "kv_capacity " + std::to_string(options.kv_capacity_tokens) + " tokens: must lie between " +
                std::to_string(low * page) + " (one request of max_context, and a page a lane) and " +
                std::to_string(high * page) + " (max_concurrency x max_context)");
        return static_cast<std::uint32_t>(pages);
    }
    const std::uint64_t page_bytes = std::max<std::uint64_t>(layout.pools.front().page_bytes, 1);
    std::uint64_t pages = high;
    if (options.kv_bytes_max > 0) pages = std::min(pages, options.kv_bytes_max / page_bytes);
    if (pages < low)
        throw std::invalid_argument(
            "kv_capacity auto: " + std::to_string(options.kv_bytes_max) + " bytes hold " +
            std::to_string(pages * page) + " tokens; must lie between " + std::to_string(low * page) + " and " +
            std::to_string(high * page) + " tokens (" + std::to_string(page_bytes) + " bytes a page of " +
            std::to_string(page) + "): lower max_context or max_concurrency, or give more memory");
    return static_cast<std::uint32_t>(pages);
}

}  // namespace

limits check_options(const program_options& options, const model_layout& layout) {
    if (layout.pools.empty() || layout.page_tokens == 0 || layout.vocabulary == 0)
        throw std::invalid_argument("model " + layout.family +
                                    ": a layout needs a Main pool, a page size and a vocabulary");
    in_range("max_concurrency", options.max_concurrency, 1, lanes_max, "lanes");
    in_range("max_context", options.max_context_tokens, 1, layout.max_context_tokens, "tokens (what the model allows)");
    in_range("device_state_slots", options.device_state_slots, 0, 65536, "slots");
    in_range("batch_tokens", options.batch_tokens, options.max_concurrency, 1u << 20,
             "tokens (at least one a lane)");
    in_range("prefill_chunk", options.prefill_chunk_tokens, 1, options.batch_tokens, "tokens (at most batch_tokens)");
    limits out;
    out.page_tokens = layout.page_tokens;
    out.max_context_tokens = options.max_context_tokens;
    out.lanes = options.max_concurrency;
    out.pages = main_pages(options, layout);
    out.state_slots = layout.state_bytes ? options.max_concurrency + options.device_state_slots : 0;
    const std::uint64_t rows = score_bytes / (layout.vocabulary * sizeof(float));
    out.score_rows = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rows, 1, options.batch_tokens));
    return out;
}

memory_plan plan_of(const limits& sizes, const model_layout& layout) {
    memory_plan out;
    out.weights = layout.weight_bytes;
    for (const pool_layout& pool : layout.pools) out.kv += std::uint64_t{sizes.pages} * pool.page_bytes;
    out.states = std::uint64_t{sizes.state_slots} * layout.state_bytes;
    out.workspace = layout.workspace_bytes;
    out.logits = (std::uint64_t{sizes.lanes} + sizes.score_rows) * layout.vocabulary * sizeof(float);
    out.pages = sizes.pages;
    out.page_tokens = sizes.page_tokens;
    // Attention-only models share whole pages; a StateImage makes the end of any answer a resume point.
    out.smallest_reusable_prefix_tokens = layout.state_bytes ? 1 : sizes.page_tokens;
    out.largest_request_tokens = sizes.max_context_tokens;
    return out;
}

}  // namespace fermata::program_detail

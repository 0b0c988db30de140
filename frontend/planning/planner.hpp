// From what a client submitted to what the Scheduler runs: render, tokenise, check against the limits, fix every
// parameter. A pure function of the request and the resident model, so any thread may run it; a 100k-token prompt
// is prepared beside the actors, never inside them.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/planning/text_model.hpp"
#include "messages/ingress.hpp"

namespace fermata {

struct planning_limits {
    std::uint32_t max_context_tokens = 8192;   // prompt and answer of one request
    std::uint32_t choices_max = 128;
    std::uint32_t stop_strings_max = 16;
    std::uint32_t stop_bytes_max = 1024;       // of one stop string
    std::uint32_t stop_tokens_max = 256;
    std::uint32_t logit_bias_max = 1024;       // tokens with a bias
    std::uint32_t top_logprobs_max = 20;
    std::uint32_t session_bytes_max = 256;
    std::uint64_t logits_bytes_max = std::uint64_t{1} << 30;  // raw logits of one request (tools)
    std::uint32_t vocabulary = 0;              // ids of token prompts lie below; 0: unchecked
    jinja::render_options rendering;           // limits and the clock of strftime_now
};

// Every 4xx of a request is decided here (or by the queue), for whatever door it came through: HTTP refuses some of it
// earlier, other actors and embedding programs have nobody else to check them. `drawn_seed` is used when the client gave none.
prepared prepare(const submit& request, const text_model& model, const planning_limits& limits,
                 std::uint64_t drawn_seed, time_ns now);

// The text layer by itself, for /tokenize and tools.
tokenized tokenize(const tokenize_text& request, const text_model& model, const planning_limits& limits);
detokenized detokenize(const detokenize_tokens& request, const text_model& model);

// The prompt of a conversation as the model will see it. Throws jinja::error; std::invalid_argument where the JSON
// isn't what it should be.
std::string render_chat(const text_model& model, std::string_view messages_json, std::string_view tools_json,
                        std::string_view arguments_json, const jinja::render_options& options);

}  // namespace fermata

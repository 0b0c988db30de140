// What a generation is asked to do: sampling, when to stop, what to report. Plain data, carried from ingress to
// Program unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "messages/field.hpp"
#include "messages/ids.hpp"
#include "messages/token_run.hpp"

namespace fermata {

struct token_bias {
    token_id token = no_token;
    float bias = 0;
    bool operator==(const token_bias&) const = default;
    static constexpr std::string_view type_name = "token_bias";
    static constexpr auto fields() {
        return std::tuple{field("token", &token_bias::token), field("bias", &token_bias::bias)};
    }
};

// The order of application is that of models.md: bias, repetition, frequency and presence penalties, temperature,
// top-k, top-p, min-p. Defaults change nothing but temperature 1.
struct sampling_params {
    float temperature = 1;  // 0: argmax after bias and penalties, ties to the lower id
    float top_p = 1;
    std::uint32_t top_k = 0;  // 0: all
    float min_p = 0;
    float repetition_penalty = 1;
    float frequency_penalty = 0;
    float presence_penalty = 0;
    std::uint64_t seed = 0;
    std::vector<token_bias> logit_bias;
    bool operator==(const sampling_params&) const = default;
    static constexpr std::string_view type_name = "sampling_params";
    static constexpr auto fields() {
        using t = sampling_params;
        return std::tuple{field("temperature", &t::temperature), field("top_p", &t::top_p),
                          field("top_k", &t::top_k), field("min_p", &t::min_p),
                          field("repetition_penalty", &t::repetition_penalty),
                          field("frequency_penalty", &t::frequency_penalty),
                          field("presence_penalty", &t::presence_penalty), field("seed", &t::seed),
                          field("logit_bias", &t::logit_bias)};
    }
};

// When a row ends: checked in Program between sampling and commit, over the bytes of the answer's tokens.
struct guard_spec {
    std::vector<std::string> stop;       // byte strings; the answer's text ends before the first match
    std::vector<token_id> stop_tokens;   // beside the model's end-of-generation ids
    bool ignore_eos = false;             // end-of-generation ids don't end the row
    token_pos max_new_tokens{0};         // 0: nothing is sampled (scoring only)
    bool operator==(const guard_spec&) const = default;
    static constexpr std::string_view type_name = "guard_spec";
    static constexpr auto fields() {
        using t = guard_spec;
        return std::tuple{field("stop", &t::stop), field("stop_tokens", &t::stop_tokens),
                          field("ignore_eos", &t::ignore_eos), field("max_new_tokens", &t::max_new_tokens)};
    }
};

struct report_spec {
    bool logprobs = false;            // log-probability of each sampled token
    std::uint32_t top_logprobs = 0;   // and of the n most likely ones
    bool prompt_logprobs = false;     // of each prompt token given those before it: computes every position, so no reuse
    bool logits = false;              // raw logits of every sampled position (tools)
    bool prompt_logits = false;       // and of every prompt position (tools)
    bool operator==(const report_spec&) const = default;
    static constexpr std::string_view type_name = "report_spec";
    static constexpr auto fields() {
        using t = report_spec;
        return std::tuple{field("logprobs", &t::logprobs), field("top_logprobs", &t::top_logprobs),
                          field("prompt_logprobs", &t::prompt_logprobs), field("logits", &t::logits),
                          field("prompt_logits", &t::prompt_logits)};
    }
};

// One sequence: one choice of one request. Fixed from acceptance on; lives in Program across pauses.
struct sequence_spec {
    request_id request{};
    std::uint32_t choice = 0;
    token_run prompt;  // not empty
    sampling_params sampling;
    guard_spec guard;
    report_spec report;
    std::string session;  // a hint and a name (G4), may be empty
    bool operator==(const sequence_spec&) const = default;
    static constexpr std::string_view type_name = "sequence_spec";
    static constexpr auto fields() {
        using t = sequence_spec;
        return std::tuple{field("request", &t::request), field("choice", &t::choice), field("prompt", &t::prompt),
                          field("sampling", &t::sampling), field("guard", &t::guard), field("report", &t::report),
                          field("session", &t::session)};
    }
};

struct token_logprob {
    token_id token = no_token;
    float logprob = 0;  // log-softmax of the raw logits
    bool operator==(const token_logprob&) const = default;
    static constexpr std::string_view type_name = "token_logprob";
    static constexpr auto fields() {
        return std::tuple{field("token", &token_logprob::token), field("logprob", &token_logprob::logprob)};
    }
};

enum class finish_reason : std::uint8_t { none, stop, length, cancelled, error };

}  // namespace fermata

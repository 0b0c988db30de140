// Log-probabilities: the log-softmax of raw float32 logits. What sampling does to logits doesn't show here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "messages/generation.hpp"

namespace fermata::sampling {

// Every logit is finite.
bool all_finite(std::span<const float> logits);

// ln(sum of e^logit): subtract it from a logit to get its log-probability. Logits must be finite.
double log_sum_exp(std::span<const float> logits);

// The `count` most likely tokens, best first, ties to the lower id. `out` is overwritten.
void most_likely(std::span<const float> logits, double log_sum, std::uint32_t count, std::vector<token_logprob>& out);

}  // namespace fermata::sampling

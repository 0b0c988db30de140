// See logprobs.hpp.
#include "native/sampling/logprobs.hpp"

#include <algorithm>

#include "native/sampling/exact_math.hpp"
#include "native/sampling/row_loops.hpp"

namespace fermata::sampling {

bool all_finite(std::span<const float> logits) { return loops().all_finite(logits.data(), logits.size()); }

double log_sum_exp(std::span<const float> logits) {
    const float best = loops().best(logits.data(), logits.size());
    return static_cast<double>(best) + log_of_positive(loops().sum_of_exp(logits.data(), logits.size(), best));
}

void most_likely(std::span<const float> logits, double log_sum, std::uint32_t count,
                 std::vector<token_logprob>& out) {
    out.clear();
    const std::size_t wanted = std::min<std::size_t>(count, logits.size());
    if (wanted == 0) return;
    // A short sorted list: `logprob` holds the logit until the end. Later equals rank behind, so ties keep id order.
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (out.size() == wanted && !(logits[i] > out.back().logprob)) continue;
        if (out.size() == wanted) out.pop_back();
        auto place = std::upper_bound(out.begin(), out.end(), logits[i],
                                      [](float x, const token_logprob& y) { return x > y.logprob; });
        out.insert(place, {static_cast<token_id>(i), logits[i]});
    }
    for (auto& each : out) each.logprob = static_cast<float>(static_cast<double>(each.logprob) - log_sum);
}

}  // namespace fermata::sampling

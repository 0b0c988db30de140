// See logprobs.hpp. Sums run in double over 16 partial sums (element i into sum i mod 16) and one tree, an order
// that vector units can follow without changing a bit.
#include "native/sampling/logprobs.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "native/sampling/exact_math.hpp"

namespace fermata::sampling {

bool all_finite(std::span<const float> logits) {
    std::uint32_t bad = 0;
    for (float x : logits) bad |= (std::bit_cast<std::uint32_t>(x) & 0x7F800000u) == 0x7F800000u ? 1u : 0u;
    return bad == 0;
}

double log_sum_exp(std::span<const float> logits) {
    float best = logits.front();
    for (float x : logits) best = x > best ? x : best;
    std::array<double, 16> sums{};
    std::size_t i = 0;
    for (; i + 16 <= logits.size(); i += 16) {
        std::array<float, 16> e;
        for (std::size_t j = 0; j < 16; ++j) e[j] = exp_of_negative(logits[i + j] - best);
        for (std::size_t j = 0; j < 16; ++j) sums[j] += static_cast<double>(e[j]);
    }
    for (; i < logits.size(); ++i) sums[i % 16] += static_cast<double>(exp_of_negative(logits[i] - best));
    for (std::size_t width = 8; width > 0; width /= 2)
        for (std::size_t j = 0; j < width; ++j) sums[j] += sums[j + width];
    return static_cast<double>(best) + log_of_positive(sums[0]);
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

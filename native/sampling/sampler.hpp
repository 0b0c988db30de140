// From a row of logits to a token, in the order of models.md: logit_bias, repetition, frequency and presence
// penalties, temperature, top-k, top-p, min-p; then the inverse of the cumulative distribution over the survivors in
// id order, at the one uniform the caller gives. Temperature 0 is the argmax after bias and penalties, ties to the
// lower id. A pure function of its arguments; scratch is sized at construction, choosing never allocates.
//
// Speed: whole rows are read by vector loops only. Top-k counts tokens in buckets by their distance from the best
// logit, top-p weighs those above falling thresholds, so of 150k tokens only those near the cut are ever compared with
// each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "messages/generation.hpp"
#include "native/sampling/penalty_counts.hpp"

namespace fermata::sampling {

// True when a setting needs counts of earlier tokens.
inline bool needs_counts(const sampling_params& how) {
    return how.repetition_penalty != 1 || how.frequency_penalty != 0 || how.presence_penalty != 0;
}

class sampler {
public:
    explicit sampler(std::size_t vocabulary);

    // `logits` are finite and at most as long as the vocabulary: a shorter row is drawn from its tokens alone. `counts`
    // may be inactive when no penalty is set.
    // `uniform` in [0, 1); not looked at when the temperature is 0.
    token_id choose(std::span<const float> logits, const sampling_params& how, const penalty_counts& counts,
                    double uniform);

private:
    std::span<const float> adjust(std::span<const float> logits, const sampling_params& how,
                                  const penalty_counts& counts);
    void keep_top_k(std::span<const float> logits, std::size_t count);
    void keep_top_p(std::span<const float> logits, double share);
    void cut_to_share(std::span<const float> logits, double sum, double limit);
    void keep_up_to(std::span<const float> logits, token_id last);
    void collect(std::span<const float> values, float threshold);
    float weight(float logit) const;
    token_id draw_from_kept(std::span<const float> logits, double uniform) const;
    token_id draw_from_all(double uniform, double total) const;

    float best_ = 0;
    float temperature_ = 1;
    std::vector<float> adjusted_;
    std::vector<float> weights_;  // e^((logit - best) / temperature): the best token weighs 1
    std::vector<double> blocks_;  // sums of consecutive weights
    std::vector<token_id> found_;   // room for a whole row
    std::vector<token_id> kept_;    // survivors, ascending
    std::vector<token_id> ranked_;  // those near a cut
    std::vector<std::uint32_t> bucket_sizes_;
};

}  // namespace fermata::sampling

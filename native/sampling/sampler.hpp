// From a row of logits to a token, in the order of models.md: logit_bias, repetition, frequency and presence
// penalties, temperature, top-k, top-p, min-p; then the inverse of the cumulative distribution over the survivors in
// id order, at the one uniform the caller gives. Temperature 0 is the argmax after bias and penalties, ties to the
// lower id. A pure function of its arguments; scratch is sized at construction, choosing never allocates.
//
// Speed: a filter sorts tokens into buckets by their distance from the best logit, so of 150k tokens only those in
// and above the bucket with the cut are ever compared with each other.
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

    // `logits` are finite and as long as the vocabulary. `counts` may be inactive when no penalty is set.
    // `uniform` in [0, 1); not looked at when the temperature is 0.
    token_id choose(std::span<const float> logits, const sampling_params& how, const penalty_counts& counts,
                    double uniform);

private:
    std::span<const float> adjust(std::span<const float> logits, const sampling_params& how,
                                  const penalty_counts& counts);
    std::uint32_t bucket_of(float logit) const;
    void keep_buckets(std::span<const float> logits, std::uint32_t last);
    void keep_top_k(std::span<const float> logits, std::size_t count);
    void keep_top_p(std::span<const float> logits, double share);
    void cut_kept_to_share(std::span<const float> logits, double share, double total);
    float weight(float logit) const;
    double weigh_all(std::span<const float> logits, float smallest);
    token_id draw_from_kept(std::span<const float> logits, double uniform);
    token_id draw_from_all(double uniform, double total) const;

    float best_ = 0;
    float temperature_ = 1;
    std::vector<float> adjusted_;
    std::vector<float> weights_;  // e^((logit - best) / temperature): the best token weighs 1
    std::vector<double> blocks_;  // sums of consecutive weights
    std::vector<token_id> kept_;  // survivors, best first while filtering
    std::vector<std::uint32_t> bucket_sizes_;
    std::vector<double> bucket_weights_;
};

}  // namespace fermata::sampling

// See sampler.hpp.
#include "native/sampling/sampler.hpp"

#include <algorithm>

#include "native/sampling/exact_math.hpp"

namespace fermata::sampling {

namespace {

constexpr std::size_t block = 1024;
constexpr std::uint32_t buckets = 4096;
constexpr float buckets_per_unit = 128;  // 4096 / 128: logits up to 32 below the best are told apart

float best_of(std::span<const float> logits) {
    float best = logits.front();
    for (float x : logits) best = x > best ? x : best;
    return best;
}

token_id argmax(std::span<const float> logits) {
    const float best = best_of(logits);
    return static_cast<token_id>(std::find(logits.begin(), logits.end(), best) - logits.begin());
}

}  // namespace

sampler::sampler(std::size_t vocabulary)
    : adjusted_(vocabulary), weights_(vocabulary), blocks_((vocabulary + block - 1) / block), bucket_sizes_(buckets),
      bucket_weights_(buckets) {
    kept_.reserve(vocabulary);
}

std::span<const float> sampler::adjust(std::span<const float> logits, const sampling_params& how,
                                       const penalty_counts& counts) {
    const bool penalised = needs_counts(how) && counts.active();
    if (how.logit_bias.empty() && !penalised) return logits;
    std::copy(logits.begin(), logits.end(), adjusted_.begin());
    for (const auto& each : how.logit_bias) {
        const auto i = static_cast<std::size_t>(each.token);
        if (each.token >= 0 && i < adjusted_.size()) adjusted_[i] += each.bias;
    }
    if (!penalised) return adjusted_;
    for (const auto& each : counts.entries()) {
        float& x = adjusted_[static_cast<std::size_t>(each.token)];
        x = x > 0 ? x / how.repetition_penalty : x * how.repetition_penalty;
        if (each.generated == 0) continue;
        x -= how.frequency_penalty * static_cast<float>(each.generated);
        x -= how.presence_penalty;
    }
    return adjusted_;
}

token_id sampler::choose(std::span<const float> raw, const sampling_params& how, const penalty_counts& counts,
                         double uniform) {
    const std::span<const float> logits = adjust(raw, how, counts);
    best_ = best_of(logits);
    // Nothing to draw from where bias took every token or made one infinite: the argmax still answers.
    const bool drawable = best_ - best_ == 0;
    if (how.temperature <= 0 || !drawable) return argmax(logits);
    temperature_ = how.temperature;
    const bool by_count = how.top_k > 0 && how.top_k < logits.size();
    const bool by_share = how.top_p < 1;
    if (!by_count && !by_share) {
        const double total = weigh_all(logits, std::min(how.min_p, 1.0f));
        return draw_from_all(uniform, total);
    }
    if (by_count) keep_top_k(logits, how.top_k);
    if (by_share && by_count) {
        double total = 0;
        for (token_id t : kept_) total += static_cast<double>(weight(logits[static_cast<std::size_t>(t)]));
        cut_kept_to_share(logits, static_cast<double>(how.top_p), total);
    } else if (by_share) {
        keep_top_p(logits, static_cast<double>(how.top_p));
    }
    if (how.min_p > 0) {
        std::size_t n = 1;
        while (n < kept_.size() && weight(logits[static_cast<std::size_t>(kept_[n])]) >= how.min_p) ++n;
        kept_.resize(n);
    }
    return draw_from_kept(logits, uniform);
}

float sampler::weight(float logit) const { return exp_of_negative((logit - best_) / temperature_); }

// Non-increasing in the logit; equal logits share a bucket.
std::uint32_t sampler::bucket_of(float logit) const {
    const float distance = (best_ - logit) * buckets_per_unit;
    return distance < static_cast<float>(buckets - 1) ? static_cast<std::uint32_t>(distance) : buckets - 1;
}

void sampler::keep_buckets(std::span<const float> logits, std::uint32_t last) {
    kept_.clear();
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (bucket_of(logits[i]) <= last) kept_.push_back(static_cast<token_id>(i));
    std::sort(kept_.begin(), kept_.end(), [&](token_id a, token_id b) {
        const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
        return x > y || (x == y && a < b);
    });
}

void sampler::keep_top_k(std::span<const float> logits, std::size_t count) {
    std::fill(bucket_sizes_.begin(), bucket_sizes_.end(), 0);
    for (float x : logits) ++bucket_sizes_[bucket_of(x)];
    std::uint32_t last = 0;
    for (std::size_t above = bucket_sizes_[0]; above < count; above += bucket_sizes_[last]) ++last;
    keep_buckets(logits, last);
    kept_.resize(count);
}

void sampler::keep_top_p(std::span<const float> logits, double share) {
    const double total = weigh_all(logits, 0);
    std::fill(bucket_weights_.begin(), bucket_weights_.end(), 0);
    for (std::size_t i = 0; i < logits.size(); ++i)
        bucket_weights_[bucket_of(logits[i])] += static_cast<double>(weights_[i]);
    // One bucket more than the sum says: bucket sums round differently from the sum in order of rank below.
    std::uint32_t last = 0;
    double above = bucket_weights_[0];
    while (last + 1 < buckets && above < share * total) above += bucket_weights_[++last];
    keep_buckets(logits, std::min(last + 1, buckets - 1));
    cut_kept_to_share(logits, share, total);
}

// The shortest run of best tokens that weighs at least `share` of `total`; never empty.
void sampler::cut_kept_to_share(std::span<const float> logits, double share, double total) {
    double sum = 0;
    std::size_t n = 0;
    do {
        sum += static_cast<double>(weight(logits[static_cast<std::size_t>(kept_[n])]));
        ++n;
    } while (n < kept_.size() && sum < share * total);
    kept_.resize(n);
}

// Weights below `smallest` count as nothing.
double sampler::weigh_all(std::span<const float> logits, float smallest) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const float w = weight(logits[i]);
        weights_[i] = w < smallest ? 0.0f : w;
    }
    double total = 0;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const std::size_t end = std::min(weights_.size(), (b + 1) * block);
        double sum = 0;
        for (std::size_t i = b * block; i < end; ++i) sum += static_cast<double>(weights_[i]);
        blocks_[b] = sum;
        total += sum;
    }
    return total;
}

token_id sampler::draw_from_all(double uniform, double total) const {
    const double target = uniform * total;
    double sum = 0;
    std::size_t b = 0;
    while (b + 1 < blocks_.size() && sum + blocks_[b] <= target) sum += blocks_[b++];
    std::size_t last = 0;
    const std::size_t end = std::min(weights_.size(), (b + 1) * block);
    for (std::size_t i = b * block; i < end; ++i) {
        if (weights_[i] == 0) continue;
        last = i;
        sum += static_cast<double>(weights_[i]);
        if (sum > target) return static_cast<token_id>(i);
    }
    // Rounding left the target at the very end: the last token that weighs anything.
    if (weights_[last] == 0) {
        last = weights_.size() - 1;
        while (last > 0 && weights_[last] == 0) --last;
    }
    return static_cast<token_id>(last);
}

token_id sampler::draw_from_kept(std::span<const float> logits, double uniform) {
    std::sort(kept_.begin(), kept_.end());
    double total = 0;
    for (token_id t : kept_) total += static_cast<double>(weight(logits[static_cast<std::size_t>(t)]));
    const double target = uniform * total;
    double sum = 0;
    for (token_id t : kept_) {
        sum += static_cast<double>(weight(logits[static_cast<std::size_t>(t)]));
        if (sum > target) return t;
    }
    return kept_.back();
}

}  // namespace fermata::sampling

// See sampler.hpp.
#include "native/sampling/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "native/sampling/exact_math.hpp"
#include "native/sampling/row_loops.hpp"

namespace fermata::sampling {

namespace {

constexpr std::uint32_t buckets = 4096;
constexpr float buckets_per_unit = 128;  // 4096 / 128: logits up to 32 below the best are told apart

// Non-increasing in the logit; equal logits share a bucket.
inline std::uint32_t bucket_of(float logit, float best) {
    const float distance = (best - logit) * buckets_per_unit;
    return distance < static_cast<float>(buckets - 1) ? static_cast<std::uint32_t>(distance) : buckets - 1;
}

inline float at(std::span<const float> logits, token_id token) { return logits[static_cast<std::size_t>(token)]; }

// Best first, ties to the lower id.
inline bool ranks_before(std::span<const float> logits, token_id a, token_id b) {
    const float x = at(logits, a), y = at(logits, b);
    return x > y || (x == y && a < b);
}

}  // namespace

sampler::sampler(std::size_t vocabulary)
    : adjusted_(vocabulary), weights_(vocabulary), blocks_((vocabulary + weight_block - 1) / weight_block),
      bucket_sizes_(buckets) {
    found_.resize(vocabulary + 1);
    kept_.reserve(vocabulary);
    ranked_.reserve(vocabulary);
}

std::span<const float> sampler::adjust(std::span<const float> logits, const sampling_params& how,
                                       const penalty_counts& counts) {
    const bool penalised = needs_counts(how) && counts.active();
    if (how.logit_bias.empty() && !penalised) return logits;
    std::copy(logits.begin(), logits.end(), adjusted_.begin());
    for (const auto& each : how.logit_bias) {
        const auto i = static_cast<std::size_t>(each.token);
        if (each.token >= 0 && i < logits.size()) adjusted_[i] += each.bias;
    }
    const auto result = std::span<const float>(adjusted_).first(logits.size());
    if (!penalised) return result;
    for (const auto& each : counts.entries()) {
        if (static_cast<std::size_t>(each.token) >= logits.size()) continue;  // of a prompt; it can't be drawn
        float& x = adjusted_[static_cast<std::size_t>(each.token)];
        x = x > 0 ? x / how.repetition_penalty : x * how.repetition_penalty;
        if (each.generated == 0) continue;
        x -= how.frequency_penalty * static_cast<float>(each.generated);
        x -= how.presence_penalty;
    }
    return result;
}

token_id sampler::choose(std::span<const float> raw, const sampling_params& how, const penalty_counts& counts,
                         double uniform) {
    const std::span<const float> logits = adjust(raw, how, counts);
    best_ = loops().best(logits.data(), logits.size());
    // Nothing to draw from where bias took every token or made one infinite: the argmax still answers.
    const bool drawable = best_ - best_ == 0;
    if (how.temperature <= 0 || !drawable)
        return static_cast<token_id>(loops().first_equal(logits.data(), logits.size(), best_));
    temperature_ = how.temperature;
    const bool by_count = how.top_k > 0 && how.top_k < logits.size();
    const bool by_share = how.top_p < 1;
    if (!by_count && !by_share) {
        const double total = loops().weigh(logits.data(), logits.size(), best_, temperature_,
                                           std::min(how.min_p, 1.0f), weights_.data(), blocks_.data());
        return draw_from_all(uniform, total);
    }
    if (by_count) keep_top_k(logits, how.top_k);
    if (by_share && by_count) {
        double total = 0;
        for (token_id t : kept_) total += static_cast<double>(weight(at(logits, t)));
        ranked_.assign(kept_.begin(), kept_.end());
        cut_to_share(logits, 0, static_cast<double>(how.top_p) * total);
    } else if (by_share) {
        keep_top_p(logits, static_cast<double>(how.top_p));
    }
    if (how.min_p > 0) {
        const float least = std::min(how.min_p, 1.0f);
        std::erase_if(kept_, [&](token_id t) { return weight(at(logits, t)) < least; });
    }
    return draw_from_kept(logits, uniform);
}

float sampler::weight(float logit) const { return exp_of_negative((logit - best_) / temperature_); }

// Into kept_, ascending.
void sampler::collect(std::span<const float> values, float threshold) {
    const std::size_t n = loops().collect_at_least(values.data(), values.size(), threshold, found_.data());
    kept_.assign(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(n));
}

// All that rank behind `last` go. Ties rank by the lower id.
void sampler::keep_up_to(std::span<const float> logits, token_id last) {
    std::erase_if(kept_, [&](token_id t) { return ranks_before(logits, last, t); });
}

void sampler::keep_top_k(std::span<const float> logits, std::size_t count) {
    std::fill(bucket_sizes_.begin(), bucket_sizes_.end(), 0);
    const float best = best_;
    for (float x : logits) ++bucket_sizes_[bucket_of(x, best)];
    std::uint32_t last = 0;
    for (std::size_t above = bucket_sizes_[0]; above < count; above += bucket_sizes_[last]) ++last;
    // A bucket more than needed, so that rounding of the threshold loses nobody; the last bucket has no lower end.
    const float threshold = last + 2 < buckets ? best - static_cast<float>(last + 2) / buckets_per_unit : -INFINITY;
    collect(logits, threshold);
    ranked_.assign(kept_.begin(), kept_.end());
    const auto cut = ranked_.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::nth_element(ranked_.begin(), cut, ranked_.end(),
                     [&](token_id a, token_id b) { return ranks_before(logits, a, b); });
    keep_up_to(logits, *cut);
}

// Everything that weighs at least one power of two is in, nothing below the next one is: only tokens between them are
// ranked.
void sampler::keep_top_p(std::span<const float> logits, double share) {
    const double total =
        loops().weigh(logits.data(), logits.size(), best_, temperature_, 0, weights_.data(), blocks_.data());
    const double limit = share * total;
    float in = 2, out = 1;  // the best token weighs 1
    double mass_in = 0, mass_out = loops().mass_at_least(weights_.data(), weights_.size(), out);
    while (mass_out < limit && out > 0) {
        in = out;
        mass_in = mass_out;
        out = out < 1e-37f ? 0 : out / 2;
        mass_out = loops().mass_at_least(weights_.data(), weights_.size(), out);
    }
    collect(weights_, out);
    ranked_.clear();
    for (token_id t : kept_)
        if (at(weights_, t) < in) ranked_.push_back(t);
    cut_to_share(logits, mass_in, limit);
}

// Of ranked_, the fewest best that bring `sum` up to `limit` stay; at least one where all survivors are in ranked_.
void sampler::cut_to_share(std::span<const float> logits, double sum, double limit) {
    if (ranked_.empty()) return;
    std::sort(ranked_.begin(), ranked_.end(), [&](token_id a, token_id b) { return ranks_before(logits, a, b); });
    std::size_t n = 0;
    const bool all = ranked_.size() == kept_.size();
    while (n < ranked_.size() && (sum < limit || (all && n == 0)))
        sum += static_cast<double>(weight(at(logits, ranked_[n++])));
    if (n == ranked_.size()) return;
    // n == 0: what rounding let in too early; the best of ranked_ goes with all others.
    if (n > 0) return keep_up_to(logits, ranked_[n - 1]);
    const token_id first_out = ranked_[0];
    std::erase_if(kept_, [&](token_id t) { return t == first_out || ranks_before(logits, first_out, t); });
}

token_id sampler::draw_from_all(double uniform, double total) const {
    const double target = uniform * total;
    double sum = 0;
    std::size_t b = 0;
    while (b + 1 < blocks_.size() && sum + blocks_[b] <= target) sum += blocks_[b++];
    const std::size_t end = std::min(weights_.size(), (b + 1) * weight_block);
    for (std::size_t i = b * weight_block; i < end; ++i) {
        sum += static_cast<double>(weights_[i]);
        if (weights_[i] > 0 && sum > target) return static_cast<token_id>(i);
    }
    // Rounding left the target behind the block's end: its last token that weighs anything, or the last of all.
    std::size_t last = end;
    while (last > 0 && weights_[last - 1] == 0) --last;
    return static_cast<token_id>(last == 0 ? 0 : last - 1);
}

token_id sampler::draw_from_kept(std::span<const float> logits, double uniform) const {
    double total = 0;
    for (token_id t : kept_) total += static_cast<double>(weight(at(logits, t)));
    const double target = uniform * total;
    double sum = 0;
    for (token_id t : kept_) {
        sum += static_cast<double>(weight(at(logits, t)));
        if (sum > target) return t;
    }
    return kept_.back();
}

}  // namespace fermata::sampling

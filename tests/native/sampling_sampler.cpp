// The sampler against distributions computed elsewhere: constants from sampling_reference.py (NumPy, float64), and a
// slow sampler that sorts everything.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "native/sampling/exact_math.hpp"
#include "native/sampling/logprobs.hpp"
#include "native/sampling/random.hpp"
#include "native/sampling/row_loops.hpp"
#include "native/sampling/sampler.hpp"

using namespace fermata;
using namespace fermata::sampling;

namespace {

struct reference_case {
    const char* name;
    std::vector<double> share;
};

const std::vector<float> small_logits = {2.0f, -1.0f, 0.5f, 2.0f, 3.25f, -4.0f, 1.0f, 0.25f};

const std::vector<reference_case> numpy = {
    {"plain", {0.158544125, 0.007893447, 0.035375976, 0.158544125, 0.553373372, 0.000392992, 0.058325124, 0.027550838}},
    {"temperature", {0.069443005, 0.000172132, 0.003457364, 0.069443005, 0.845988983, 0.000000427, 0.009398089, 0.002096997}},
    {"top_k with a tie at the cut", {0.222700139, 0.000000000, 0.000000000, 0.000000000, 0.777299861, 0.000000000, 0.000000000, 0.000000000}},
    {"top_p", {0.182137984, 0.000000000, 0.000000000, 0.182137984, 0.635724031, 0.000000000, 0.000000000, 0.000000000}},
    {"min_p", {0.182137984, 0.000000000, 0.000000000, 0.182137984, 0.635724031, 0.000000000, 0.000000000, 0.000000000}},
    {"top_k then top_p of what is left", {0.222700139, 0.000000000, 0.000000000, 0.000000000, 0.777299861, 0.000000000, 0.000000000, 0.000000000}},
    {"bias", {0.224049878, 0.011154787, 0.049992285, 0.224049878, 0.000000000, 0.369395799, 0.082423344, 0.038934031}},
    {"repetition", {0.148473017, 0.008732659, 0.054620171, 0.289185950, 0.341632834, 0.000716820, 0.106385566, 0.050252983}},
    {"frequency and presence", {0.025614580, 0.009423077, 0.012099471, 0.189267571, 0.660608733, 0.000469147, 0.069627648, 0.032889772}},
    {"all at once", {0.000000000, 0.000000000, 0.000000000, 0.278081390, 0.655276116, 0.000000000, 0.066642493, 0.000000000}},
};

sampling_params params_of(std::string_view name) {
    sampling_params how;
    if (name == "temperature") how.temperature = 0.5f;
    if (name == "top_k with a tie at the cut") how.top_k = 2;
    if (name == "top_p") how.top_p = 0.8f;
    if (name == "min_p") how.min_p = 0.2f;
    if (name == "top_k then top_p of what is left") how.top_k = 4, how.top_p = 0.7f;
    if (name == "bias") how.logit_bias = {{5, 6.5f}, {4, -100.0f}};
    if (name == "repetition") how.repetition_penalty = 1.5f;
    if (name == "frequency and presence") how.frequency_penalty = 0.75f, how.presence_penalty = 0.5f;
    if (name == "all at once") {
        how.logit_bias = {{1, 2.0f}};
        how.repetition_penalty = 1.25f;
        how.frequency_penalty = how.presence_penalty = 0.25f;
        how.temperature = 0.7f;
        how.top_k = 6;
        how.top_p = 0.9f;
        how.min_p = 0.1f;
    }
    return how;
}

penalty_counts small_counts() {
    penalty_counts counts(8);
    const std::vector<token_id> prompt{4, 1, 4};
    counts.add_prompt(prompt);
    for (token_id t : {0, 0, 2}) counts.add_generated(t);
    return counts;
}

// Sorts everything, in double, with libm: the same rule written the slow way. `cuts` are the cumulative shares.
struct slow_result {
    std::vector<token_id> tokens;
    std::vector<double> cuts;
};

slow_result slow(const std::vector<float>& logits, const sampling_params& how) {
    std::vector<double> x(logits.begin(), logits.end());
    for (const auto& b : how.logit_bias) x[static_cast<std::size_t>(b.token)] += static_cast<double>(b.bias);
    std::vector<token_id> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    const auto at = [&](token_id t) { return x[static_cast<std::size_t>(t)]; };
    std::stable_sort(order.begin(), order.end(), [&](token_id a, token_id b) { return at(a) > at(b); });
    const double best = at(order[0]);
    const auto weight = [&](token_id t) { return std::exp((at(t) - best) / static_cast<double>(how.temperature)); };
    if (how.top_k && how.top_k < order.size()) order.resize(how.top_k);
    if (how.top_p < 1) {
        double total = 0, sum = 0;
        for (token_id t : order) total += weight(t);
        std::size_t n = 0;
        do sum += weight(order[n++]);
        while (n < order.size() && sum < static_cast<double>(how.top_p) * total);
        order.resize(n);
    }
    std::erase_if(order, [&](token_id t) { return weight(t) < static_cast<double>(how.min_p); });
    std::sort(order.begin(), order.end());
    slow_result out{order, {}};
    double total = 0, sum = 0;
    for (token_id t : order) total += weight(t);
    for (token_id t : order) out.cuts.push_back((sum += weight(t)) / total);
    return out;
}

}  // namespace

TEST_CASE("each filter and penalty gives NumPy's distribution, exactly where it cuts") {
    for (const auto& each : numpy) {
        CAPTURE(each.name);
        const sampling_params how = params_of(each.name);
        sampler draw(small_logits.size());
        const penalty_counts counts = needs_counts(how) ? small_counts() : penalty_counts();
        double sum = 0;
        for (std::size_t t = 0; t < each.share.size(); ++t) {
            if (each.share[t] < 1e-8) continue;
            // The token owns [sum, sum + share) of the uniform's range.
            const double inside = each.share[t] * 0.01 + 1e-7;
            if (each.share[t] > 1e-6) {
                CHECK(draw.choose(small_logits, how, counts, sum + inside) == static_cast<token_id>(t));
                CHECK(draw.choose(small_logits, how, counts, sum + each.share[t] - inside) == static_cast<token_id>(t));
            }
            sum += each.share[t];
        }
        CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    }
}

TEST_CASE("temperature 0 is the argmax after bias and penalties, ties to the lower id") {
    sampler draw(small_logits.size());
    sampling_params how;
    how.temperature = 0;
    CHECK(draw.choose(small_logits, how, {}, 0.99) == 4);
    how.logit_bias = {{4, -1.25f}};  // 2.0, as ids 0 and 3
    CHECK(draw.choose(small_logits, how, {}, 0.99) == 0);
    how.logit_bias.push_back({6, 5.0f});
    CHECK(draw.choose(small_logits, how, {}, 0.99) == 6);
    how.logit_bias.clear();
    how.presence_penalty = 3;
    penalty_counts counts(8);
    counts.add_generated(4);
    CHECK(draw.choose(small_logits, how, counts, 0.99) == 0);
}

TEST_CASE("the prompt counts for the repetition penalty only") {  // fault 77: prompt and answer are told apart
    sampler draw(2);
    const std::vector<float> logits{1.0f, 0.9f};
    sampling_params how;
    how.temperature = 0;
    how.frequency_penalty = how.presence_penalty = 1;
    penalty_counts counts(2);
    counts.add_prompt(std::vector<token_id>{0});
    CHECK(draw.choose(logits, how, counts, 0) == 0);
    how.repetition_penalty = 1.2f;
    CHECK(draw.choose(logits, how, counts, 0) == 1);
}

TEST_CASE("random cases agree with the slow sampler") {
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0, 4);
    std::uniform_real_distribution<double> anywhere(0, 1);
    int drawn = 0;
    for (int round = 0; round < 400; ++round) {
        const std::size_t n = 2 + random() % 5000;
        std::vector<float> logits(n);
        for (float& x : logits) x = normal(random);
        if (round % 3 == 0)
            for (float& x : logits) x = std::round(x);  // many ties
        sampling_params how;
        how.temperature = 0.2f + static_cast<float>(anywhere(random)) * 1.5f;
        if (random() % 2) how.top_k = static_cast<std::uint32_t>(1 + random() % 200);
        if (random() % 2) how.top_p = static_cast<float>(anywhere(random));
        if (random() % 3 == 0) how.min_p = static_cast<float>(anywhere(random)) * 0.3f;
        if (random() % 3 == 0) how.logit_bias = {{static_cast<token_id>(random() % n), normal(random)}};
        const slow_result right = slow(logits, how);
        sampler draw(n);
        for (int i = 0; i < 20; ++i) {
            const double u = anywhere(random);
            const auto cut = std::upper_bound(right.cuts.begin(), right.cuts.end(), u);
            // A uniform within float error of a border may fall to either side.
            if (cut == right.cuts.end() || *cut - u < 2e-6 || (cut != right.cuts.begin() && u - cut[-1] < 2e-6)) continue;
            const token_id expected = right.tokens[static_cast<std::size_t>(cut - right.cuts.begin())];
            const token_id got = draw.choose(logits, how, {}, u);
            // Rounding may move a top-p or min-p cut by the one token that stands on it.
            if (got != expected && (how.top_p < 1 || how.min_p > 0)) continue;
            REQUIRE(got == expected);
            ++drawn;
        }
    }
    CHECK(drawn > 6000);
}

TEST_CASE("draws over addresses follow the distribution") {  // chi-square with a fixed seed
    sampler draw(small_logits.size());
    const sampling_params how;
    std::vector<int> seen(small_logits.size(), 0);
    constexpr int n = 200000;
    for (std::uint32_t position = 0; position < n; ++position)
        ++seen[static_cast<std::size_t>(
            draw.choose(small_logits, how, {}, uniform(7, 0, position, purpose::token)))];
    double chi = 0;
    for (std::size_t t = 0; t < seen.size(); ++t) {
        const double expected = numpy[0].share[t] * n;
        chi += (seen[t] - expected) * (seen[t] - expected) / expected;
    }
    CHECK(chi < 24.3);  // 7 degrees of freedom, one in a thousand
}

TEST_CASE("a filter that removes nothing changes nothing") {
    std::mt19937 random(2);
    std::normal_distribution<float> normal(0, 3);
    std::vector<float> logits(3000);
    for (float& x : logits) x = normal(random);
    sampler draw(logits.size());
    sampling_params none, all;
    all.top_k = 3000;
    all.min_p = 1e-30f;
    for (std::uint32_t i = 0; i < 200; ++i) {
        const double u = uniform(1, 0, i, purpose::token);
        CHECK(draw.choose(logits, none, {}, u) == draw.choose(logits, all, {}, u));
    }
}

TEST_CASE("the ends of the uniform's range stay inside the survivors") {
    std::vector<float> logits(5000, -200.0f);
    logits[10] = 5.0f;
    logits[4000] = 4.0f;
    sampler draw(logits.size());
    const double last = 1 - 0x1.0p-53;
    CHECK(draw.choose(logits, {}, {}, 0.0) == 10);
    CHECK(draw.choose(logits, {}, {}, last) == 4000);
    sampling_params how;
    how.top_p = 0.0f;
    CHECK(draw.choose(logits, how, {}, last) == 10);
    how.top_p = 1;
    how.logit_bias = {{10, -INFINITY}, {4000, -INFINITY}};
    const token_id rest = draw.choose(logits, how, {}, last);
    CHECK(rest == 4999);
    how.logit_bias.clear();
    how.min_p = 2;  // nobody weighs that much: the best one stays
    CHECK(draw.choose(logits, how, {}, 0.0) == 10);
    std::vector<float> one{3.0f};
    CHECK(sampler(1).choose(one, {}, {}, last) == 0);
}

TEST_CASE("bias that takes every token still gives an answer") {
    std::vector<float> logits{1.0f, 2.0f};
    sampling_params how;
    how.logit_bias = {{0, -INFINITY}, {1, -INFINITY}};
    CHECK(sampler(2).choose(logits, how, {}, 0.5) == 0);
}

TEST_CASE("exp and log agree with libm") {
    for (float x = 0; x > -86; x -= 0.0137f)
        REQUIRE(static_cast<double>(exp_of_negative(x)) == doctest::Approx(std::exp(static_cast<double>(x))).epsilon(4e-7));
    CHECK(exp_of_negative(0) == 1.0f);
    CHECK(exp_of_negative(-100) == 0.0f);
    CHECK(exp_of_negative(-INFINITY) == 0.0f);
    for (double x = 1e-9; x < 1e12; x *= 1.37) REQUIRE(log_of_positive(x) == doctest::Approx(std::log(x)).epsilon(1e-14));
    CHECK(log_of_positive(1) == 0);
}

TEST_CASE("log-probabilities are NumPy's log-softmax, best ones first, ties to the lower id") {
    const std::vector<double> numpy_logprobs = {-1.84172233, -4.84172233, -3.34172233, -1.84172233,
                                                -0.59172233, -7.84172233, -2.84172233, -3.59172233};
    const double sum = log_sum_exp(small_logits);
    for (std::size_t t = 0; t < small_logits.size(); ++t)
        CHECK(static_cast<double>(small_logits[t]) - sum == doctest::Approx(numpy_logprobs[t]).epsilon(1e-6));
    std::vector<token_logprob> best;
    most_likely(small_logits, sum, 4, best);
    REQUIRE(best.size() == 4);
    CHECK(best[0].token == 4);
    CHECK(best[1].token == 0);
    CHECK(best[2].token == 3);
    CHECK(best[3].token == 6);
    CHECK(static_cast<double>(best[3].logprob) == doctest::Approx(-2.84172233).epsilon(1e-6));
    most_likely(small_logits, sum, 20, best);
    CHECK(best.size() == 8);
    most_likely(small_logits, sum, 0, best);
    CHECK(best.empty());
}

TEST_CASE("a logit that is not finite is seen wherever it stands") {
    std::vector<float> logits(37, 1.0f);
    CHECK(all_finite(logits));
    for (float bad : {INFINITY, -INFINITY, NAN})
        for (std::size_t i = 0; i < logits.size(); ++i) {
            logits[i] = bad;
            CHECK_FALSE(all_finite(logits));
            logits[i] = 1.0f;
        }
}

TEST_CASE("the row loops of every instruction set give the same bits, and the scalar exponential's") {
    std::mt19937 random(4);
    std::normal_distribution<float> normal(0, 6);
    for (std::size_t n : {1u, 5u, 16u, 31u, 64u, 1023u, 1024u, 1040u, 5000u}) {
        std::vector<float> x(n);
        for (float& each : x) each = normal(random);
        if (n > 40) x[n - 3] = -INFINITY;
        const row_loops& a = base_loops();
        const row_loops& b = loops();
        const float best = *std::max_element(x.begin(), x.end());
        CHECK(a.best(x.data(), n) == best);
        CHECK(b.best(x.data(), n) == best);
        const auto place = static_cast<std::size_t>(std::find(x.begin(), x.end(), best) - x.begin());
        CHECK(a.first_equal(x.data(), n, best) == place);
        CHECK(b.first_equal(x.data(), n, best) == place);
        CHECK(b.first_equal(x.data(), n, 1e30f) == n);
        CHECK(a.sum_of_exp(x.data(), n, best) == b.sum_of_exp(x.data(), n, best));
        std::vector<float> u(n), v(n);
        std::vector<double> s(n / weight_block + 1), t(n / weight_block + 1);
        CHECK(a.weigh(x.data(), n, best, 0.7f, 0.01f, u.data(), s.data()) ==
              b.weigh(x.data(), n, best, 0.7f, 0.01f, v.data(), t.data()));
        CHECK(u == v);
        CHECK(s == t);
        double total = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const float w = exp_of_negative((x[i] - best) / 0.7f);
            REQUIRE(u[i] == (w < 0.01f ? 0.0f : w));
            total += static_cast<double>(u[i]);
        }
        CHECK(a.mass_at_least(u.data(), n, 0) == doctest::Approx(total).epsilon(1e-12));
        CHECK(a.mass_at_least(u.data(), n, 0.5f) == b.mass_at_least(u.data(), n, 0.5f));
        CHECK(a.mass_at_least(u.data(), n, 2) == 0);
        for (float threshold : {-INFINITY, best - 3, best}) {
            std::vector<int> ids(n + 1), same(n + 1), right;
            for (std::size_t i = 0; i < n; ++i)
                if (x[i] >= threshold) right.push_back(static_cast<int>(i));
            ids.resize(a.collect_at_least(x.data(), n, threshold, ids.data()));
            same.resize(b.collect_at_least(x.data(), n, threshold, same.data()));
            CHECK(ids == right);
            CHECK(same == right);
        }
    }
}

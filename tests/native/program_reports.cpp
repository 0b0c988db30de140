// What a row reports when asked: log-probabilities of the answer and of the prompt, raw logits; and sampling as Program
// drives it. Right values come from the oracle's reference logits and plain double arithmetic.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "native/program_driver.hpp"
#include "native/sampling/random.hpp"
#include "native/sampling/sampler.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

const ticket a{1}, b{2};

// Reference logits after each of `tokens`.
std::vector<std::vector<float>> logits_along(const oracle::options& how, const std::vector<token_id>& tokens) {
    oracle::reference known(how);
    std::vector<std::vector<float>> out;
    for (token_id t : tokens) {
        known.feed(t);
        out.emplace_back(how.vocabulary);
        known.logits(out.back());
    }
    return out;
}

double logprob_of(const std::vector<float>& logits, token_id token) {
    double sum = 0;
    for (float x : logits) sum += std::exp(static_cast<double>(x));
    return static_cast<double>(logits[static_cast<std::size_t>(token)]) - std::log(sum);
}

std::vector<float> flat(const std::vector<std::vector<float>>& rows, std::size_t from, std::size_t to) {
    std::vector<float> out;
    for (std::size_t i = from; i < to; ++i) out.insert(out.end(), rows[i].begin(), rows[i].end());
    return out;
}

}  // namespace

TEST_CASE("sampled tokens follow from the reference's logits and the address of each draw") {  // M6
    for (std::size_t state_bytes : {0u, 64u}) {
        const auto how = small_oracle(state_bytes);
        const auto prompt = some_tokens(30, 2);
        auto spec = spec_of(prompt, 25);
        spec->sampling.temperature = 1.5f;
        spec->sampling.top_k = 50;
        spec->sampling.seed = 0x123456789;
        spec->sampling.repetition_penalty = 1.2f;
        spec->sampling.presence_penalty = 0.3f;
        driver d(small_options(), how);
        const answer& got = d.complete(a, spec);
        // The same, without Program: the ledger alone.
        sampling::sampler draw(how.vocabulary);
        std::vector<token_id> ledger = prompt, expected;
        for (int i = 0; i < 25; ++i) {
            sampling::penalty_counts counts(ledger.size() + 1);
            counts.add_prompt(prompt);
            for (token_id t : expected) counts.add_generated(t);
            const auto logits = logits_along(how, ledger).back();
            const double u = sampling::uniform(0x123456789, 0, static_cast<std::uint32_t>(ledger.size()),
                                               sampling::purpose::token);
            expected.push_back(draw.choose(logits, spec->sampling, counts, u));
            ledger.push_back(expected.back());
        }
        CHECK(got.tokens == expected);
        CHECK(got.tokens != oracle::expected(how, prompt, 25));  // it did sample
    }
}

TEST_CASE("choices of one request differ; choice 0 equals the request without n") {
    driver d(small_options(), small_oracle(0));
    auto first = spec_of(some_tokens(30, 2), 25);
    first->sampling.temperature = 1;
    first->sampling.seed = 5;
    auto second = std::make_shared<sequence_spec>(*first);
    second->choice = 1;
    d.complete(a, first);
    d.complete(b, second);
    CHECK(d.answers[a].tokens != d.answers[b].tokens);
    d.complete(ticket(3), std::make_shared<sequence_spec>(*first));
    CHECK(d.answers[ticket(3)].tokens == d.answers[a].tokens);
}

TEST_CASE("log-probabilities are those of the raw logits, whatever sampling did to them") {
    const auto how = small_oracle(0);
    const auto prompt = some_tokens(20, 2);
    auto spec = spec_of(prompt, 12);
    spec->sampling.temperature = 2;
    spec->sampling.frequency_penalty = 1;
    spec->sampling.logit_bias = {{3, 11.0f}};
    spec->report.logprobs = true;
    spec->report.top_logprobs = 5;
    driver d(small_options(), how);
    const answer& got = d.complete(a, spec);
    const auto rows = logits_along(how, joined(prompt, got.tokens));
    for (std::size_t i = 0; i < got.tokens.size(); ++i) {
        const auto& logits = rows[prompt.size() - 1 + i];
        CHECK(static_cast<double>(got.logprobs[i]) == doctest::Approx(logprob_of(logits, got.tokens[i])).epsilon(1e-5));
        REQUIRE(got.top_logprobs[i].size() == 5);
        CHECK(got.top_logprobs[i][0].token == std::max_element(logits.begin(), logits.end()) - logits.begin());
        for (const auto& each : got.top_logprobs[i])
            CHECK(static_cast<double>(each.logprob) == doctest::Approx(logprob_of(logits, each.token)).epsilon(1e-5));
        for (std::size_t j = 1; j < 5; ++j) CHECK(got.top_logprobs[i][j - 1].logprob >= got.top_logprobs[i][j].logprob);
    }
}

TEST_CASE("prompt log-probabilities are right across chunk borders; the first is NaN") {
    for (std::size_t state_bytes : {0u, 64u})
        for (std::uint32_t chunk : {1u, 7u, 16u, 64u}) {
            CAPTURE(chunk);
            const auto how = small_oracle(state_bytes);
            const auto prompt = some_tokens(50, 8);
            auto spec = spec_of(prompt, 3);
            spec->report.prompt_logprobs = true;
            spec->report.top_logprobs = 2;
            driver d(small_options(), how);
            const answer& got = d.complete(a, spec, {}, 0, chunk);
            const auto rows = logits_along(how, prompt);
            REQUIRE(got.prompt_logprobs.size() == 50);
            REQUIRE(got.prompt_top_logprobs.size() == 50);
            CHECK(std::isnan(got.prompt_logprobs[0]));
            CHECK(got.prompt_top_logprobs[0].empty());
            for (std::size_t i = 1; i < 50; ++i) {
                CHECK(static_cast<double>(got.prompt_logprobs[i]) ==
                      doctest::Approx(logprob_of(rows[i - 1], prompt[i])).epsilon(1e-5));
                REQUIRE(got.prompt_top_logprobs[i].size() == 2);
                CHECK(got.prompt_top_logprobs[i][0].token ==
                      std::max_element(rows[i - 1].begin(), rows[i - 1].end()) - rows[i - 1].begin());
            }
            CHECK(got.tokens == oracle::expected(how, prompt, 3));
        }
}

TEST_CASE("raw logits: of sampled positions, of every prompt position, or both without a double") {
    const auto how = small_oracle(0);
    const auto prompt = some_tokens(20, 2);
    const auto all = joined(prompt, oracle::expected(how, prompt, 4));
    const auto rows = logits_along(how, all);
    for (bool prompt_logits : {false, true}) {
        auto spec = spec_of(prompt, 4);
        spec->report.logits = true;
        spec->report.prompt_logits = prompt_logits;
        driver d(small_options(), how);
        const answer& got = d.complete(a, spec, {}, 0, 9);
        CHECK(got.logits == flat(rows, prompt_logits ? 0 : 19, 23));
    }
    // A prompt alone: n tokens give n rows, nothing is sampled.
    auto spec = spec_of(prompt, 0);
    spec->report.prompt_logits = true;
    driver d(small_options(), how);
    const answer& got = d.complete(a, spec, {}, 0, 9);
    CHECK(got.logits == flat(rows, 0, 20));
    CHECK(got.tokens.empty());
    CHECK(got.finish == finish_reason::length);
    CHECK(d.last_point().coverage.value == 20);  // what was computed can be resumed from
}

TEST_CASE("a prompt that is scored starts at root") {
    driver d(small_options(), small_oracle(0));
    const auto prompt = some_tokens(40, 2);
    d.complete(a, spec_of(prompt, 4));
    auto spec = spec_of(prompt, 4);
    spec->report.prompt_logprobs = true;
    CHECK(d.bind(b, spec, lane(0), d.last_point().checkpoint, 32).text ==
          "position 32: a prompt that is scored resumes at 0 at most");
    // Paused in its prompt it may reuse what it computed itself, no more.
    d.bind(b, spec, lane(0));
    d.prefill(b, 20);
    d.pause(b);
    CHECK(d.resume(b, lane(0), d.points.begin()->first, 32).outcome == bind_outcome::refused);
    CHECK(d.resume(b, lane(0), d.points.begin()->first, 16).outcome == bind_outcome::bound);
    d.run_until(b, 4, 10);
    CHECK(d.answers[b].prompt_logprobs.size() == 40);
}

TEST_CASE("a scored chunk is cut to the logits there is room for") {
    auto how = small_oracle(0);
    how.vocabulary = 1 << 20;  // 4 MiB a row: sixteen rows
    auto options = small_options();
    auto spec = spec_of(some_tokens(40, 2), 1);
    spec->report.prompt_logprobs = true;
    driver d(options, how);
    d.bind(a, spec, lane(0));
    CHECK(d.prefill(a, 40).rows.at(0).computed.value == 16);
    CHECK(d.prefill(a, 40).rows.at(0).computed.value == 16);
    CHECK(d.prefill(a, 40).rows.at(0).computed.value == 8);
    CHECK(d.answers[a].prompt_logprobs.size() == 40);
}

TEST_CASE("stop strings, stop tokens and end ids end a row; the ending token is the answer's last") {
    const auto how = small_oracle(0);
    const auto prompt = some_tokens(20, 2);
    const auto right = oracle::expected(how, prompt, 10);
    auto table = std::make_shared<token_table>();
    table->bytes.resize(how.vocabulary);
    for (std::size_t t = 0; t < how.vocabulary; ++t) table->bytes[t] = "<" + std::to_string(t) + ">";
    const auto options = [&] {
        auto out = small_options();
        out.tokens = table;
        return out;
    };
    const auto run = [&](auto change) {
        auto spec = spec_of(prompt, 10);
        change(*spec);
        driver d(options(), how);
        d.complete(a, spec);
        CHECK(d.last_point().coverage.value == 20 + d.answers[a].tokens.size() - 1);  // G4
        CHECK(d.prefill(a).rows.empty());
        CHECK(d.decode({a}).rows.empty());
        return d.answers[a];
    };
    const auto text = [&](std::size_t i) { return table->bytes[static_cast<std::size_t>(right[i])]; };
    const std::string across = text(3).substr(1) + text(4).substr(0, 2);  // begins inside one token, ends in the next
    answer got = run([&](sequence_spec& s) { s.guard.stop = {across}; });
    CHECK(got.finish == finish_reason::stop);
    CHECK(got.tokens.size() == 5);
    got = run([&](sequence_spec& s) { s.guard.stop_tokens = {right[6]}; });
    CHECK(got.finish == finish_reason::stop);
    CHECK(got.tokens.size() == 7);
    table->end_of_generation = {right[2]};
    got = run([](sequence_spec&) {});
    CHECK(got.tokens.size() == 3);
    got = run([](sequence_spec& s) { s.guard.ignore_eos = true; });
    CHECK(got.tokens == right);
    CHECK(got.finish == finish_reason::length);
}

TEST_CASE("counters tell what was computed, reused and replayed, once") {  // O2, faults 103, 104
    auto options = small_options();
    options.numbers = std::make_shared<telemetry>();
    telemetry& n = *options.numbers;
    time_ns now = 0;
    options.clock = [&now] { return now += 1000; };
    driver d(options, small_oracle(0));
    const auto prompt = some_tokens(40, 2);
    d.complete(a, spec_of(prompt, 10));
    CHECK(n.prompt_tokens == 40);
    CHECK(n.prefill_tokens == 40);
    CHECK(n.generated_tokens == 10);
    CHECK(n.reused_tokens_device == 0);
    CHECK(n.captures_natural_end == 1);
    CHECK(n.captures_input_point == 1);
    CHECK(n.last_commit_ns > 0);
    d.bind(b, spec_of(prompt, 10), lane(0), d.last_point().checkpoint, 39);
    CHECK(n.reused_tokens_device == 0);  // F11
    d.finish_copies();
    CHECK(n.reused_tokens_device == 39);
    CHECK(n.transfer_bytes_device_device == 16 * 2 * 8);
    d.run_until(b, 5);
    d.pause(b);
    d.resume(b, lane(0));
    d.run_until(b, 10);
    CHECK(n.prompt_tokens == 80);
    CHECK(n.prefill_tokens == 41);
    CHECK(n.replayed_tokens == 44);
    CHECK(n.generated_tokens == 20);
    CHECK(n.pages_total == n.pages_free + n.pages_active + n.pages_cached);
    CHECK(n.pages_touched >= n.pages_active + n.pages_cached);
    CHECK(n.pages_touched < n.pages_total);
    CHECK(n.pages_active == 0);
    std::uint64_t gaps = 0;
    for (const auto& bucket : n.control_gap.buckets) gaps += bucket;
    // Every unit but the first after a time when nobody could run: 9 of a's ten, 4 of b's five, 5 after its replay.
    CHECK(gaps == 9 + 4 + 5);
    CHECK(n.device_wait_ns == n.control_gap.sum_ns);
    CHECK(n.device_wait_ns > 0);
    // Idle time is no gap: the sequence is cancelled, later another one comes.
    d.bind(ticket(3), spec_of(prompt, 10), lane(0));
    d.prefill(ticket(3));
    d.cancel(ticket(3));
    d.bind(ticket(4), spec_of(prompt, 10), lane(0));
    d.prefill(ticket(4));
    std::uint64_t after = 0;
    for (const auto& bucket : n.control_gap.buckets) after += bucket;
    CHECK(after == gaps);
}

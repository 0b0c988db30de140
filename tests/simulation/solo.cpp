#include "solo.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace fermata::simulation {

namespace {

program_options ample(program_options options) {
    options.max_concurrency = 1;
    options.kv_capacity_tokens = 0;
    options.kv_bytes_max = 0;
    options.device_state_slots = 1;
    options.prefill_chunk_tokens = options.max_context_tokens;
    options.batch_tokens = options.max_context_tokens + 1;
    options.numbers = nullptr;
    options.clock = nullptr;
    return options;
}

bool same(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

template <class T, class Equal>
std::string differ(const char* what, const std::vector<T>& got, const std::vector<T>& wanted, bool part, Equal equal) {
    const std::size_t shared = std::min(got.size(), wanted.size());
    for (std::size_t i = 0; i < shared; ++i)
        if (!equal(got[i], wanted[i])) return std::string(what) + " differ at " + std::to_string(i);
    if (got.size() > wanted.size() || (!part && got.size() < wanted.size()))
        return std::string(what) + ": " + std::to_string(got.size()) + " instead of " + std::to_string(wanted.size());
    return {};
}

}  // namespace

void answer::add(const row_result& row) {
    if (row.token != no_token) {
        tokens.push_back(row.token);
        logprobs.push_back(row.logprob);
        top.push_back(row.top_logprobs);
    }
    prompt_logprobs.insert(prompt_logprobs.end(), row.prompt_logprobs.begin(), row.prompt_logprobs.end());
    prompt_top.insert(prompt_top.end(), row.prompt_top_logprobs.begin(), row.prompt_top_logprobs.end());
    if (row.finish != finish_reason::none) finish = row.finish;
}

solo_device::solo_device(const program_options& like, const oracle::options& model)
    : options_(ample(like)), program_(options_, oracle::make(model)) {}

answer solo_device::run(const std::shared_ptr<const sequence_spec>& spec) {
    const ticket who{next_++};
    const token_pos chunk(options_.prefill_chunk_tokens);
    answer result;
    cycle_plan plan;
    program_.take_events(events_);
    for (const auto& each : events_)
        if (const auto* made = std::get_if<checkpoint_published>(&each)) plan.drops.push_back(made->checkpoint);
    plan.binds.push_back({who, lane{0}, spec, std::nullopt, token_pos(0), chunk});
    plan.prefills.push_back({who, chunk});
    for (int cycles = 0; result.finish == finish_reason::none; ++cycles) {
        if (cycles > 100'000) throw std::logic_error("the reference run doesn't end");
        program_.run_cycle(plan, done_);
        if (!done_.shortages.empty() || (!done_.binds.empty() && done_.binds[0].outcome != bind_outcome::bound))
            throw std::logic_error("the reference device is too small: " +
                                   (done_.binds.empty() ? std::string() : done_.binds[0].text));
        plan = {};
        for (const row_result& row : done_.rows) result.add(row);
        if (result.tokens.empty()) plan.prefills.push_back({who, chunk});
        else plan.decodes.push_back(who);
    }
    return result;
}

std::string compare(const answer& got, const answer& wanted, bool part) {
    const auto equal = [](const auto& a, const auto& b) { return a == b; };
    std::string fault = differ("tokens", got.tokens, wanted.tokens, part, equal);
    if (fault.empty()) fault = differ("log-probabilities", got.logprobs, wanted.logprobs, part, same);
    if (fault.empty()) fault = differ("top log-probabilities", got.top, wanted.top, part, equal);
    if (fault.empty())
        fault = differ("prompt log-probabilities", got.prompt_logprobs, wanted.prompt_logprobs, part, same);
    if (fault.empty()) fault = differ("prompt top log-probabilities", got.prompt_top, wanted.prompt_top, part, equal);
    if (fault.empty() && !part && got.finish != wanted.finish) fault = "another finish reason";
    return fault;
}

}  // namespace fermata::simulation

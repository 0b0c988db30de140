// The Scheduler between a stand-in Program and a ResourceManager played by the test: one event at a time, in the
// order the test says. Commands wait in `to_program` and so on until the test lets them be answered.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "actors/cores/scheduler.hpp"
#include "fake_program.hpp"

namespace fermata::testing {

struct answer_log {
    std::vector<token_id> tokens;
    finish_reason finish = finish_reason::none;
    failure_kind failure = failure_kind::none;
    std::string error;
    int ends = 0;
    sequence_usage usage;
};

class rig {
public:
    explicit rig(scheduler_options options, std::uint32_t pages = 64)
        : program(pages, options.page_tokens), core(options, program.view()), options_(options) {}

    fake_program program;
    scheduler core;
    time_ns now = 1000;
    std::deque<cycle_plan> to_program;
    std::deque<choose_source> sources;
    std::deque<choose_victims> victims;
    std::vector<enqueue_result> admissions;
    std::vector<drained> drains;
    std::vector<time_ns> wakes;
    std::map<std::pair<std::uint64_t, std::uint32_t>, answer_log> answers;
    std::vector<cycle_plan> plans;  // all that were sent
    std::size_t messages = 0;       // Scheduler -> anyone
    std::size_t outputs_seen = 0;

    static std::shared_ptr<const sequence_spec> spec(std::uint64_t request, std::uint32_t prompt, std::uint32_t max_new,
                                                     std::uint32_t choice = 0) {
        auto s = std::make_shared<sequence_spec>();
        s->request = request_id{request};
        s->choice = choice;
        std::vector<token_id> tokens(prompt);
        for (std::uint32_t i = 0; i < prompt; ++i) tokens[i] = static_cast<token_id>(request * 1000 + i);
        s->prompt = token_run(std::move(tokens));
        s->guard.max_new_tokens = token_pos(max_new);
        return s;
    }

    void submit(std::uint64_t request, std::uint32_t prompt, std::uint32_t max_new, std::uint32_t n = 1,
                time_ns deadline = 0) {
        enqueue e;
        e.request = request_id{request};
        e.deadline = deadline;
        for (std::uint32_t i = 0; i < n; ++i) e.choices.push_back(spec(request, prompt, max_new, i));
        give(e);
    }
    template <class Event>
    void give(const Event& event) {
        scheduler::commands out;
        core.on(event, now, out);
        take(out);
    }
    void cancel(std::uint64_t request) { give(cancel_request{request_id{request}}); }

    // Answers the oldest waiting plan.
    bool step_program() {
        if (to_program.empty()) return false;
        const cycle_plan plan = std::move(to_program.front());
        to_program.pop_front();
        now += 1'000'000;
        give(program.run(plan));
        return true;
    }
    bool step_resources() {
        if (!sources.empty()) {
            const choose_source q = sources.front();
            sources.pop_front();
            give(source_chosen{q.turn, q.who, std::nullopt, token_pos(0)});
            return true;
        }
        if (victims.empty()) return false;
        const choose_victims q = victims.front();
        victims.pop_front();
        victims_chosen a;
        a.turn = q.turn;
        for (const auto& each : program.cache) {  // oldest first
            if (a.pages >= q.pages) break;
            if (std::find(q.keep.begin(), q.keep.end(), each.first) != q.keep.end()) continue;
            a.drops.push_back(each.first);
            a.pages += each.second;
        }
        a.enough = a.pages >= q.pages && q.state_slots == 0;
        give(a);
        return true;
    }
    bool step() { return step_resources() || step_program(); }
    // Until nothing moves; false when `most` steps weren't enough.
    bool run(int most = 20000) {
        for (int i = 0; i < most; ++i)
            if (!step()) return true;
        return false;
    }
    answer_log& answer(std::uint64_t request, std::uint32_t choice = 0) { return answers[{request, choice}]; }

private:
    void take(scheduler::commands& out) {
        for (auto& each : out) {
            ++messages;
            if (auto* plan = std::get_if<cycle_plan>(&each)) plans.push_back(*plan), to_program.push_back(*plan);
            if (auto* q = std::get_if<choose_source>(&each)) sources.push_back(*q);
            if (auto* q = std::get_if<choose_victims>(&each)) victims.push_back(*q);
            if (auto* r = std::get_if<enqueue_result>(&each)) admissions.push_back(*r);
            if (auto* d = std::get_if<drained>(&each)) drains.push_back(*d);
            if (auto* w = std::get_if<wake_at>(&each)) wakes.push_back(w->when);
            if (auto* o = std::get_if<outputs>(&each)) collect(*o);
        }
    }
    void collect(const outputs& message) {
        ++outputs_seen;
        for (const choice_output& row : message.rows) {
            answer_log& log = answer(row.request.value, row.choice);
            if (row.row.token != no_token) log.tokens.push_back(row.row.token);
            if (row.row.finish == finish_reason::none) continue;
            ++log.ends;
            log.finish = row.row.finish;
            log.failure = row.failure;
            log.error = row.row.error;
            if (row.usage) log.usage = *row.usage;
        }
    }
    scheduler_options options_;
};

inline scheduler_options small_options(std::uint32_t lanes = 2) {
    scheduler_options o;
    o.max_concurrency = lanes;
    o.page_tokens = 4;
    o.prefill_chunk_tokens = 8;
    o.batch_tokens = 16;
    o.tau_high = 1.01;  // gate off unless a test is about it
    o.tau_admit = 1.0;
    o.tau_low = 0;
    return o;
}

}  // namespace fermata::testing

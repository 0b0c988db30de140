// A small node on the oracle, clients that wait for an end, and the right answer known from the tokens alone. Waits have
// a generous deadline and no sleeps.
#pragma once

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/node.hpp"
#include "native/models/oracle/oracle.hpp"

namespace fermata::test {

using namespace std::chrono_literals;
inline constexpr auto patience = 120s;  // only a broken node takes so long

inline oracle::options small_oracle() {
    oracle::options how;
    how.vocabulary = 512;
    how.state_bytes = 0;
    how.page_tokens = 16;
    how.context_tokens = 4096;
    return how;
}

inline node_options small_node(oracle::options how = small_oracle()) {
    node_options o;
    o.load_model = [how] { return oracle::make(how); };
    o.program.max_context_tokens = 1024;
    o.program.max_concurrency = 4;
    o.model_id = "oracle";
    return o;
}

// What the model must say after `prompt`, greedily.
inline std::vector<token_id> right_answer(const std::vector<token_id>& prompt, std::size_t count,
                                          const oracle::options& how = small_oracle()) {
    oracle::reference truth(how);
    for (token_id each : prompt) truth.feed(each);
    std::vector<token_id> answer;
    while (answer.size() < count) {
        answer.push_back(truth.next());
        truth.feed(answer.back());
    }
    return answer;
}

inline std::vector<token_id> some_prompt(std::size_t size, token_id start = 1) {
    std::vector<token_id> prompt;
    for (std::size_t i = 0; i < size; ++i) prompt.push_back(static_cast<token_id>((static_cast<std::size_t>(start) + 7 * i) % 500));
    return prompt;
}

// Waits for what only shows in a number.
template <class Condition>
bool eventually(Condition&& holds) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::yield();
    }
    return true;
}

class collecting_sink final : public client_sink {
public:
    void on(const accepted& m) override { locked([&] { was_accepted = true, prompt_tokens = m.prompt_tokens.value; }); }
    void on(const rejected& m) override { locked([&] { error = m.error, was_rejected = ended = true; }); }
    void on(const text_delta& m) override {
        locked([&] {
            if (ended) after_end = true;
            if (answers.size() <= m.choice) answers.resize(m.choice + 1);
            for (const auto& each : m.tokens) answers[m.choice].push_back(each.token);
            if (m.finish != finish_reason::none) finishes.push_back(m.finish);
            ++deltas;
        });
    }
    void on(const finished& m) override { locked([&] { usage = m.usage, was_finished = ended = true; }); }
    void on(const failed& m) override { locked([&] { error = m.error, usage = m.usage, was_failed = ended = true; }); }

    bool wait_end() {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, patience, [&] { return ended; });
    }
    bool wait_deltas(std::size_t n) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, patience, [&] { return ended || deltas >= n; });
    }

    std::mutex mutex;
    std::condition_variable changed;
    bool was_accepted = false, was_rejected = false, was_finished = false, was_failed = false, ended = false, after_end = false;
    std::uint32_t prompt_tokens = 0;
    std::size_t deltas = 0;
    std::vector<std::vector<token_id>> answers;
    std::vector<finish_reason> finishes;
    client_error error;
    request_usage usage;

private:
    template <class Change>
    void locked(Change&& change) {
        {
            std::lock_guard lock(mutex);
            change();
        }
        changed.notify_all();
    }
};

inline submit token_request(request_id id, std::vector<token_id> prompt, std::uint32_t max_tokens) {
    submit request;
    request.request = id;
    request.kind = prompt_kind::tokens;
    request.prompt_tokens = token_run(std::move(prompt));
    request.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    request.ignore_eos = true;
    return request;
}

inline std::shared_ptr<collecting_sink> send(gateway& to, std::vector<token_id> prompt, std::uint32_t max_tokens,
                                             request_id* id = nullptr) {
    auto sink = std::make_shared<collecting_sink>();
    const auto name = to.next_request();
    if (id) *id = name;
    to.submit_request(token_request(name, std::move(prompt), max_tokens), sink);
    return sink;
}

}  // namespace fermata::test

// A client of an in-process node that waits for its answer: what the terminal programs use.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "frontend/gateway.hpp"

namespace fermata::cli {

using steady_time = std::chrono::steady_clock::time_point;

// Everything one choice brought. Times of tokens are those of arrival here.
struct answer {
    std::string text;
    std::vector<token_report> tokens;
    std::vector<token_report> prompt;
    finish_reason finish = finish_reason::none;
    std::vector<steady_time> token_times;
};

struct answer_options {
    // Called on a node thread, choice by choice. What it throws ends the waiting: `wait` throws it on, and it isn't called
    // again.
    std::function<void(const text_delta&)> on_delta;
    bool keep = true;                                 // false: deltas are only handed to on_delta
};

class pending_answer final : public client_sink {
public:
    explicit pending_answer(answer_options options, std::uint32_t choices)
        : options_(std::move(options)), choices_(choices) {}

    void on(const accepted&) override;
    void on(const rejected&) override;
    void on(const text_delta&) override;
    void on(const finished&) override;
    void on(const failed&) override;

    // Both throw what `on_delta` threw.
    void wait();
    // False when the time is over first.
    bool wait_until(steady_time end);
    bool first_token_wait();

    // After wait().
    const std::optional<client_error>& error() const { return error_; }
    const request_usage& usage() const { return usage_; }
    std::vector<answer>& choices() { return choices_; }
    std::uint32_t prompt_tokens() const { return prompt_tokens_; }

private:
    void end();
    bool show(const text_delta& delta);
    void rethrow() const;

    answer_options options_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::exception_ptr trouble_;  // of on_delta
    std::vector<answer> choices_;
    std::optional<client_error> error_;
    request_usage usage_;
    std::uint32_t prompt_tokens_ = 0;
};

// What the sampling options and --seed ask of a request.
void apply(const sampling_options& sampling, const engine_options& engine, submit& request);

// Submits with a fresh id (kept in `request.request`).
std::shared_ptr<pending_answer> ask(gateway& node, submit& request, answer_options options = {});

// One line for people: the message and, where there is one, the field.
std::string describe(const client_error& error);

}  // namespace fermata::cli

// A node as the HTTP side sees it, moved by hand: a test says what is accepted, said and finished, and sees what was
// submitted and cancelled. Waiting is bounded by a deadline that only a failing test reaches.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "frontend/gateway.hpp"

namespace fermata::testing {

class fake_gateway final : public gateway {
public:
    struct call {
        submit request;
        std::shared_ptr<client_sink> sink;
    };

    model_card card{"tiny", "tiny.gguf", 4096, 1'700'000'000, 1000, true, true};
    health_report state{true, true, ""};
    std::shared_ptr<telemetry> counts = std::make_shared<telemetry>();
    // Called for each submit, on the server's thread; empty: the test drives by hand.
    std::function<void(call const&)> behaviour;

    request_id next_request() override { return request_id(++ids_); }
    void submit_request(submit request, std::shared_ptr<client_sink> sink) override {
        call c{std::move(request), std::move(sink)};
        {
            std::lock_guard lock(mutex_);
            calls_.push_back(c);
        }
        changed_.notify_all();
        if (behaviour) behaviour(c);
    }
    void cancel(request_id request) override {
        {
            std::lock_guard lock(mutex_);
            ++cancelled_[request.value];
        }
        changed_.notify_all();
    }
    // One token a byte, special tokens unknown.
    void tokenize(tokenize_text text, std::function<void(tokenized)> done) override {
        last_tokenize = text;
        std::vector<token_id> ids;
        if (text.add_bos) ids.push_back(1);
        auto const& source = text.messages_json.empty() ? text.text : text.messages_json;
        for (char c : source) ids.push_back(static_cast<unsigned char>(c));
        done({token_run(std::move(ids)), std::nullopt});
    }
    void detokenize(detokenize_tokens tokens, std::function<void(detokenized)> done) override {
        std::string bytes;
        for (auto id : tokens.tokens.span()) bytes += static_cast<char>(id);
        done({bytes, std::nullopt});
    }
    model_card const& model() const override { return card; }
    health_report health() const override { return state; }
    std::shared_ptr<telemetry const> numbers() const override { return counts; }

    // The i-th submit (from 0), once it is there.
    call wait_submit(std::size_t i = 0) {
        std::unique_lock lock(mutex_);
        wait(lock, [&] { return calls_.size() > i; }, "a submit");
        return calls_[i];
    }
    void wait_cancel(request_id request) {
        std::unique_lock lock(mutex_);
        wait(lock, [&] { return cancelled_.count(request.value) != 0; }, "a cancel");
    }
    std::size_t submits() {
        std::lock_guard lock(mutex_);
        return calls_.size();
    }
    std::size_t cancels(request_id request) {
        std::lock_guard lock(mutex_);
        auto const found = cancelled_.find(request.value);
        return found == cancelled_.end() ? 0 : static_cast<std::size_t>(found->second);
    }
    std::size_t cancels() {
        std::lock_guard lock(mutex_);
        return cancelled_.size();
    }

    tokenize_text last_tokenize;

private:
    template <class Predicate>
    void wait(std::unique_lock<std::mutex>& lock, Predicate done, char const* what) {
        if (!changed_.wait_for(lock, std::chrono::seconds(20), done)) throw std::runtime_error(std::string("never saw ") + what);
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<call> calls_;
    std::map<std::uint64_t, int> cancelled_;
    std::atomic<std::uint64_t> ids_{0};
};

inline void accept(fake_gateway::call const& c, std::uint32_t prompt_tokens = 3) {
    c.sink->on(accepted{c.request.request, token_pos(prompt_tokens)});
}

inline void say(fake_gateway::call const& c, std::string text, std::uint32_t choice = 0,
                finish_reason finish = finish_reason::none) {
    text_delta delta;
    delta.request = c.request.request;
    delta.choice = choice;
    delta.text = std::move(text);
    delta.finish = finish;
    c.sink->on(delta);
}

inline void done(fake_gateway::call const& c, std::uint64_t completion_tokens = 2) {
    finished f;
    f.request = c.request.request;
    f.usage.prompt_tokens = 3;
    f.usage.cached_tokens = 1;
    f.usage.completion_tokens = completion_tokens;
    f.usage.source = "device";
    f.usage.queue_ms = 0.5;
    f.usage.ttft_ms = 1.5;
    c.sink->on(f);
}

// Answers everything at once: each choice says `text`.
inline std::function<void(fake_gateway::call const&)> answering(std::string text) {
    return [text = std::move(text)](fake_gateway::call const& c) {
        accept(c);
        for (std::uint32_t i = 0; i < c.request.n; ++i) {
            say(c, text, i);
            say(c, "", i, finish_reason::stop);
        }
        done(c);
    };
}

}  // namespace fermata::testing

// Where the node's threads leave what they have for one exchange. A push is a copy under a lock and, when nobody is on the
// way already, one wake-up; it never blocks and never formats anything.
//
// Invariants
// - Events are taken in the order they were pushed.
// - Memory is bounded: once `bytes_max` wait, further events are dropped and `overflow` is reported; the owner then ends the
//   exchange. Texts of one choice that wait are joined, so a client that is behind costs bytes, not events.
// - After detach() pushes are forgotten and nobody is woken: the owner may go away while the node still has the sinks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/gateway.hpp"

namespace fermata::http {

struct event {
    std::size_t part = 0;
    std::variant<accepted, rejected, text_delta, finished, failed, tokenized, detokenized> what;
};

class mailbox {
public:
    mailbox(std::size_t bytes_max, std::function<void()> wake) : bytes_max_(bytes_max), wake_(std::move(wake)) {}

    // `bytes`: about what the event keeps beside itself. Terminal events are never dropped.
    void push(event e, std::size_t bytes, bool terminal) {
        std::lock_guard lock(mutex_);
        if (!wake_) return;
        if (!terminal && bytes_ > bytes_max_) {
            if (std::exchange(overflow_, true)) return;
            return wake_();  // also an owner that waits for its client
        }
        bytes_ += bytes;
        if (!joined(e)) {
            bytes_ += sizeof(event);
            events_.push_back(std::move(e));
        }
        if (std::exchange(woken_, true)) return;
        wake_();
    }

    bool overflowed() {
        std::lock_guard lock(mutex_);
        return overflow_;
    }

    // Everything since the last take; `overflow`: something was dropped.
    void take(std::vector<event>& out, bool& overflow) {
        out.clear();
        std::lock_guard lock(mutex_);
        out.swap(events_);
        bytes_ = 0;
        woken_ = false;
        overflow = overflow_;
    }

    void detach() {
        std::function<void()> gone;  // may hold the last reference to the owner: released outside the lock
        std::lock_guard lock(mutex_);
        gone.swap(wake_);
        events_.clear();
        bytes_ = 0;
    }

private:
    // Appends the text to the last event of the same choice, if that still waits. Looks back over a few choices only.
    bool joined(event& e) {
        constexpr std::size_t choices = 16;
        auto* delta = std::get_if<text_delta>(&e.what);
        if (!delta) return false;
        for (std::size_t back = 1; back <= events_.size() && back <= choices; ++back) {
            auto& before = events_[events_.size() - back];
            auto* earlier = std::get_if<text_delta>(&before.what);
            if (!earlier) return false;
            if (before.part != e.part || earlier->choice != delta->choice) continue;
            if (earlier->finish != finish_reason::none) return false;
            earlier->text += delta->text;
            earlier->finish = delta->finish;
            std::move(delta->tokens.begin(), delta->tokens.end(), std::back_inserter(earlier->tokens));
            std::move(delta->prompt.begin(), delta->prompt.end(), std::back_inserter(earlier->prompt));
            return true;
        }
        return false;
    }

    std::mutex mutex_;
    std::vector<event> events_;
    std::size_t bytes_ = 0;
    const std::size_t bytes_max_;
    bool woken_ = false;
    bool overflow_ = false;
    std::function<void()> wake_;
};

// The node's end of it, one for each prompt of an exchange.
class mailbox_sink final : public client_sink {
public:
    mailbox_sink(std::shared_ptr<mailbox> box, std::size_t part, bool keep_tokens)
        : box_(std::move(box)), part_(part), keep_tokens_(keep_tokens) {}

    void on(const accepted& e) override { box_->push({part_, e}, 0, true); }
    void on(const rejected& e) override { box_->push({part_, e}, 0, true); }
    void on(const finished& e) override { box_->push({part_, e}, 0, true); }
    void on(const failed& e) override { box_->push({part_, e}, 0, true); }
    void on(const text_delta& e) override {
        // Nothing to write: a token whose text is still withheld, and nobody asked for tokens.
        if (!keep_tokens_ && e.text.empty() && e.finish == finish_reason::none) return;
        text_delta kept;
        kept.request = e.request;
        kept.choice = e.choice;
        kept.text = e.text;
        kept.finish = e.finish;
        std::size_t bytes = e.text.size();
        if (keep_tokens_) {
            kept.tokens = e.tokens;
            kept.prompt = e.prompt;
            bytes += bytes_of(e.tokens) + bytes_of(e.prompt);
        }
        box_->push({part_, std::move(kept)}, bytes, false);
    }

private:
    static std::size_t bytes_of(const std::vector<token_report>& tokens) {
        std::size_t bytes = 0;
        for (const auto& t : tokens) bytes += sizeof t + t.bytes.size() + t.top.size() * (sizeof(token_logprob) + 48);
        return bytes;
    }

    const std::shared_ptr<mailbox> box_;
    const std::size_t part_;
    const bool keep_tokens_;
};

}  // namespace fermata::http

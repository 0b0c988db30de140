// A gateway that exists before its node does: a server can listen while the model is still loading, and says so.
//
// Until open() every question is answered at once: not accepting, 503 with `Retry-After`. From open() on everything goes to the
// node, which must outlive this object. open() may be called once, from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "frontend/client_errors.hpp"
#include "frontend/gateway.hpp"

namespace fermata {

class late_gateway final : public gateway {
public:
    // `card`: what can be said of the model before it is loaded.
    explicit late_gateway(model_card card) : card_(std::move(card)) {}

    void open(gateway& node) { node_.store(&node, std::memory_order_release); }

    request_id next_request() override {
        auto* const n = node();
        return n ? n->next_request() : request_id(0);  // nodes number from 1
    }
    void submit_request(submit request, std::shared_ptr<client_sink> sink) override {
        // A request numbered before the node was there has no number of the node's.
        auto* const n = request.request == request_id(0) ? nullptr : node();
        if (n) return n->submit_request(std::move(request), std::move(sink));
        sink->on(rejected{request.request, loading()});
    }
    void cancel(request_id request) override {
        if (auto* const n = node()) n->cancel(request);
    }
    void tokenize(tokenize_text text, std::function<void(tokenized)> done) override {
        if (auto* const n = node()) return n->tokenize(std::move(text), std::move(done));
        done(tokenized{{}, loading()});
    }
    void detokenize(detokenize_tokens tokens, std::function<void(detokenized)> done) override {
        if (auto* const n = node()) return n->detokenize(std::move(tokens), std::move(done));
        done(detokenized{{}, loading()});
    }
    const model_card& model() const override {
        auto* const n = node();
        return n ? n->model() : card_;
    }
    health_report health() const override {
        auto* const n = node();
        return n ? n->health() : health_report{false, false, "the model is loading"};
    }
    std::shared_ptr<const telemetry> numbers() const override {
        auto* const n = node();
        return n ? n->numbers() : empty_;
    }

private:
    gateway* node() const { return node_.load(std::memory_order_acquire); }
    static client_error loading() { return retry_after(unavailable("the model is loading", "loading"), 1); }

    std::atomic<gateway*> node_{nullptr};
    const model_card card_;
    const std::shared_ptr<const telemetry> empty_ = std::make_shared<telemetry>();
};

}  // namespace fermata

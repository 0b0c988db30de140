// How everything that speaks for clients (HTTP routes, the terminal programs, embedding code) reaches a node without
// knowing actors. The node implements it; tests implement it with a script.
//
// Threads: every call may come from any thread and returns at once. Sinks are called from the node's threads, one
// call at a time for one request, in order: accepted | rejected, text_delta*, finished | failed. A sink must not
// block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "messages/ingress.hpp"
#include "messages/telemetry.hpp"

namespace fermata {

class client_sink {
public:
    virtual ~client_sink() = default;
    virtual void on(const accepted&) = 0;
    virtual void on(const rejected&) = 0;
    virtual void on(const text_delta&) = 0;
    virtual void on(const finished&) = 0;
    virtual void on(const failed&) = 0;
};

// What clients may know of the resident model.
struct model_card {
    std::string id;                     // --model-id
    std::string root;                   // the file's name
    std::uint32_t max_model_len = 0;    // tokens of one request
    std::int64_t created_s = 0;         // Unix time of the node's start
    std::uint32_t vocabulary = 0;
    bool has_text = true;               // false: no tokenizer, only token prompts
    bool has_chat_template = true;
};

struct health_report {
    bool accepting = false;  // /health
    bool ready = false;      // /ready
    std::string reason;      // when not
};

class gateway {
public:
    virtual ~gateway() = default;
    virtual request_id next_request() = 0;  // a fresh id
    virtual void submit_request(submit request, std::shared_ptr<client_sink> sink) = 0;
    // Idempotent; after it the sink may still get what was under way.
    virtual void cancel(request_id request) = 0;
    virtual void tokenize(tokenize_text text, std::function<void(tokenized)> done) = 0;
    virtual void detokenize(detokenize_tokens tokens, std::function<void(detokenized)> done) = 0;
    virtual const model_card& model() const = 0;
    virtual health_report health() const = 0;  // reads atomics only
    virtual std::shared_ptr<const telemetry> numbers() const = 0;
};

}  // namespace fermata

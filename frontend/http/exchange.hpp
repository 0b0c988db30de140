// One request being answered over time: a generation, or a question to the text layer. Lives on its connection's strand.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/gateway.hpp"
#include "frontend/http/head.hpp"
#include "frontend/http/mailbox.hpp"
#include "frontend/http/metrics.hpp"
#include "frontend/http/options.hpp"

namespace fermata::http {

// What one request comes to, for the request log.
struct request_record {
    std::string id;          // chatcmpl-...
    std::string request_id;  // of the client, where it gave one
    std::string method, path;
    unsigned status = 0;     // 499: the client left first
    bool stream = false;
    std::string error;       // code or type of what went wrong, also after a stream's headers
    std::string finish;      // of choice 0
    bool has_usage = false;
    request_usage usage;
    std::chrono::steady_clock::time_point begun{};
};

std::string to_json(const request_record& record, std::chrono::steady_clock::time_point now);

// What an exchange may do with its connection. Calls come on the strand; nothing here calls back.
class responder {
public:
    virtual ~responder() = default;
    virtual void reply(unsigned status, std::string_view content_type, std::string_view body, header_list more = {}) = 0;
    virtual void begin_stream(header_list more) = 0;
    virtual void stream(std::string_view bytes) = 0;
    virtual void end_stream() = 0;
    virtual bool congested() const = 0;                      // much is written and not taken; on_events() follows when it is
    virtual void slow_reader() = 0;                          // give the connection up
    virtual std::function<void()> waker() = 0;               // runs on_events() on the strand; keeps the connection alive
    virtual void in_background(std::function<void()> work) = 0;  // runs it beside the strands, then on_events()
};

class exchange {
public:
    virtual ~exchange() = default;
    virtual void start() = 0;
    virtual void on_events() = 0;
    virtual void left() = 0;       // the client is gone, or the server stops: cancel what is under way
    // Whether the end of file on the request side means that the client left (else it may just wait for the answer).
    virtual bool needs_client() const = 0;
    request_record record;
};

// What all connections share.
struct service {
    server_options options;
    gateway& node;
    http_numbers numbers;
    std::atomic<std::size_t> cut_short{0};  // answers that stop() ended
    std::string salt;  // makes answer ids differ between two lives of a node
    service(server_options o, gateway& n) : options(std::move(o)), node(n) {}
};

client_error internal_error();  // 500, for what can only be a lack of memory or a fault of ours
void reply_error(responder& to, const client_error& error, header_list more = {});

std::unique_ptr<exchange> make_generation(service& shared, responder& to, openai::api_kind api, std::string body,
                                          const request_head& head);
std::unique_ptr<exchange> make_tokenize(service& shared, responder& to, std::string body);
std::unique_ptr<exchange> make_detokenize(service& shared, responder& to, std::string body);

}  // namespace fermata::http

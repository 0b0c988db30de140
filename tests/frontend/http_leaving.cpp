// Clients that leave, don't read, or take their time.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "fake_gateway.hpp"
#include "frontend/http/server.hpp"
#include "raw_client.hpp"

using namespace fermata;
using namespace fermata::testing;
using namespace std::chrono_literals;
using json = nlohmann::json;

namespace {

struct running {
    explicit running(http::server_options o = {}) : server(local(std::move(o)), node) { server.start(); }
    static http::server_options local(http::server_options o) {
        o.port = 0;
        return o;
    }
    std::string post(bool stream) const {
        return request_text("POST", "/v1/chat/completions",
                            std::string(R"({"messages":[{"role":"user","content":"hi"}],"n":2,"stream":)") + (stream ? "true}" : "false}"));
    }
    fake_gateway node;
    http::server server;
};

enum class how { end_of_file, close, reset };

void leave(raw_client& c, how way) {
    if (way == how::end_of_file) c.half_close();
    if (way == how::close) c.close();
    if (way == how::reset) c.reset();
}

template <class Condition>
void until(Condition condition) {
    auto const limit = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("never happened");
        std::this_thread::yield();
    }
}

}  // namespace

TEST_CASE("a client that leaves cancels its request, whatever the phase") {  // faults 83, 85, 91
    running s;
    std::size_t i = 0;
    for (bool stream : {false, true})
        for (how way : {how::end_of_file, how::close, how::reset})
            for (int phase = 0; phase < 3; ++phase) {
                CAPTURE(stream);
                CAPTURE(phase);
                raw_client c(s.server.port());
                c.send(s.post(stream));
                auto const call = s.node.wait_submit(i++);
                if (phase >= 1) accept(call);                  // queued, or in prefill
                if (phase >= 1 && stream) c.read_until("\r\n\r\n");
                if (phase >= 2) say(call, "some text", 1);     // decoding
                if (phase >= 2 && stream) c.read_until("some text");
                leave(c, way);
                s.node.wait_cancel(call.request.request);
                say(call, "nobody hears");
                done(call);
                until([&] { return s.server.numbers().connections.load() == 0; });
                CHECK(s.node.cancels(call.request.request) == 1);  // once
            }
    CHECK(s.server.numbers().clients_left.load() == i);
}

TEST_CASE("a cancel names the leaver's request only") {  // fault 82
    running s;
    raw_client stays(s.server.port()), leaves(s.server.port());
    stays.send(s.post(true));
    auto const first = s.node.wait_submit(0);
    leaves.send(s.post(true));
    auto const second = s.node.wait_submit(1);
    leaves.reset();
    s.node.wait_cancel(second.request.request);
    accept(first);
    say(first, "on", 0, finish_reason::stop);
    say(first, "on", 1, finish_reason::stop);
    done(first);
    CHECK(stays.read_response().body.ends_with("[DONE]\n\n"));
    CHECK(s.node.cancels(first.request.request) == 0);
}

TEST_CASE("a leaver with pipelined requests behind: none of them starts") {
    http::server_options o;
    o.pipelined_bytes_max = 1000;
    running s(o);
    raw_client c(s.server.port());
    c.send(s.post(true));
    auto const call = s.node.wait_submit();
    SUBCASE("few") { c.send(s.post(true)); }
    SUBCASE("more than is read ahead: the end of file lies behind unread bytes") {
        c.send(request_text("POST", "/v1/completions", std::string(20'000, 'x')));
    }
    c.half_close();
    s.node.wait_cancel(call.request.request);
    CHECK(c.at_end());
    CHECK(s.node.submits() == 1);
}

TEST_CASE("a client that leaves while its large body is parsed") {
    running s;
    {
        raw_client c(s.server.port());
        std::string body = R"({"messages":[{"role":"user","content":")" + std::string(3'000'000, 'x') + R"("}]})";
        c.send(request_text("POST", "/v1/chat/completions", body));
        c.reset();
    }
    until([&] { return s.server.numbers().connections_total.load() == 1 && s.server.numbers().connections.load() == 0; });
    // Either it was cancelled before it was submitted, or after.
    if (s.node.submits() == 1) s.node.wait_cancel(s.node.wait_submit().request.request);
}

TEST_CASE("a stream whose client doesn't read is given up at a bound") {
    http::server_options o;
    o.outbox_bytes_max = 100'000;
    running s(o);
    raw_client c(s.server.port(), 4096);
    c.send(s.post(true));
    auto const call = s.node.wait_submit();
    accept(call);
    std::string const text(10'000, 'y');
    until([&] {
        say(call, text);
        return s.node.cancels(call.request.request) == 1;
    });
    CHECK(s.server.numbers().slow_readers.load() == 1);
    until([&] { return s.server.numbers().connections.load() == 0; });
}

TEST_CASE("a client that is behind gets everything, joined into fewer events") {
    http::server_options o;
    o.outbox_bytes_max = 200'000;
    running s(o);
    raw_client c(s.server.port(), 4096);
    c.send(request_text("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"n":2,"stream":true})"));
    auto const call = s.node.wait_submit();
    accept(call);
    // As events of their own these would be some 9 MB: far beyond the limit. As text they are 160 kB.
    for (int i = 0; i < 20'000; ++i) {
        say(call, "abcd", 0);
        say(call, "wxyz", 1);
    }
    say(call, "", 0, finish_reason::stop);
    say(call, "", 1, finish_reason::length);
    done(call);
    auto const r = c.read_response();
    CHECK(s.server.numbers().slow_readers.load() == 0);
    std::size_t text[2] = {0, 0}, events = 0, at = 0;
    std::string body = r.body;
    while ((at = body.find("data: {", at)) != std::string::npos) {
        auto const e = json::parse(body.substr(at + 6, body.find("\n\n", at) - at - 6));
        auto const& choice = e["choices"][0];
        if (choice["delta"].contains("content")) text[choice["index"].get<std::size_t>()] += choice["delta"]["content"].get<std::string>().size();
        ++events;
        ++at;
    }
    CHECK(text[0] == 80'000);
    CHECK(text[1] == 80'000);
    CHECK(events < 20'000);
    CHECK(body.ends_with("data: [DONE]\n\n"));
}

TEST_CASE("silence in a stream is filled with comments from acceptance on") {  // fault 92
    http::server_options o;
    o.heartbeat = 5ms;
    running s(o);
    raw_client c(s.server.port());
    c.send(s.post(true));
    auto const call = s.node.wait_submit();
    accept(call);
    c.read_until(": keep-alive\n\n");  // queued
    c.read_until(": keep-alive\n\n");
    say(call, "text", 0, finish_reason::stop);
    c.read_until("\"text\"");
    c.read_until(": keep-alive\n\n");  // between tokens
    say(call, "more", 1, finish_reason::stop);
    done(call);
    CHECK(c.read_until("0\r\n\r\n").find("[DONE]") != std::string::npos);
}

TEST_CASE("requests that arrive too slowly are ended") {
    http::server_options o;
    o.header_timeout = 20ms;
    o.body_timeout = 20ms;
    running s(o);
    SUBCASE("header") {
        raw_client c(s.server.port());
        c.send("GET /health HTTP/1.1\r\nHo");
        CHECK(c.read_response().status == 408);
        CHECK(c.at_end());
    }
    SUBCASE("body") {
        raw_client c(s.server.port());
        c.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{");
        auto const r = c.read_response();
        CHECK(r.status == 408);
        CHECK(json::parse(r.body)["error"]["code"] == "request_timeout");
    }
    CHECK(s.server.numbers().timeouts.load() == 1);
}

TEST_CASE("an idle connection is closed after its time") {
    http::server_options o;
    o.idle_timeout = 10ms;
    running s(o);
    raw_client fresh(s.server.port()), used(s.server.port());
    CHECK(fresh.at_end());
    raw_client again(s.server.port());
    again.send(request_text("GET", "/health"));
    CHECK(again.read_response().status == 200);
    CHECK(again.at_end());
}

TEST_CASE("uploads of all clients together stay within one limit") {
    http::server_options o;
    o.bodies_bytes_max = 50'000;
    running s(o);
    raw_client c(s.server.port());
    c.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n");
    c.send(std::string(60'000, 'x'));
    auto const r = c.read_response();
    CHECK(r.status == 503);
    CHECK(r.has("Retry-After"));
    c.close();
    // The room comes back.
    s.node.behaviour = answering("ok");
    for (int i = 0; i < 3; ++i) {
        raw_client again(s.server.port());
        again.send(request_text("POST", "/v1/completions", R"({"prompt":")" + std::string(40'000, 'x') + "\"}"));
        CHECK(again.read_response().status == 200);
    }
}

TEST_CASE("one log line a request, with numbers and never with text") {
    std::mutex mutex;
    std::vector<std::string> lines;
    http::server_options o;
    o.request_log = [&](std::string_view line) {
        std::lock_guard lock(mutex);
        lines.emplace_back(line);
    };
    running s(o);
    auto const count = [&] {
        std::lock_guard lock(mutex);
        return lines.size();
    };
    {
        raw_client c(s.server.port());
        c.send(request_text("POST", "/v1/completions", R"({"prompt":"secret words"})", "X-Request-Id: abc-1\r\n"));
        auto const call = s.node.wait_submit(0);
        accept(call);
        say(call, "private answer", 0, finish_reason::stop);
        done(call);
        auto const r = c.read_response();
        CHECK(r.has("X-Request-Id: abc-1"));
        c.send(request_text("POST", "/v1/completions", R"({"prompt":"secret words","n":"x"})"));
        CHECK(c.read_response().status == 400);
        c.send(s.post(true));
        auto const left = s.node.wait_submit(1);
        accept(left);
        c.read_until("\r\n\r\n");
    }
    until([&] { return count() == 3; });
    auto const first = json::parse(lines[0]);
    CHECK(first["status"] == 200);
    CHECK(first["request_id"] == "abc-1");
    CHECK(first["path"] == "/v1/completions");
    CHECK(first["prompt_tokens"] == 3);
    CHECK(first["cached_tokens"] == 1);
    CHECK(first["completion_tokens"] == 2);
    CHECK(first["finish_reason"] == "stop");
    CHECK(first["source"] == "device");
    CHECK(first["ttft_ms"] == 1.5);
    CHECK(first["id"].get<std::string>().starts_with("cmpl-"));
    CHECK(json::parse(lines[1])["status"] == 400);
    CHECK(json::parse(lines[1])["error"] == "invalid_type");
    CHECK(json::parse(lines[2])["status"] == 499);
    CHECK(json::parse(lines[2])["error"] == "client_left");
    for (auto const& line : lines) {
        CHECK(line.find("secret") == std::string::npos);
        CHECK(line.find("private") == std::string::npos);
    }
    s.server.stop(0ms);
}

TEST_CASE("a large answer may be taken slowly: a connection is idle when its answer is out, not before") {
    http::server_options o;
    o.idle_timeout = 10ms;
    running s(o);
    raw_client slow(s.server.port(), 4096);
    slow.send(s.post(false));
    auto const call = s.node.wait_submit();
    accept(call);
    say(call, std::string(12'000'000, 'y'), 0, finish_reason::stop);
    say(call, "", 1, finish_reason::stop);
    done(call);
    for (int i = 0; i < 5; ++i) CHECK(raw_client(s.server.port()).at_end());  // five idle times, one after the other
    CHECK(slow.read_response().body.size() > 12'000'000);
    CHECK(slow.at_end());  // now it was idle
}

TEST_CASE("an end of file behind megabytes of pipelined requests is seen") {
    running s;
    raw_client c(s.server.port());
    c.send(s.post(false));
    auto const call = s.node.wait_submit();
    auto const behind = request_text("POST", "/v1/completions", std::string(12'000'000, 'x'));
    SUBCASE("its sending side") {
        c.send(behind);
        c.half_close();
    }
    SUBCASE("all of it") {
        c.send(behind);
        c.close();
    }
    s.node.wait_cancel(call.request.request);
    until([&] { return s.server.numbers().connections.load() == 0; });
    CHECK(s.node.submits() == 1);
}

TEST_CASE("a client that pipelines without end is cut off") {
    http::server_options o;
    o.body_bytes_max = 100'000;
    running s(o);
    raw_client c(s.server.port());
    c.send(s.post(false));
    auto const call = s.node.wait_submit();
    try {
        for (int i = 0; i < 1'000; ++i) c.send(std::string(100'000, 'x'));
    } catch (std::runtime_error const&) {  // cut off while it sent
    }
    s.node.wait_cancel(call.request.request);
}

TEST_CASE("what is wrong with a question to the text layer stands in the log") {
    std::mutex mutex;
    std::string lines;
    http::server_options o;
    o.request_log = [&](std::string_view line) {
        std::lock_guard lock(mutex);
        lines.append(line);
    };
    running s(o);
    {
        raw_client c(s.server.port());
        c.send(request_text("POST", "/tokenize", R"({"prompt":5})"));
        CHECK(c.read_response().status == 400);
        // The record is the strand's: clients that leave while it is parsed are no race (seen by ThreadSanitizer).
        for (int i = 0; i < 20; ++i) {
            raw_client leaver(s.server.port());
            leaver.send(request_text("POST", "/tokenize", R"({"prompt":5})"));
            leaver.reset();
        }
    }
    until([&] { return s.server.numbers().connections.load() == 0; });
    std::lock_guard lock(mutex);
    CHECK(lines.find("\"error\":\"invalid_type\"") != std::string::npos);
}

// The HTTP server over loopback against a node moved by hand: routes, keep-alive, pipelining, limits, invalid HTTP.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fake_gateway.hpp"
#include "frontend/http/server.hpp"
#include "frontend/late_gateway.hpp"
#include "raw_client.hpp"

using namespace fermata;
using namespace fermata::testing;
using json = nlohmann::json;

namespace {

http::server_options small_options() {
    http::server_options o;
    o.port = 0;
    return o;
}

struct running {
    explicit running(http::server_options o = small_options()) : server(std::move(o), node) { server.start(); }
    fake_gateway node;
    http::server server;
    std::uint16_t port() const { return server.port(); }
    raw_response ask(std::string const& text) {
        raw_client c(port());
        c.send(text);
        return c.read_response(text.starts_with("HEAD"));
    }
};

std::string const chat = R"({"messages":[{"role":"user","content":"hi"}]})";
std::string const chat_stream = R"({"messages":[{"role":"user","content":"hi"}],"stream":true})";

std::string post(std::string_view path, std::string_view body, std::string_view more = {}) {
    return request_text("POST", path, body, more);
}

}  // namespace

TEST_CASE("fixed routes") {
    running s;
    SUBCASE("health follows the node") {
        CHECK(s.ask(request_text("GET", "/health")).status == 200);
        s.node.state = {false, false, "draining"};
        auto const r = s.ask(request_text("GET", "/health"));
        CHECK(r.status == 503);
        CHECK(json::parse(r.body)["reason"] == "draining");
        s.node.state = {true, false, "the queue is full"};
        CHECK(s.ask(request_text("GET", "/health")).status == 200);
        CHECK(s.ask(request_text("GET", "/ready")).status == 503);
    }
    SUBCASE("models") {
        auto const r = s.ask(request_text("GET", "/v1/models"));
        auto const body = json::parse(r.body);
        CHECK(body["object"] == "list");
        CHECK(body["data"][0]["id"] == "tiny");
        CHECK(body["data"][0]["object"] == "model");
        CHECK(body["data"][0]["owned_by"] == "fermata");
        CHECK(body["data"][0]["root"] == "tiny.gguf");
        CHECK(body["data"][0]["max_model_len"] == 4096);
        CHECK(json::parse(s.ask(request_text("GET", "/v1/models/tiny")).body)["id"] == "tiny");
        CHECK(s.ask(request_text("GET", "/v1/models/other")).status == 404);
    }
    SUBCASE("a model id with a slash, written plainly or encoded") {
        s.node.card.id = "org/tiny";
        CHECK(s.ask(request_text("GET", "/v1/models/org/tiny")).status == 200);
        CHECK(s.ask(request_text("GET", "/v1/models/org%2Ftiny")).status == 200);
    }
    SUBCASE("unknown, not built, wrong method") {
        auto const unknown = s.ask(request_text("GET", "/nothing"));
        CHECK(unknown.status == 404);
        CHECK(json::parse(unknown.body)["error"]["type"] == "invalid_request_error");
        for (auto const* path : {"/", "/fermata/cache", "/fermata/evictions", "/fermata/plan", "/fermata/explain/7", "/v1/responses/r1", "/fermata", "/fermata/x"})
            CHECK_MESSAGE(s.ask(request_text("GET", path)).status == 501, path);
        for (auto const* path : {"/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/fermata/sessions/a/hold"})
            CHECK_MESSAGE(s.ask(post(path, "{}")).status == 501, path);
        CHECK(s.ask(request_text("GET", "/version")).status == 404);
        CHECK(s.ask(request_text("GET", "/v1/loads?include=all")).status == 404);
        auto const wrong = s.ask(request_text("GET", "/v1/chat/completions"));
        CHECK(wrong.status == 405);
        CHECK(wrong.has("Allow: POST, OPTIONS"));
        CHECK(s.ask(post("/health", "x")).status == 405);
        auto const options = s.ask(request_text("OPTIONS", "/v1/chat/completions"));
        CHECK(options.status == 204);
        CHECK(options.has("Allow: POST, OPTIONS"));
        CHECK_FALSE(options.has("Transfer-Encoding"));
        auto const head = s.ask(request_text("HEAD", "/v1/models"));
        CHECK(head.status == 200);
        CHECK(head.has("Content-Length: "));
        CHECK(s.ask(request_text("GET", "http://host/health")).status == 200);
        CHECK(s.ask(request_text("GET", "/health?x=1")).status == 200);
        CHECK(s.ask(request_text("GET", "/health/")).status == 200);
    }
    SUBCASE("tokenize and detokenize") {
        auto body = json::parse(s.ask(post("/tokenize", R"({"prompt":"ab","add_special_tokens":false})")).body);
        CHECK(body == json::parse(R"({"count":2,"max_model_len":4096,"tokens":[97,98],"token_strs":null})"));
        body = json::parse(s.ask(post("/tokenize", R"({"prompt":"ab","return_token_strs":true})")).body);
        CHECK(body["tokens"] == json::parse("[1,97,98]"));
        CHECK(body["token_strs"] == json::parse(R"(["\u0001","a","b"])"));
        body = json::parse(s.ask(post("/detokenize", R"({"tokens":[104,105]})")).body);
        CHECK(body == json::parse(R"({"prompt":"hi"})"));
        CHECK(s.ask(post("/tokenize", R"({"messages":[{"role":"user","content":"x"}],"add_generation_prompt":false})")).status == 200);
        CHECK(s.node.last_tokenize.messages_json == R"([{"role":"user","content":"x"}])");
        CHECK(s.node.last_tokenize.template_arguments_json == R"({"add_generation_prompt":false})");
        CHECK(s.ask(post("/tokenize", "{}")).status == 400);
        CHECK(s.ask(post("/detokenize", R"({"tokens":[-1]})")).status == 400);
    }
}

TEST_CASE("one answer without a stream") {
    running s;
    s.node.behaviour = answering("hello");
    auto const r = s.ask(post("/v1/chat/completions", chat));
    REQUIRE(r.status == 200);
    CHECK(r.has("Content-Type: application/json"));
    CHECK(r.has("X-Request-Id: chatcmpl-"));
    auto const body = json::parse(r.body);
    CHECK(body["choices"][0]["message"]["content"] == "hello");
    CHECK(body["choices"][0]["finish_reason"] == "stop");
    CHECK(body["usage"]["total_tokens"] == 5);
    CHECK(body["fermata"]["reused_tokens"] == 1);
    CHECK(s.node.cancels() == 0);
}

TEST_CASE("a stream in order, with its end") {
    running s;
    raw_client c(s.port());
    c.send(post("/v1/chat/completions", chat_stream));
    auto const call = s.node.wait_submit();
    accept(call);
    auto const head = c.read_until("\r\n\r\n");  // before any text: headers come with acceptance (fault 91)
    CHECK(head.find("text/event-stream") != std::string::npos);
    CHECK(head.find("Transfer-Encoding: chunked") != std::string::npos);
    say(call, "a");
    CHECK(c.read_until("\"content\":\"a\"").find("\"role\":\"assistant\"") != std::string::npos);
    say(call, "b");
    c.read_until("\"content\":\"b\"");
    say(call, "", 0, finish_reason::length);
    done(call);
    auto const end = c.read_until("0\r\n\r\n");
    CHECK(end.find("\"finish_reason\":\"length\"") != std::string::npos);
    CHECK(end.find("\"fermata\":{") != std::string::npos);
    CHECK(end.find("data: [DONE]\n\n") != std::string::npos);
    // The connection goes on.
    c.send(request_text("GET", "/health"));
    CHECK(c.read_response().status == 200);
}

TEST_CASE("refusals before acceptance are plain answers, also for streams") {
    running s;
    s.node.behaviour = [](fake_gateway::call const& c) {
        rejected r;
        r.request = c.request.request;
        r.error = {429, "rate_limit_error", "queue_full", "", "the queue is full", 7};
        c.sink->on(r);
    };
    auto const r = s.ask(post("/v1/chat/completions", chat_stream));
    CHECK(r.status == 429);
    CHECK(r.has("Retry-After: 7"));
    CHECK(json::parse(r.body)["error"]["code"] == "queue_full");
    CHECK(s.node.cancels() == 0);
}

TEST_CASE("a failure after the headers is one event and the end, without [DONE]") {
    running s;
    raw_client c(s.port());
    c.send(post("/v1/chat/completions", chat_stream));
    auto const call = s.node.wait_submit();
    accept(call);
    say(call, "par");
    failed f;
    f.request = call.request.request;
    f.error = {500, "server_error", "capacity", "", "no room", 0};
    call.sink->on(f);
    auto const r = c.read_response();
    CHECK(r.status == 200);
    CHECK(r.body.ends_with("data: {\"error\":{\"message\":\"no room\",\"type\":\"server_error\",\"param\":null,\"code\":\"capacity\"}}\n\n"));
    CHECK(r.body.find("[DONE]") == std::string::npos);
    CHECK(s.node.cancels() == 0);
}

TEST_CASE("a failure without a stream is a plain error") {
    running s;
    s.node.behaviour = [](fake_gateway::call const& c) {
        accept(c);
        failed f;
        f.request = c.request.request;
        f.error = {503, "server_error", "queue_timeout", "", "waited too long", 0};
        c.sink->on(f);
    };
    auto const r = s.ask(post("/v1/completions", R"({"prompt":"x"})"));
    CHECK(r.status == 503);
    CHECK(json::parse(r.body)["error"]["code"] == "queue_timeout");
}

TEST_CASE("several prompts: one answer, all accepted first, the others cancelled when one is refused") {
    running s;
    SUBCASE("answers are numbered over all prompts") {
        s.node.behaviour = answering("t");
        auto const body = json::parse(s.ask(post("/v1/completions", R"({"prompt":["a","b"],"n":2})")).body);
        REQUIRE(body["choices"].size() == 4);
        CHECK(body["choices"][3]["index"] == 3);
        CHECK(body["usage"]["prompt_tokens"] == 6);
    }
    SUBCASE("one refused") {
        raw_client c(s.port());
        c.send(post("/v1/completions", R"({"prompt":["a","b"],"stream":true})"));
        auto const first = s.node.wait_submit(0);
        auto const second = s.node.wait_submit(1);
        accept(first);
        say(first, "early");
        rejected r;
        r.request = second.request.request;
        r.error = {400, "invalid_request_error", "context_length_exceeded", "prompt", "too long", 0};
        second.sink->on(r);
        CHECK(c.read_response().status == 400);
        s.node.wait_cancel(first.request.request);
        CHECK(s.node.cancels(second.request.request) == 0);
    }
}

TEST_CASE("pipelined requests are answered in order") {
    running s;
    raw_client c(s.port());
    c.send(post("/v1/completions", R"({"prompt":"one"})") + request_text("GET", "/health") +
           post("/v1/completions", R"({"prompt":"two"})"));
    auto const first = s.node.wait_submit(0);
    CHECK(s.node.submits() == 1);
    accept(first);
    say(first, "1", 0, finish_reason::stop);
    done(first);
    CHECK(json::parse(c.read_response().body)["choices"][0]["text"] == "1");
    CHECK(json::parse(c.read_response().body)["status"] == "ok");
    auto const second = s.node.wait_submit(1);
    CHECK(second.request.prompt_text == "two");
    accept(second);
    say(second, "2", 0, finish_reason::stop);
    done(second);
    CHECK(json::parse(c.read_response().body)["choices"][0]["text"] == "2");
}

TEST_CASE("bodies: chunked, expected, byte by byte") {
    running s;
    s.node.behaviour = answering("ok");
    SUBCASE("chunked") {
        raw_client c(s.port());
        c.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
        c.send("5;ext=1\r\n{\"pro\r\n");
        c.send("a\r\nmpt\":\"abc\"\r\n");
        c.send("1\r\n}\r\n0\r\n\r\n");
        CHECK(c.read_response().status == 200);
        CHECK(s.node.wait_submit().request.prompt_text == "abc");
    }
    SUBCASE("Expect: 100-continue") {
        raw_client c(s.port());
        std::string const body = R"({"prompt":"abc"})";
        c.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
        CHECK(c.read_response().status == 100);
        c.send(body);
        CHECK(c.read_response().status == 200);
    }
    SUBCASE("an expectation that would be refused anyway gets the refusal") {
        raw_client c(s.port());
        c.send("POST /nothing HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n");
        auto const r = c.read_response();
        CHECK(r.status == 404);
        CHECK(r.has("Connection: close"));
    }
    SUBCASE("unknown expectation") {
        CHECK(s.ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: tea\r\nContent-Length: 2\r\n\r\n{}").status == 417);
    }
    SUBCASE("byte by byte") {
        raw_client c(s.port());
        for (char b : post("/v1/completions", R"({"prompt":"abc"})")) c.send({&b, 1});
        CHECK(c.read_response().status == 200);
    }
}

TEST_CASE("what is too large is refused before it is kept") {
    auto o = small_options();
    o.body_bytes_max = 1000;
    o.header_bytes_max = 2000;
    running s(o);
    SUBCASE("announced") {
        raw_client c(s.port());
        c.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999\r\n\r\n");
        auto const r = c.read_response();
        CHECK(r.status == 413);
        CHECK(json::parse(r.body)["error"]["code"] == "body_too_large");
    }
    SUBCASE("sent, and the client reads its answer only after it") {
        raw_client c(s.port());
        c.send(post("/v1/completions", std::string(500'000, 'x')));
        CHECK(c.read_response().status == 413);
    }
    SUBCASE("in chunks") {
        raw_client c(s.port());
        c.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
        std::string const chunk = "1f4\r\n" + std::string(500, 'x') + "\r\n";
        c.send(chunk + chunk + chunk);
        CHECK(c.read_response().status == 413);
    }
    SUBCASE("header") {
        CHECK(s.ask(request_text("GET", "/health", {}, "X: " + std::string(4000, 'x') + "\r\n")).status == 431);
    }
    SUBCASE("a chunk header without an end") {
        raw_client c(s.port());
        c.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(5000, 'x'));
        CHECK(c.read_response().status == 431);
    }
    CHECK(s.node.submits() == 0);
}

TEST_CASE("invalid HTTP") {
    running s;
    for (std::string const text : {"nonsense\r\n\r\n", "GET /health HTTP/3.0\r\nHost: t\r\n\r\n", "GET  HTTP/1.1\r\n\r\n",
                                   "GET /health HTTP/1.1\r\nBad Header: x\r\n\r\n", "GET health HTTP/1.1\r\nHost: t\r\n\r\n",
                                   "GET /%zz HTTP/1.1\r\nHost: t\r\n\r\n", "GET /health HTTP/1.1\r\n\r\n",
                                   "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n",
                                   "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                                   "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                                   "POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
        auto const r = s.ask(text);
        CHECK_MESSAGE(r.status == 400, text);
        CHECK_MESSAGE(json::parse(r.body)["error"]["type"] == "invalid_request_error", text);
    }
    CHECK(s.ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n").status == 501);
    CHECK(s.ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx").status == 415);
}

TEST_CASE("keep-alive follows the client") {
    running s;
    SUBCASE("several requests on one connection, also after a refusal") {
        raw_client c(s.port());
        for (int i = 0; i < 3; ++i) {
            c.send(post("/nothing", "{}"));
            CHECK(c.read_response().status == 404);
            c.send("\r\n" + request_text("GET", "/health"));
            CHECK(c.read_response().status == 200);
        }
    }
    SUBCASE("Connection: close") {
        raw_client c(s.port());
        c.send(request_text("GET", "/health", {}, "Connection: close\r\n"));
        CHECK(c.read_response().has("Connection: close"));
        CHECK(c.at_end());
    }
    SUBCASE("HTTP/1.0: closed, a stream without chunks") {
        s.node.behaviour = answering("hey");
        raw_client c(s.port());
        c.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " + std::to_string(chat_stream.size()) + "\r\n\r\n" + chat_stream);
        auto const all = c.read_to_end();
        CHECK(all.find("chunked") == std::string::npos);
        CHECK(all.ends_with("data: [DONE]\n\n"));
    }
    SUBCASE("half-close after quick requests: they are answered") {
        raw_client c(s.port());
        c.send(request_text("GET", "/health") + request_text("GET", "/v1/models"));
        c.half_close();
        CHECK(c.read_response().status == 200);
        CHECK(c.read_response().status == 200);
        CHECK(c.at_end());
    }
}

TEST_CASE("API keys") {
    auto o = small_options();
    o.api_keys = {"first-key", "second"};
    running s(o);
    s.node.behaviour = answering("ok");
    auto const with = [&](std::string const& header) { return s.ask(post("/v1/chat/completions", chat, header)).status; };
    CHECK(with("") == 401);
    CHECK(with("Authorization: Bearer wrong\r\n") == 401);
    CHECK(with("Authorization: Bearer first-ke\r\n") == 401);
    CHECK(with("Authorization: Bearer first-keyfirst-key\r\n") == 401);
    CHECK(with("Authorization: Basic first-key\r\n") == 401);
    CHECK(with("Authorization: Bearer first-key\r\n") == 200);
    CHECK(with("authorization: bearer second\r\n") == 200);
    CHECK(with("X-Api-Key: second\r\n") == 200);
    auto const refused = s.ask(post("/v1/chat/completions", chat));
    CHECK(refused.has("WWW-Authenticate: Bearer"));
    CHECK(json::parse(refused.body)["error"]["code"] == "invalid_api_key");
    CHECK(s.ask(request_text("GET", "/health")).status == 200);
    CHECK(s.ask(request_text("GET", "/metrics")).status == 200);
    CHECK(s.ask(request_text("GET", "/v1/models")).status == 401);
    // A large body is not read for a client without a key.
    raw_client c(s.port());
    c.send("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 30000000\r\n\r\n");
    CHECK(c.read_response().status == 401);
}

TEST_CASE("addresses that can't be used say why") {
    fake_gateway node;
    auto o = small_options();
    http::server first(o, node);
    first.start();
    o.port = first.port();
    CHECK_THROWS_WITH_AS(http::server(o, node).start(),
                         ("port " + std::to_string(o.port) + " on 127.0.0.1 is in use by another program; choose another with --port").c_str(),
                         http::listen_error);
    o.port = 0;
    o.host = "0.0.0.0";
    CHECK_THROWS_AS(http::server(o, node).start(), http::listen_error);
    o.insecure = true;
    CHECK_NOTHROW(http::server(o, node).start());
    o.host = "no such host";
    CHECK_THROWS_AS(http::server(o, node).start(), http::listen_error);
    o.host = "203.0.113.7";
    CHECK_THROWS_AS(http::server(o, node).start(), http::listen_error);
}

TEST_CASE("64 clients at once") {
    running s;
    s.node.behaviour = answering("word");
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 64; ++i)
        threads.emplace_back([&] {
            raw_client c(s.port());
            for (int k = 0; k < 3; ++k) {
                c.send(post("/v1/chat/completions", chat_stream));
                if (c.read_response().body.ends_with("data: [DONE]\n\n")) ++good;
            }
        });
    for (auto& t : threads) t.join();
    CHECK(good == 192);
}

TEST_CASE("connections beyond the limit are told so; the count comes back") {  // fault 86
    auto o = small_options();
    o.connections_max = 2;
    running s(o);
    for (int round = 0; round < 20; ++round) {
        raw_client a(s.port()), b(s.port());
        a.send(post("/v1/chat/completions", chat_stream));
        b.send(post("/v1/chat/completions", chat_stream));
        auto const call = s.node.wait_submit(static_cast<std::size_t>(2 * round));
        auto const other = s.node.wait_submit(static_cast<std::size_t>(2 * round + 1));
        if (round == 0) {
            raw_client c(s.port());
            auto const r = c.read_response();
            CHECK(r.status == 503);
            CHECK(r.has("Retry-After"));
            CHECK(c.at_end());
        }
        a.reset();
        b.close();
        s.node.wait_cancel(call.request.request);
        s.node.wait_cancel(other.request.request);
        while (s.server.numbers().connections.load() != 0) std::this_thread::yield();
    }
}

TEST_CASE("where all connections are taken an idle one makes room, a busy one stays") {
    auto o = small_options();
    o.connections_max = 3;
    running s(o);
    raw_client busy(s.port()), first(s.port()), second(s.port());
    busy.send(post("/v1/chat/completions", chat_stream));
    auto const call = s.node.wait_submit();
    for (auto* each : {&first, &second}) {
        each->send(request_text("GET", "/health"));
        CHECK(each->read_response().status == 200);
    }
    const auto healthy = [](raw_client& client) {
        try {
            client.send(request_text("GET", "/health"));
            return client.read_response().status == 200;
        } catch (const std::exception&) {  // closed
            return false;
        }
    };
    // A connection is idle once the server has seen its answer leave, which may be after the client has read it.
    std::optional<raw_client> probe;
    do probe.emplace(s.port());
    while (!healthy(*probe));
    CHECK(healthy(first) != healthy(second));
    CHECK(s.node.cancels(call.request.request) == 0);
}

TEST_CASE("more prompts than may wait are the client's error, not a full queue for ever") {
    running s;
    s.node.counts->queue_limit = 2;
    s.node.behaviour = answering("ok");
    CHECK(s.ask(post("/v1/completions", R"({"prompt":["a","b"]})")).status == 200);
    const auto r = s.ask(post("/v1/completions", R"({"prompt":["a","b","c"]})"));
    CHECK(r.status == 400);
    CHECK(json::parse(r.body)["error"]["param"] == "prompt");
    CHECK(s.node.submits() == 2);
}

TEST_CASE("a page of another site can't ask a server without keys") {
    auto const from = [](running& s, std::string const& origin) {
        return s.ask(post("/v1/chat/completions", "{", "Content-Type: text/plain\r\nOrigin: " + origin + "\r\n")).status;
    };
    running open;
    for (auto const* here : {"http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443", "http://127.1.2.3:80"})
        CHECK(from(open, here) == 400);  // the body's fault
    for (auto const* elsewhere : {"https://example.com", "null", "http://localhost.example.com", "http://127.0.0.1.example.com", "http://10.0.0.5"})
        CHECK(from(open, elsewhere) == 403);
    auto o = small_options();
    o.insecure = true;
    running anybody(o);
    CHECK(from(anybody, "https://example.com") == 400);
    o.insecure = false;
    o.api_keys = {"k"};
    running keys(o);
    CHECK(from(keys, "https://example.com") == 401);
}

TEST_CASE("a server without its node yet answers that the model is loading, then serves") {
    fake_gateway node;
    node.behaviour = answering("here");
    model_card card;
    card.id = "tiny";
    late_gateway late(card);
    http::server server(small_options(), late);
    server.start();
    raw_client c(server.port());
    auto const ask = [&](std::string const& text) {
        c.send(text);
        return c.read_response();
    };
    CHECK(ask(request_text("GET", "/health")).status == 503);
    CHECK(ask(request_text("GET", "/ready")).body.find("loading") != std::string::npos);
    CHECK(ask(request_text("GET", "/metrics")).status == 200);
    for (auto const& body : {chat, chat_stream}) {
        auto const r = ask(post("/v1/chat/completions", body));
        CHECK(r.status == 503);
        CHECK(r.has("Retry-After: 1"));
        CHECK(json::parse(r.body)["error"]["code"] == "loading");
    }
    CHECK(ask(post("/tokenize", R"({"prompt":"x"})")).status == 503);
    late.open(node);
    CHECK(ask(request_text("GET", "/health")).status == 200);
    CHECK(ask(post("/v1/chat/completions", chat)).status == 200);
    CHECK(json::parse(ask(request_text("GET", "/v1/models")).body)["data"][0]["max_model_len"] == 4096);
}

TEST_CASE("stop: what is under way may end, then it is cut short") {
    SUBCASE("ends by itself") {
        running s;
        raw_client c(s.port());
        c.send(post("/v1/chat/completions", chat_stream));
        auto const call = s.node.wait_submit();
        accept(call);
        c.read_until("\r\n\r\n");
        std::size_t cut = 99;
        std::thread stopper([&] { cut = s.server.stop(std::chrono::seconds(20)); });
        say(call, "last", 0, finish_reason::stop);
        done(call);
        CHECK(c.read_until("data: [DONE]\n\n").find("last") != std::string::npos);
        c.read_to_end();
        stopper.join();
        CHECK(cut == 0);
    }
    SUBCASE("cut short") {
        running s;
        raw_client c(s.port());
        c.send(post("/v1/chat/completions", chat_stream));
        auto const call = s.node.wait_submit();
        CHECK(s.server.stop(std::chrono::milliseconds(0)) == 1);
        CHECK(s.node.cancels(call.request.request) == 1);
        CHECK(c.at_end());
        accept(call);  // the node may still speak: nobody listens
        say(call, "x");
    }
}

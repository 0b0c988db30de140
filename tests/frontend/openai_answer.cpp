// Answers: the JSON that OpenAI documents, event by event.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/openai/answer.hpp"

using namespace fermata;
using namespace fermata::openai;
using json = nlohmann::ordered_json;

namespace {

answer_head const head{"chatcmpl-1", "1", "tiny", 1'700'000'000};

text_delta text(std::string t, finish_reason finish = finish_reason::none, std::uint32_t choice = 0) {
    text_delta d;
    d.text = std::move(t);
    d.finish = finish;
    d.choice = choice;
    return d;
}

token_report token(token_id id, std::string bytes, float logprob, std::vector<std::pair<std::string, float>> top = {}) {
    token_report r;
    r.token = id;
    r.bytes = std::move(bytes);
    r.logprob = logprob;
    for (auto& [b, p] : top) {
        r.top.push_back({0, p});
        r.top_bytes.push_back(b);
    }
    return r;
}

request_usage usage() {
    request_usage u;
    u.prompt_tokens = 10;
    u.cached_tokens = 4;
    u.completion_tokens = 2;
    u.replayed_tokens = 1;
    u.restored_bytes = 64;
    u.source = "device";
    u.queue_ms = 0.25;
    u.ttft_ms = 2;
    return u;
}

// The events of a stream; "[DONE]" becomes null.
std::vector<json> events(std::string const& out) {
    std::vector<json> result;
    std::size_t at = 0;
    while (at < out.size()) {
        auto const end = out.find("\n\n", at);
        REQUIRE(end != std::string::npos);
        auto const line = out.substr(at, end - at);
        REQUIRE(line.starts_with("data: "));
        result.push_back(line == "data: [DONE]" ? json() : json::parse(line.substr(6)));
        at = end + 2;
    }
    return result;
}

}  // namespace

TEST_CASE("chat, one body") {
    answer a({api_kind::chat}, head);
    std::string out;
    a.add(0, text("say \"hi\"\n"), out);
    a.add(0, text("\xF0\x9F\x98\x80", finish_reason::length), out);
    CHECK(out.empty());
    a.finish({usage()}, out);
    CHECK(out ==
          R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"say \"hi\"\n)"
          "\xF0\x9F\x98\x80"
          R"(","refusal":null},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4}},"fermata":{"request":"1","source":"device","reused_tokens":4,"restored_bytes":64,"replayed_tokens":1,"queue_ms":0.25,"ttft_ms":2.0}})");
}

TEST_CASE("chat, a stream: role, text, finish, totals") {
    answer_form form{api_kind::chat, true};
    SUBCASE("without usage the last finish carries the request's numbers") {
        answer a(form, head);
        std::string out;
        a.add(0, text(""), out);
        CHECK(out.empty());  // nothing to say yet
        a.add(0, text("a"), out);
        a.add(0, text("", finish_reason::stop), out);
        a.finish({usage()}, out);
        auto const e = events(out);
        REQUIRE(e.size() == 4);
        CHECK(e[0] == json::parse(R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"tiny","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]})"));
        CHECK(e[1]["choices"] == json::parse(R"([{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}])"));
        CHECK(e[2]["choices"] == json::parse(R"([{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}])"));
        CHECK(e[2]["fermata"]["reused_tokens"] == 4);
        CHECK_FALSE(e[1].contains("usage"));
        CHECK(e[3].is_null());
    }
    SUBCASE("with usage") {
        form.include_usage = true;
        answer a(form, head);
        std::string out;
        a.add(0, text("a", finish_reason::stop), out);
        a.finish({usage()}, out);
        auto const e = events(out);
        REQUIRE(e.size() == 5);
        CHECK(e[0]["usage"].is_null());
        CHECK(e[1]["choices"][0]["delta"]["content"] == "a");
        CHECK(e[2]["choices"][0]["finish_reason"] == "stop");
        CHECK(e[3]["choices"].empty());
        CHECK(e[3]["usage"]["total_tokens"] == 12);
        CHECK(e[3]["fermata"]["source"] == "device");
    }
    SUBCASE("two choices interleaved") {
        form.n = 2;
        answer a(form, head);
        std::string out;
        a.add(0, text("x", finish_reason::none, 1), out);
        a.add(0, text("y", finish_reason::stop, 0), out);
        a.add(0, text("late", finish_reason::none, 0), out);  // nothing follows a finish
        a.add(0, text("z", finish_reason::length, 1), out);
        a.finish({usage()}, out);
        std::string first, second;
        int roles = 0;
        for (auto const& e : events(out)) {
            if (e.is_null()) continue;
            auto const& c = e["choices"][0];
            if (c["delta"].contains("role")) ++roles;
            if (c["delta"].contains("content")) (c["index"] == 0 ? first : second) += c["delta"]["content"].get<std::string>();
        }
        CHECK(roles == 2);
        CHECK(first == "y");
        CHECK(second == "xz");
    }
    SUBCASE("an empty answer still has a role and a finish") {
        answer a(form, head);
        std::string out;
        a.add(0, text("", finish_reason::stop), out);
        a.finish({usage()}, out);
        CHECK(events(out).size() == 3);
    }
}

TEST_CASE("chat log-probabilities, parts of characters included") {
    answer_form form{api_kind::chat, false, false, true};
    auto delta = text("\xC3\xA9");
    delta.tokens = {token(1, "\xC3", -0.5f, {{"\xC3", -0.5f}, {"e", -1.0f}}), token(2, "\xA9", -INFINITY)};
    auto const expected = json::parse(R"({"content":[
        {"token":"\\xc3","logprob":-0.5,"bytes":[195],"top_logprobs":[{"token":"\\xc3","logprob":-0.5,"bytes":[195]},{"token":"e","logprob":-1.0,"bytes":[101]}]},
        {"token":"\\xa9","logprob":-9999.0,"bytes":[169],"top_logprobs":[]}],"refusal":null})");
    SUBCASE("body") {
        answer a(form, head);
        std::string out;
        a.add(0, delta, out);
        a.add(0, text("", finish_reason::stop), out);
        a.finish({usage()}, out);
        CHECK(json::parse(out)["choices"][0]["logprobs"] == expected);
    }
    SUBCASE("stream: each token once, also while its text is withheld") {
        form.stream = true;
        answer a(form, head);
        std::string out;
        text_delta withheld;
        withheld.tokens = {delta.tokens[0]};
        a.add(0, withheld, out);
        auto rest = text("\xC3\xA9", finish_reason::stop);
        rest.tokens = {delta.tokens[1]};
        a.add(0, rest, out);
        a.finish({usage()}, out);
        json seen = json::array();
        for (auto const& e : events(out))
            if (!e.is_null() && !e["choices"][0]["logprobs"].is_null())
                for (auto const& t : e["choices"][0]["logprobs"]["content"]) seen.push_back(t);
        CHECK(seen == expected["content"]);
    }
}

TEST_CASE("completions: the legacy form of log-probabilities, with the echoed prompt") {
    answer_form form{api_kind::completion, false, false, true};
    answer a(form, {"cmpl-1", "1", "tiny", 5});
    std::string out;
    auto first = text("h\xC3\xA9 yes");
    first.prompt = {token(1, "h", std::nanf("")), token(2, "\xC3\xA9", -1.5f, {{"x", -0.25f}, {"\xC3\xA9", -1.5f}, {"x", -3.0f}})};
    first.tokens = {token(3, " y", -2.0f), token(4, "\xF0\x9F", -3.0f)};
    a.add(0, first, out);
    a.add(0, text("", finish_reason::stop), out);
    a.finish({usage()}, out);
    auto const choice = json::parse(out)["choices"][0];
    CHECK(choice["text"] == "h\xC3\xA9 yes");
    CHECK(choice["logprobs"] == json::parse("{\"tokens\":[\"h\",\"\xC3\xA9\",\" y\",\"bytes:\\\\xf0\\\\x9f\"],\"token_logprobs\":[null,-1.5,-2.0,-3.0],"
                                            "\"top_logprobs\":[null,{\"x\":-0.25,\"\xC3\xA9\":-1.5},{},{}],\"text_offset\":[0,1,2,4]}"));
    CHECK(choice["finish_reason"] == "stop");
}

TEST_CASE("completions, a stream: text and finish together") {
    answer_form form{api_kind::completion, true};
    answer a(form, {"cmpl-1", "1", "tiny", 5});
    std::string out;
    a.add(0, text("a"), out);
    a.add(0, text("b", finish_reason::length), out);
    a.finish({usage()}, out);
    auto const e = events(out);
    REQUIRE(e.size() == 3);
    CHECK(e[0] == json::parse(R"({"id":"cmpl-1","object":"text_completion","created":5,"model":"tiny","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}]})"));
    CHECK(e[1]["choices"][0] == json::parse(R"({"index":0,"text":"b","logprobs":null,"finish_reason":"length"})"));
}

TEST_CASE("token ids on request") {
    answer_form form{api_kind::completion};
    form.token_ids = true;
    answer a(form, {"cmpl-1", "1", "tiny", 5});
    std::string out;
    auto d = text("ab", finish_reason::stop);
    d.tokens = {token(7, "a", 0), token(8, "b", 0)};
    a.add(0, d, out);
    a.finish({usage()}, out);
    CHECK(json::parse(out)["choices"][0]["token_ids"] == json::parse("[7,8]"));
}

TEST_CASE("several prompts: numbers add up") {
    answer_form form{api_kind::completion};
    form.n = 2;
    form.prompts = 2;
    answer a(form, {"cmpl-1", "1", "tiny", 5});
    std::string out;
    for (std::size_t p = 0; p < 2; ++p)
        for (std::uint32_t c = 0; c < 2; ++c) a.add(p, text(std::to_string(p) + std::to_string(c), finish_reason::stop, c), out);
    a.add(0, text("x", finish_reason::none, 2), out);  // no such choice
    a.add(5, text("x"), out);                          // no such prompt
    a.finish({usage(), usage()}, out);
    auto const body = json::parse(out);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(body["choices"][i]["index"] == i);
        CHECK(body["choices"][i]["text"] == std::to_string(i / 2) + std::to_string(i % 2));
    }
    CHECK(body["usage"]["prompt_tokens"] == 20);
    CHECK(body["usage"]["prompt_tokens_details"]["cached_tokens"] == 8);
}

TEST_CASE("errors have OpenAI's shape") {
    client_error e{400, "invalid_request_error", "", "messages[0].role", "a \"quoted\" word", 0};
    CHECK(error_json(e) == R"({"error":{"message":"a \"quoted\" word","type":"invalid_request_error","param":"messages[0].role","code":null}})");
    e = {503, "", "queue_timeout", "", "m", 0};
    CHECK(json::parse(error_json(e))["error"]["type"] == "server_error");
    std::string out;
    answer::fail(e, out);
    CHECK(out.starts_with("data: {\"error\":"));
    CHECK(out.ends_with("}\n\n"));
}

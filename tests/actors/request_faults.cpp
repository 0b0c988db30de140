// Whatever is wrong with one request, the node and the requests beside it go on.
#include <doctest/doctest.h>

#include <stdexcept>

#include "actors/node_impl.hpp"
#include "node_support.hpp"
#include "tests/support/byte_vocabulary.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

// A model with 512 rows of which the tokenizer knows 258.
node_options padded_node() {
    auto options = small_node();
    options.text =
        std::make_shared<const text_model>(text::tokenizer::from_vocabulary(tests::byte_vocabulary()), "");
    return options;
}

class throwing_sink final : public client_sink {
public:
    void on(const accepted&) override { fault(0); }
    void on(const rejected&) override { fault(1); }
    void on(const text_delta&) override { fault(2); }
    void on(const finished&) override { fault(3); }
    void on(const failed&) override { fault(4); }
    explicit throwing_sink(int where) : where_(where) {}

private:
    void fault(int where) const {
        if (where == where_ || where == 4) throw std::runtime_error("a client's own fault");
    }
    int where_;
};

}  // namespace

TEST_CASE("rows beyond the tokenizer are never drawn, whatever the bias and the temperature") {
    node server(padded_node());
    server.start();
    for (const float temperature : {0.0F, 2.0F}) {
        auto sink = std::make_shared<collecting_sink>();
        auto request = token_request(server.next_request(), some_prompt(20, 3), 200);
        request.sampling.temperature = temperature;
        request.sampling.logit_bias = {{400, 100.0F}, {511, 100.0F}};
        server.submit_request(request, sink);
        REQUIRE(sink->wait_end());
        CHECK(sink->was_finished);
        REQUIRE(sink->answers.size() == 1);
        CHECK(sink->answers[0].size() == 200);
        for (const token_id each : sink->answers[0]) CHECK(each < 258);
    }
    CHECK(server.restarts() == 0);
}

TEST_CASE("a client whose own code throws loses its request, nobody else's") {
    node server(small_node());
    server.start();
    auto other = send(server, some_prompt(40), 400);
    for (const int where : {0, 2, 3}) {
        CAPTURE(where);
        server.submit_request(token_request(server.next_request(), some_prompt(10), 5),
                              std::make_shared<throwing_sink>(where));
        server.submit_request(token_request(server.next_request(), {1, 9999}, 5), std::make_shared<throwing_sink>(1));
    }
    REQUIRE(other->wait_end());
    CHECK(other->was_finished);
    CHECK(other->answers.at(0) == right_answer(some_prompt(40), 400));
    auto after = send(server, some_prompt(33), 9);
    REQUIRE(after->wait_end());
    CHECK(after->answers.at(0) == right_answer(some_prompt(33), 9));
    server.tokenize({}, [](const tokenized&) { throw std::runtime_error("a client's own fault"); });
    CHECK(server.stop(60s).in_order);
    CHECK(server.restarts() == 0);
}

TEST_CASE("all requests together keep no more than the node was told, and give it back") {
    auto options = padded_node();
    options.frontend.requests_bytes_max = 100'000;
    node server(std::move(options));
    server.start();
    const auto& budget = *server.inside().state->context->requests_bytes;
    auto sink = std::make_shared<collecting_sink>();
    submit large;
    large.request = server.next_request();
    large.kind = prompt_kind::text;
    large.prompt_text.assign(200'000, 'x');
    server.submit_request(large, sink);
    REQUIRE(sink->wait_end());
    CHECK(sink->was_rejected);
    CHECK(sink->error.status == 429);
    CHECK(sink->error.code == "overloaded");
    CHECK(sink->error.retry_after_s > 0);

    std::promise<tokenized> answer;
    tokenize_text text;
    text.text.assign(200'000, 'x');
    server.tokenize(text, [&](tokenized t) { answer.set_value(std::move(t)); });
    const auto tokens = answer.get_future().get();
    REQUIRE(tokens.error);
    CHECK(tokens.error->status == 429);

    // More than fits at once: some are refused, none is forgotten, and in the end nothing is held.
    std::vector<std::shared_ptr<collecting_sink>> sinks;
    for (int i = 0; i < 60; ++i) sinks.push_back(send(server, some_prompt(500), 4));
    std::size_t finished = 0;
    for (const auto& each : sinks) {
        REQUIRE(each->wait_end());
        finished += each->was_finished ? 1 : 0;
        CHECK((each->was_finished || each->error.status == 429));
    }
    CHECK(finished > 0);
    server.stop(60s);
    CHECK(budget.used() == 0);
}

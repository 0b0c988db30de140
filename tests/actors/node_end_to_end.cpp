// A whole node through its gateway: tokens in, the oracle's right tokens out.
#include <doctest/doctest.h>

#include "node_support.hpp"

using namespace fermata;
using namespace fermata::test;

TEST_CASE("a prompt of tokens comes back as the oracle's answer") {
    node server(small_node());
    CHECK_FALSE(server.health().accepting);  // not before the model is there
    CHECK(server.health().reason == "the model is being loaded");
    server.start();
    CHECK(server.health().accepting);
    CHECK(server.health().ready);
    CHECK(server.model().id == "oracle");
    CHECK(server.model().max_model_len == 1024);
    CHECK(server.model().vocabulary == 512);
    // The warm-up left nothing behind.
    CHECK(server.numbers()->generated_tokens == 0);
    CHECK(server.numbers()->prefill_tokens == 0);
    CHECK(server.numbers()->pages_free == server.numbers()->pages_total);

    const auto prompt = some_prompt(40);
    auto sink = send(server, prompt, 20);
    REQUIRE(sink->wait_end());
    CHECK(sink->was_accepted);
    CHECK(sink->was_finished);
    CHECK(sink->prompt_tokens == 40);
    REQUIRE(sink->answers.size() == 1);
    CHECK(sink->answers[0] == right_answer(prompt, 20));
    CHECK(sink->finishes == std::vector{finish_reason::length});
    CHECK(sink->usage.prompt_tokens == 40);
    CHECK(sink->usage.completion_tokens == 20);
    CHECK(sink->usage.cached_tokens == 0);
}

TEST_CASE("a hybrid oracle, many requests at once, more than lanes") {
    auto how = small_oracle();
    how.state_bytes = 256;
    node server(small_node(how));
    server.start();
    std::vector<std::shared_ptr<collecting_sink>> sinks;
    for (token_id i = 0; i < 12; ++i) sinks.push_back(send(server, some_prompt(30 + static_cast<std::size_t>(i), i), 16));
    for (token_id i = 0; i < 12; ++i) {
        REQUIRE(sinks[static_cast<std::size_t>(i)]->wait_end());
        CHECK(sinks[static_cast<std::size_t>(i)]->answers.at(0) ==
              right_answer(some_prompt(30 + static_cast<std::size_t>(i), i), 16, how));
    }
    const auto report = server.stop(1s);
    CHECK(report.in_order);
    CHECK(report.cut_short == 0);
}

TEST_CASE("a second turn reuses the first") {
    node server(small_node());
    server.start();
    auto prompt = some_prompt(64);
    auto first = send(server, prompt, 8);
    REQUIRE(first->wait_end());
    auto longer = prompt;
    longer.insert(longer.end(), first->answers.at(0).begin(), first->answers.at(0).end());
    longer.push_back(3);
    auto second = send(server, longer, 8);
    REQUIRE(second->wait_end());
    CHECK(second->usage.cached_tokens >= 64);
    CHECK(second->answers.at(0) == right_answer(longer, 8));
}

TEST_CASE("several choices, a bad request, unknown tokens") {
    node server(small_node());
    server.start();
    auto sink = std::make_shared<collecting_sink>();
    auto request = token_request(server.next_request(), some_prompt(20), 6);
    request.n = 3;
    server.submit_request(request, sink);
    REQUIRE(sink->wait_end());
    REQUIRE(sink->answers.size() == 3);
    for (const auto& answer : sink->answers) CHECK(answer == right_answer(some_prompt(20), 6));
    CHECK(sink->usage.completion_tokens == 18);
    CHECK(sink->usage.prompt_tokens == 20);  // once, however many choices

    auto bad = send(server, {1, 2, 9999}, 4);
    REQUIRE(bad->wait_end());
    CHECK(bad->was_rejected);
    CHECK(bad->error.status == 400);
    auto longer = send(server, some_prompt(1030), 4);
    REQUIRE(longer->wait_end());
    CHECK(longer->error.code == "context_length_exceeded");
}

TEST_CASE("the text layer answers from the preparers") {
    node server(small_node());
    server.start();
    std::promise<tokenized> answer;
    server.tokenize({}, [&](tokenized t) { answer.set_value(std::move(t)); });
    auto result = answer.get_future();
    REQUIRE(result.wait_for(patience) == std::future_status::ready);
    CHECK(result.get().error);  // the oracle has no text
}

TEST_CASE("a stopped node says so and is stopped once") {
    node server(small_node());
    server.start();
    server.stop(0ms);
    server.stop(0ms);
    CHECK(server.health().reason == "the server has stopped");
    auto late = send(server, some_prompt(4), 4);
    REQUIRE(late->wait_end());
    CHECK(late->was_rejected);
    CHECK(late->error.status == 503);
}

TEST_CASE("options that can't work are an error at start, naming the option") {
    auto options = small_node();
    options.program.max_concurrency = 0;
    node server(options);
    CHECK_THROWS_WITH_AS(server.start(), doctest::Contains("max_concurrency"), std::invalid_argument);
}

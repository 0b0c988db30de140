// The planner: what a submit becomes, and every 4xx it can be answered with. Token counts are byte counts here.
#include <doctest/doctest.h>

#include <limits>
#include <memory>

#include "frontend/planning/planner.hpp"
#include "tests/support/byte_vocabulary.hpp"

using namespace fermata;

namespace {

constexpr const char* chatml =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

std::shared_ptr<const text_model> model_with(const std::string& chat_template) {
    return std::make_shared<const text_model>(text::tokenizer::from_vocabulary(tests::byte_vocabulary()), chat_template);
}

planning_limits limits(std::uint32_t context = 64) {
    planning_limits l;
    l.max_context_tokens = context;
    l.vocabulary = 258;
    return l;
}

prepared plan(const submit& request, const std::string& chat_template = chatml, std::uint32_t context = 64) {
    return prepare(request, *model_with(chat_template), limits(context), 77, 1'000);
}

submit text_prompt(std::string text) {
    submit s;
    s.request = request_id(5);
    s.kind = prompt_kind::text;
    s.prompt_text = std::move(text);
    return s;
}

submit chat(std::string messages) {
    submit s;
    s.request = request_id(5);
    s.messages_json = std::move(messages);
    return s;
}

std::vector<token_id> tokens_of(const prepared& p) {
    REQUIRE(!p.error);
    const auto span = p.order.choices.front()->prompt.span();
    return {span.begin(), span.end()};
}

}  // namespace

TEST_CASE("a text prompt is taken verbatim and special tokens in it count") {
    CHECK(tokens_of(plan(text_prompt("hi"))) == std::vector<token_id>{'h', 'i'});
    CHECK(tokens_of(plan(text_prompt("a<|im_end|>"))) == std::vector<token_id>{'a', tests::im_end});
}

TEST_CASE("a conversation is rendered with a generation prompt") {
    const auto p = plan(chat(R"([{"role":"user","content":"x"}])"));
    std::vector<token_id> expected{tests::im_start};
    for (const char c : std::string("user\nx")) expected.push_back(c);
    expected.push_back(tests::im_end);
    expected.push_back(tests::im_start);
    for (const char c : std::string("assistant\n")) expected.push_back(c);
    CHECK(tokens_of(p) == expected);
}

TEST_CASE("template arguments win over defaults") {
    auto request = chat(R"([{"role":"user","content":"x"}])");
    request.template_arguments_json = R"({"add_generation_prompt": false})";
    CHECK(tokens_of(plan(request)).back() == tests::im_end);
}

TEST_CASE("a developer message renders as system where the template refuses it") {
    const std::string strict =
        "{% for m in messages %}{% if m.role not in ['system', 'user'] %}{{ raise_exception('role') }}{% endif %}"
        "{{ m.role[0] }}{% endfor %}";
    CHECK(tokens_of(plan(chat(R"([{"role":"developer","content":"x"}])"), strict)) == std::vector<token_id>{'s'});
    const std::string knowing = "{{ messages[0].role[0] }}";
    CHECK(tokens_of(plan(chat(R"([{"role":"developer","content":"x"}])"), knowing)) == std::vector<token_id>{'d'});
}

TEST_CASE("a template error is the client's error, never another template") {  // fault 46
    const auto p = plan(chat(R"([{"role":"user","content":"x"}])"), "{{ raise_exception('no such thing') }}");
    REQUIRE(p.error);
    CHECK(p.error->status == 400);
    CHECK(p.error->param == "messages");
    CHECK(p.error->message.find("no such thing") != std::string::npos);
}

TEST_CASE("a missing template names the option that gives one") {
    const auto p = plan(chat(R"([{"role":"user","content":"x"}])"), "");
    REQUIRE(p.error);
    CHECK(p.error->message.find("--chat-template FILE") != std::string::npos);
}

TEST_CASE("the answer gets what is left of the context") {
    const auto room = [](const prepared& p) { return p.order.choices.front()->guard.max_new_tokens.value; };
    CHECK(room(plan(text_prompt("0123456789"))) == 54);
    auto request = text_prompt("0123456789");
    request.max_tokens = 54;
    CHECK(room(plan(request)) == 54);
    request.max_tokens = 55;
    const auto p = plan(request);
    REQUIRE(p.error);
    CHECK(p.error->param == "max_tokens");
    CHECK(p.error->code == "context_length_exceeded");
}

TEST_CASE("a prompt that leaves no room for one token is refused before it is queued") {  // fault 68
    CHECK(!plan(text_prompt(std::string(63, 'x'))).error);
    for (const std::size_t size : {64U, 65U, 5000U}) {
        const auto p = plan(text_prompt(std::string(size, 'x')));
        REQUIRE(p.error);
        CHECK(p.error->status == 400);
        CHECK(p.error->code == "context_length_exceeded");
        CHECK(p.error->param == "prompt");
    }
    auto scoring = text_prompt(std::string(64, 'x'));
    scoring.max_tokens = 0;
    CHECK(!plan(scoring).error);
}

TEST_CASE("each bad field is named") {
    const auto param = [](const submit& request) {
        const auto p = plan(request);
        return p.error ? p.error->param : std::string("accepted");
    };
    CHECK(param(text_prompt("")) == "prompt");
    auto r = text_prompt("x");
    r.n = 0;
    CHECK(param(r) == "n");
    r.n = 129;
    CHECK(param(r) == "n");
    r = text_prompt("x");
    r.stop = {""};
    CHECK(param(r) == "stop");
    r.stop = std::vector<std::string>(17, "s");
    CHECK(param(r) == "stop");
    r.stop = {std::string(1025, 's')};
    CHECK(param(r) == "stop");
    r = text_prompt("x");
    r.sampling.logit_bias = {{258, 1.0F}};
    CHECK(param(r) == "logit_bias");
    r = text_prompt("x");
    r.kind = prompt_kind::tokens;
    r.prompt_tokens = token_run({3, 258});
    CHECK(param(r) == "prompt");
    r.prompt_tokens = token_run({3, -1});
    CHECK(param(r) == "prompt");
    CHECK(param(chat("[]")) == "messages");
    CHECK(param(chat("{")) == "messages");
    CHECK(param(chat("3")) == "messages");
}

TEST_CASE("a model without text takes token ids only") {
    const text_model none(nullptr, {});
    auto r = text_prompt("x");
    CHECK(prepare(r, none, limits(), 0, 0).error);
    r.kind = prompt_kind::tokens;
    r.prompt_tokens = token_run({3, 4});
    CHECK(!prepare(r, none, limits(), 0, 0).error);
}

TEST_CASE("choices share the prompt and the seed; a given seed is kept") {
    auto r = text_prompt("x");
    r.n = 3;
    auto p = plan(r);
    REQUIRE(p.order.choices.size() == 3);
    for (std::uint32_t i = 0; i < 3; ++i) {
        CHECK(p.order.choices[i]->choice == i);
        CHECK(p.order.choices[i]->sampling.seed == 77);
        CHECK(p.order.choices[i]->prompt.span().data() == p.order.choices[0]->prompt.span().data());
    }
    r.sampling.seed = 5;
    r.seed_given = true;
    CHECK(plan(r).order.choices.front()->sampling.seed == 5);
}

TEST_CASE("a deadline counts from acceptance") {
    auto r = text_prompt("x");
    CHECK(plan(r).order.deadline == 0);
    r.deadline_ms = 3;
    CHECK(plan(r).order.deadline == 3'001'000);
}

TEST_CASE("the text layer by itself") {
    const auto model = model_with(chatml);
    tokenize_text t;
    t.text = "a<|im_end|>";
    t.special = false;
    CHECK(tokenize(t, *model, limits()).tokens.size() == 11);
    t.special = true;
    CHECK(tokenize(t, *model, limits()).tokens.size() == 2);
    t.messages_json = R"([{"role":"user","content":"x"}])";
    CHECK(tokenize(t, *model, limits()).tokens.size() == 1 + 6 + 1 + 1 + 10);
    CHECK(detokenize({token_run({'a', tests::im_end})}, *model).bytes == "a<|im_end|>");
    CHECK(detokenize({token_run({9999})}, *model).error);
}

TEST_CASE("a text that can't fit the context is refused before it is tokenised") {
    // The longest token has 12 bytes: 64 tokens stand for at most 768.
    const auto p = plan(text_prompt(std::string(769, 'x')));
    REQUIRE(p.error);
    CHECK(p.error->code == "context_length_exceeded");
    CHECK(p.error->message.find("769 bytes") != std::string::npos);
    CHECK(p.error->message.find("768 bytes") != std::string::npos);
    const auto counted = plan(text_prompt(std::string(768, 'x')));
    REQUIRE(counted.error);
    CHECK(counted.error->message.find("768 tokens") != std::string::npos);
    std::string longest;
    for (int i = 0; i < 63; ++i) longest += "<|im_start|>";
    CHECK(tokens_of(plan(text_prompt(longest))).size() == 63);
    const auto c = plan(chat(R"([{"role":"user","content":")" + std::string(800, 'x') + R"("}])"));
    REQUIRE(c.error);
    CHECK(c.error->code == "context_length_exceeded");
    CHECK(c.error->param == "messages");
}

TEST_CASE("a prompt of tokens is shared, never copied") {
    auto r = text_prompt("");
    r.kind = prompt_kind::tokens;
    r.prompt_tokens = token_run({3, 4, 5});
    CHECK(plan(r).order.choices.front()->prompt.span().data() == r.prompt_tokens.span().data());
}

TEST_CASE("limits of sampling and of what is reported hold for every door") {
    const auto param = [](const auto& change) {
        auto r = text_prompt("x");
        change(r);
        const auto p = plan(r);
        return p.error ? p.error->param : std::string("accepted");
    };
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    CHECK(param([](submit& r) { r.stop_tokens.assign(256, 3); }) == "accepted");
    CHECK(param([](submit& r) { r.stop_tokens.assign(257, 3); }) == "stop_token_ids");
    CHECK(param([](submit& r) { r.sampling.logit_bias.assign(1024, {3, 1.0F}); }) == "accepted");
    CHECK(param([](submit& r) { r.sampling.logit_bias.assign(1025, {3, 1.0F}); }) == "logit_bias");
    CHECK(param([](submit& r) { r.sampling.logit_bias = {{3, 101.0F}}; }) == "logit_bias");
    CHECK(param([&](submit& r) { r.sampling.logit_bias = {{3, nan}}; }) == "logit_bias");
    CHECK(param([](submit& r) { r.report.top_logprobs = 20; }) == "accepted");
    CHECK(param([](submit& r) { r.report.top_logprobs = 21; }) == "top_logprobs");
    CHECK(param([](submit& r) { r.session.assign(257, 's'); }) == "fermata.session");
    for (const float bad : {-0.1F, 2.1F, nan, infinity})
        CHECK(param([&](submit& r) { r.sampling.temperature = bad; }) == "temperature");
    for (const float bad : {0.0F, 1.1F, nan}) CHECK(param([&](submit& r) { r.sampling.top_p = bad; }) == "top_p");
    CHECK(param([](submit& r) { r.sampling.min_p = -1; }) == "min_p");
    CHECK(param([](submit& r) { r.sampling.repetition_penalty = 0; }) == "repetition_penalty");
    CHECK(param([](submit& r) { r.sampling.frequency_penalty = 3; }) == "frequency_penalty");
    CHECK(param([](submit& r) { r.sampling.presence_penalty = -3; }) == "presence_penalty");
}

TEST_CASE("raw logits are bounded by their bytes") {
    auto r = text_prompt("0123456789");
    r.max_tokens = 20;
    r.report.logits = r.report.prompt_logits = true;
    r.n = 2;
    auto l = limits();
    const std::uint64_t bytes = (20 + 10) * 258 * 4 * 2;
    l.logits_bytes_max = bytes;
    CHECK(!prepare(r, *model_with(chatml), l, 0, 0).error);
    l.logits_bytes_max = bytes - 1;
    const auto p = prepare(r, *model_with(chatml), l, 0, 0);
    REQUIRE(p.error);
    CHECK(p.error->param == "logits");
    CHECK(p.error->message.find(std::to_string(bytes)) != std::string::npos);
}

TEST_CASE("messages that nest as deep as values may are the client's error") {  // one level more holds them
    const auto p = plan(chat(std::string(400, '[') + std::string(400, ']')));
    REQUIRE(p.error);
    CHECK(p.error->status == 400);
    CHECK(p.error->param == "messages");
    CHECK(p.error->message.find("nest") != std::string::npos);
}

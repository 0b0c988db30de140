// The Frontend's core: a request's life between its client and the Scheduler, driven message by message.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "actors/cores/frontend.hpp"
#include "tests/support/byte_vocabulary.hpp"

using namespace fermata;

namespace {

struct world {
    std::shared_ptr<const text_model> model =
        std::make_shared<const text_model>(text::tokenizer::from_vocabulary(tests::byte_vocabulary()), "");
    frontend_core core{frontend_options{}, model};
    frontend_commands commands;

    // Takes what the core ordered so far.
    frontend_commands take() { return std::exchange(commands, {}); }

    submit request(std::uint64_t id, std::string text) {
        submit s;
        s.request = request_id(id);
        s.kind = prompt_kind::text;
        s.prompt_text = std::move(text);
        s.max_tokens = 32;
        return s;
    }
    void prepare_now() {
        for (auto& command : take())
            if (auto* work = std::get_if<hand_to_preparer>(&command)) {
                planning_limits limits;
                limits.vocabulary = 258;
                core.on(prepare(*work->request, *model, limits, work->drawn_seed, 0), commands);
            }
    }
    // From submit to `accepted`.
    void start(submit s) {
        const request_id id = s.request;
        core.on(std::move(s), commands);
        prepare_now();
        take();
        core.on(enqueue_result{id, true, 0, refusal::none}, commands);
        take();
    }
    void row(std::uint64_t id, token_id token, finish_reason finish = finish_reason::none, std::uint32_t choice = 0,
             failure_kind failure = failure_kind::none) {
        choice_output out;
        out.request = request_id(id);
        out.choice = choice;
        out.row.token = token;
        out.row.finish = finish;
        out.failure = failure;
        if (finish != finish_reason::none) {
            auto usage = std::make_shared<sequence_usage>();
            usage->generated = token_pos(1);
            usage->cached = token_pos(64);
            out.usage = usage;
        }
        core.on(outputs{{out}}, commands);
    }
    // All text sent so far, with "|" between deltas and the kind of the last word.
    std::string said() {
        std::string result;
        for (const auto& command : take()) {
            const auto* sent = std::get_if<send_to_client>(&command);
            if (!sent) continue;
            if (const auto* d = std::get_if<text_delta>(&sent->message)) result += d->text + "|";
            if (std::holds_alternative<finished>(sent->message)) result += "finished";
            if (const auto* f = std::get_if<failed>(&sent->message)) result += "failed:" + f->error.code;
            if (const auto* r = std::get_if<rejected>(&sent->message)) result += "rejected:" + std::to_string(r->error.status);
            if (std::holds_alternative<accepted>(sent->message)) result += "accepted ";
        }
        return result;
    }
};

}  // namespace

TEST_CASE("accepted, deltas, finished; then the request is forgotten") {
    world w;
    w.core.on(w.request(1, "ab"), w.commands);
    w.prepare_now();
    auto commands = w.take();
    REQUIRE(commands.size() == 1);
    CHECK(std::holds_alternative<enqueue>(std::get<send_to_scheduler>(commands[0]).message));
    w.core.on(enqueue_result{request_id(1), true, 0, refusal::none}, w.commands);
    w.row(1, 'x');
    w.row(1, 'y', finish_reason::length);
    CHECK(w.said() == "accepted x|y|finished");
    CHECK(w.core.requests() == 0);
    w.row(1, 'z');  // a late row of a forgotten request
    CHECK(w.said() == "");
}

TEST_CASE("a character leaves whole; half a one at the end is withheld") {
    world w;
    w.start(w.request(1, "a"));
    w.row(1, 0xC3);
    CHECK(w.said() == "");
    w.row(1, 0xA9);
    CHECK(w.said() == "\xC3\xA9|");
    w.row(1, 0xE2);
    w.row(1, 0x82, finish_reason::length);
    CHECK(w.said() == "|finished");
}

TEST_CASE("what may begin a stop string is held back and given out when it does not") {
    world w;
    auto s = w.request(1, "a");
    s.stop = {"END"};
    w.start(s);
    w.row(1, 'x');
    w.row(1, 'E');
    w.row(1, 'N');
    CHECK(w.said() == "x|");
    w.row(1, 'o');
    CHECK(w.said() == "ENo|");
    w.row(1, 'E');
    w.row(1, 'N');
    w.row(1, 'D', finish_reason::stop);
    CHECK(w.said() == "|finished");
}

TEST_CASE("held-back text is text when the answer ends without a stop string") {
    world w;
    auto s = w.request(1, "a");
    s.stop = {"END"};
    w.start(s);
    w.row(1, 'E');
    w.row(1, 'N', finish_reason::length);
    CHECK(w.said() == "EN|finished");
}

TEST_CASE("an end token gives no text") {
    world w;
    w.start(w.request(1, "a"));
    w.row(1, 'x');
    w.row(1, tests::im_end, finish_reason::stop);
    CHECK(w.said() == "x||finished");
}

TEST_CASE("cancel while it is prepared never reaches the Scheduler") {  // fault 82
    world w;
    w.core.on(w.request(1, "a"), w.commands);
    auto commands = w.take();
    w.core.on(cancel_request{request_id(1)}, w.commands);
    CHECK(w.take().empty());
    w.commands = std::move(commands);
    w.prepare_now();
    CHECK(w.said() == "rejected:499");
    CHECK(w.core.requests() == 0);
}

TEST_CASE("cancel reaches the Scheduler once; rows under way say nothing; the end is told") {
    world w;
    w.start(w.request(1, "a"));
    w.core.on(cancel_request{request_id(1)}, w.commands);
    w.core.on(cancel_request{request_id(1)}, w.commands);
    auto commands = w.take();
    REQUIRE(commands.size() == 1);
    CHECK(std::holds_alternative<cancel_request>(std::get<send_to_scheduler>(commands[0]).message));
    w.row(1, 'x');
    CHECK(w.said() == "");
    w.row(1, no_token, finish_reason::cancelled);
    CHECK(w.said() == "failed:");
    CHECK(w.core.requests() == 0);
}

TEST_CASE("a full queue is 429 with a time to come back") {
    world w;
    w.core.on(w.request(1, "a"), w.commands);
    w.prepare_now();
    w.take();
    w.core.on(enqueue_result{request_id(1), false, 7, refusal::queue_full}, w.commands);
    const auto commands = w.take();
    REQUIRE(commands.size() == 1);
    const auto& error = std::get<rejected>(std::get<send_to_client>(commands[0]).message).error;
    CHECK(error.status == 429);
    CHECK(error.retry_after_s == 7);
    CHECK(w.core.requests() == 0);
}

TEST_CASE("a request that meets a Scheduler that stops, or one whose device failed, hears so: that is no full queue") {
    struct {
        refusal why;
        unsigned status;
        const char* code;
    } const expected[] = {{refusal::shutting_down, 503, "shutting_down"},
                          {refusal::out_of_order, 503, "unavailable"},
                          {refusal::malformed, 500, "internal_error"}};
    for (const auto& each : expected) {
        world w;
        w.core.on(w.request(1, "a"), w.commands);
        w.prepare_now();
        w.take();
        w.core.on(enqueue_result{request_id(1), false, 0, each.why}, w.commands);
        const auto commands = w.take();
        REQUIRE(commands.size() == 1);
        const auto& error = std::get<rejected>(std::get<send_to_client>(commands[0]).message).error;
        CHECK(error.status == each.status);
        CHECK(error.code == each.code);
    }
}

TEST_CASE("each request has one outcome: those that never reached the Scheduler are counted here") {
    world w;
    const auto numbers = std::make_shared<telemetry>();
    w.core = frontend_core{frontend_options{}, w.model, numbers};
    w.core.on(w.request(1, "a"), w.commands);
    w.core.on(cancel_request{request_id(1)}, w.commands);
    w.prepare_now();
    CHECK(numbers->requests_cancelled == 1);
    w.start(w.request(2, "b"));                   // running
    w.core.on(w.request(3, "c"), w.commands);     // being prepared
    w.core.fail_all(error_of(failure_kind::internal, {}), w.commands);
    CHECK(numbers->requests_failed == 1);
    CHECK(numbers->requests_rejected == 1);
    CHECK(numbers->requests_cancelled == 1);
}

TEST_CASE("a failed choice fails the request when the last one ended, and only it") {
    world w;
    auto s = w.request(1, "a");
    s.n = 2;
    w.start(s);
    w.start(w.request(2, "b"));
    w.row(1, no_token, finish_reason::error, 0, failure_kind::not_finite);
    CHECK(w.said() == "|");
    w.row(1, 'x', finish_reason::stop, 1);
    CHECK(w.said() == "x|failed:logits_not_finite");
    w.row(2, 'y', finish_reason::stop);
    CHECK(w.said() == "y|finished");
}

TEST_CASE("usage counts the prompt once and the answers of all choices") {  // O2
    world w;
    auto s = w.request(1, std::string(100, 'a'));
    s.n = 2;
    w.start(s);
    w.row(1, 'x', finish_reason::stop, 0);
    w.row(1, 'y', finish_reason::stop, 1);
    const auto commands = w.take();
    const auto& usage = std::get<finished>(std::get<send_to_client>(commands.back()).message).usage;
    CHECK(usage.prompt_tokens == 100);
    CHECK(usage.cached_tokens == 64);
    CHECK(usage.completion_tokens == 2);
    CHECK(usage.source == "device");
}

TEST_CASE("echo puts the prompt's text first") {
    world w;
    auto s = w.request(1, "ab");
    s.echo = true;
    w.start(s);
    w.row(1, 'x');
    w.row(1, 'y', finish_reason::length);
    CHECK(w.said() == "abx|y|finished");
}

TEST_CASE("a prompt scored in chunks is echoed once, with all its scores, when the answer begins") {
    world w;
    submit s = w.request(1, "abcdef");
    s.echo = true;
    s.report.prompt_logprobs = true;
    w.start(s);
    for (int chunk = 0; chunk < 3; ++chunk) {
        CHECK(w.said().empty());
        choice_output out;
        out.request = request_id(1);
        out.row.prompt_logprobs = {-1.0f - static_cast<float>(2 * chunk), -2.0f - static_cast<float>(2 * chunk)};
        if (chunk == 2) out.row.token = 'g';
        w.core.on(outputs{{out}}, w.commands);
    }
    const frontend_commands sent = w.take();
    REQUIRE(sent.size() == 1);
    const auto& delta = std::get<text_delta>(std::get<send_to_client>(sent[0]).message);
    CHECK(delta.text == "abcdefg");
    REQUIRE(delta.prompt.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(delta.prompt[i].token == static_cast<token_id>('a' + i));
        CHECK(delta.prompt[i].logprob == -1.0f - static_cast<float>(i));
    }
}

TEST_CASE("the echo of tokens that hold half characters is text: repaired, never cut in the middle") {
    world w;
    submit s;
    s.request = request_id(1);
    s.kind = prompt_kind::tokens;
    s.prompt_tokens = token_run({'a', 0xA9, 0xC3, 0xA9, 'b', 0xC3});
    s.echo = true;
    s.max_tokens = 4;
    w.start(s);
    w.row(1, 'c');
    CHECK(w.said() == "a\xEF\xBF\xBD\xC3\xA9" "bc|");
}

TEST_CASE("a drained core takes nothing new and finishes what it has") {
    world w;
    w.start(w.request(1, "a"));
    w.core.drain();
    w.core.on(w.request(2, "b"), w.commands);
    CHECK(w.said() == "rejected:503");
    w.row(1, 'x', finish_reason::stop);
    CHECK(w.said() == "x|finished");
}

TEST_CASE("when the Scheduler is gone every request ends") {
    world w;
    w.start(w.request(1, "a"));
    w.core.on(w.request(2, "b"), w.commands);
    w.take();
    w.core.fail_all(error_of(failure_kind::internal, ""), w.commands);
    const auto said = w.said();
    CHECK(said.find("failed:internal_error") != std::string::npos);
    CHECK(said.find("rejected:500") != std::string::npos);
    CHECK(w.core.requests() == 0);
}

TEST_CASE("an id without a token is no text and no fault") {  // a model may have more rows than tokens
    world w;
    w.start(w.request(1, "a"));
    w.row(1, 'x');
    w.row(1, 258);
    w.row(1, 100'000);
    w.row(1, 'y', finish_reason::length);
    CHECK(w.said() == "x|y|finished");
}

TEST_CASE("scores of a long prompt carry the prompt's own tokens, chunk after chunk") {
    world w;
    auto s = w.request(1, std::string(5, 'a') + std::string(5, 'b'));
    s.echo = true;
    s.report.logprobs = s.report.prompt_logprobs = true;
    w.start(s);
    std::string labels;
    const auto collect = [&] {
        for (const auto& command : w.take())
            if (const auto* sent = std::get_if<send_to_client>(&command))
                if (const auto* delta = std::get_if<text_delta>(&sent->message))
                    for (const token_report& each : delta->prompt) labels += each.bytes;
    };
    for (const std::size_t chunk : {5U, 3U, 2U}) {
        choice_output out;
        out.request = request_id(1);
        out.row.prompt_logprobs.assign(chunk, -1.0F);
        w.core.on(outputs{{out}}, w.commands);
        collect();
    }
    w.row(1, 'x', finish_reason::length);
    collect();
    CHECK(labels == "aaaaabbbbb");
}

TEST_CASE("unseeded requests of another life draw other seeds") {
    const auto drawn = [](std::uint64_t life) {
        world w;
        w.core = frontend_core({.seed = 5, .life = life}, w.model);
        w.core.on(w.request(1, "a"), w.commands);
        return std::get<hand_to_preparer>(w.take().at(0)).drawn_seed;
    };
    CHECK(drawn(1) == drawn(1));
    CHECK(drawn(1) != drawn(2));
}

TEST_CASE("what is being prepared for nobody is marked so") {
    world w;
    const auto begun = [&](std::uint64_t id) {
        w.core.on(w.request(id, "a"), w.commands);
        return std::get<hand_to_preparer>(w.take().at(0)).given_up;
    };
    const auto cancelled = begun(1), forgotten = begun(2), lost = begun(3);
    CHECK_FALSE(*cancelled);
    w.core.on(cancel_request{request_id(1)}, w.commands);
    CHECK(*cancelled);
    w.core.forget(request_id(2), w.commands);
    CHECK(*forgotten);
    CHECK_FALSE(*lost);
    w.core.fail_all(error_of(failure_kind::internal, ""), w.commands);
    CHECK(*lost);
}

TEST_CASE("a request holds what it keeps of the node's memory, from submit to its end") {
    world w;
    auto budget = std::make_shared<byte_budget>(1'000'000);
    const auto begin = [&](std::uint64_t id, std::size_t bytes) {
        byte_lease room(budget);
        REQUIRE(room.resize(bytes));
        w.core.on(w.request(id, "abc"), w.commands, std::move(room));
    };
    begin(1, 600'000);
    CHECK(budget->used() == 600'000);
    byte_lease another(budget);
    CHECK_FALSE(another.resize(400'001));  // all together, not each
    CHECK(another.resize(400'000));
    CHECK(another.resize(0));
    w.prepare_now();
    CHECK(budget->used() < 20'000);  // the sent text is gone; prompt and choice remain
    CHECK(budget->used() > 3 * sizeof(token_id));
    w.core.on(enqueue_result{request_id(1), true, 0, refusal::none}, w.commands);
    w.row(1, 'x', finish_reason::length);
    CHECK(w.said() == "accepted x|finished");
    CHECK(budget->used() == 0);

    // Many choices keep more than the text that asked for them: what doesn't fit is refused.
    byte_lease most(budget);
    REQUIRE(most.resize(900'000));
    byte_lease room(budget);
    REQUIRE(room.resize(1'000));
    auto s = w.request(2, "abc");
    s.n = 128;
    w.core.on(std::move(s), w.commands, std::move(room));
    w.prepare_now();
    CHECK(w.said() == "rejected:429");
    CHECK(budget->used() == 900'000);
}

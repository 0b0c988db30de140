// The Frontend's core without memory: whichever allocation fails, the request it was for ends with a word, others go on,
// and nothing is thrown at the caller.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "actors/cores/frontend.hpp"
#include "tests/support/byte_vocabulary.hpp"

namespace {

thread_local long fail_at = -1;  // counts down while not negative; at 0 one allocation fails

void* maybe(std::size_t bytes) noexcept {
    if (fail_at >= 0 && fail_at-- == 0) return nullptr;
    return std::malloc(bytes ? bytes : 1);
}
void* surely(std::size_t bytes) {
    if (void* p = maybe(bytes)) return p;
    throw std::bad_alloc();
}

}  // namespace

// All forms that pair with each other are replaced.
void* operator new(std::size_t bytes) { return surely(bytes); }
void* operator new[](std::size_t bytes) { return surely(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return maybe(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return maybe(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

using namespace fermata;

namespace {

submit request(std::uint64_t id) {
    submit s;
    s.request = request_id(id);
    s.kind = prompt_kind::text;
    s.prompt_text = "a prompt that is too long for a small string";
    s.max_tokens = 32;
    s.stop = {"a stop string that is too long for a small string"};
    s.report.logprobs = true;
    return s;
}

choice_output row(std::uint64_t id, token_id token, finish_reason finish) {
    choice_output out;
    out.request = request_id(id);
    out.row.token = token;
    out.row.finish = finish;
    out.row.top_logprobs = {{'a', -1.0F}, {'b', -2.0F}};
    if (finish != finish_reason::none) out.usage = std::make_shared<sequence_usage>();
    return out;
}

// A request's whole life, with the `n`-th allocation inside the core failing; another request stands by.
struct life {
    std::shared_ptr<const text_model> model =
        std::make_shared<const text_model>(text::tokenizer::from_vocabulary(tests::byte_vocabulary()), "");
    frontend_core core{frontend_options{}, model};
    frontend_commands commands;
    long left;
    int ends = 0, other_ends = 0, cancels = 0, enqueues = 0;

    explicit life(long n) : left(n) {}

    template <class Event>
    void feed(Event event, bool failing) {
        if (failing) fail_at = left;
        core.on(std::move(event), commands);  // throws nothing
        if (failing) left = fail_at, fail_at = -1;
        while (!commands.empty()) {
            auto taken = std::exchange(commands, {});
            for (auto& command : taken) take(command);
        }
    }
    void take(frontend_command& command) {
        if (auto* work = std::get_if<hand_to_preparer>(&command)) {
            planning_limits limits;
            limits.vocabulary = 258;
            feed(prepare(*work->request, *model, limits, work->drawn_seed, 0), work->request->request == request_id(1));
        }
        if (auto* sent = std::get_if<send_to_client>(&command)) {
            const auto kind = sent->message.index();
            const bool end = kind == 1 || kind >= 3;  // rejected, finished, failed
            (sent->request == request_id(1) ? ends : other_ends) += end ? 1 : 0;
        }
        if (auto* order = std::get_if<send_to_scheduler>(&command)) {
            if (const auto* e = std::get_if<enqueue>(&order->message)) {
                ++enqueues;
                feed(enqueue_result{e->request, true, 0, refusal::none}, e->request == request_id(1));
            } else {
                ++cancels;
            }
        }
    }
    bool run() {
        feed(request(2), false);
        feed(request(1), true);
        for (const char c : std::string("xyz"))
            feed(outputs{{row(1, c, finish_reason::none), row(2, c, finish_reason::none)}}, true);
        feed(outputs{{row(1, 'e', finish_reason::length)}}, true);
        return left >= 0;  // nothing failed: there are not so many allocations
    }
};

}  // namespace

TEST_CASE("whichever allocation fails, one request ends with a word and no exception leaves the core") {
    bool over = false;
    int failed_lives = 0;
    for (long n = 0; !over; ++n) {
        CAPTURE(n);
        REQUIRE(n < 10'000);
        life one(n);
        REQUIRE_NOTHROW(over = one.run());
        if (!over) ++failed_lives;
        // The failure may have hit either of two requests in one message; each that ended has ended once.
        CHECK(one.ends == 1);
        CHECK(one.other_ends <= 1);
        CHECK(one.core.requests() == 1U - static_cast<unsigned>(one.other_ends));
        if (one.other_ends == 0) one.feed(outputs{{row(2, 'e', finish_reason::stop)}}, false);
        CHECK(one.other_ends == 1);
        CHECK(one.core.requests() == 0);
    }
    CHECK(failed_lives > 20);
}

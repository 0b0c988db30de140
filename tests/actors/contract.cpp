// What the CAF shells promise, whatever the cores decide: restart and last words, deadlines, order of shutdown, one
// exchange a cycle, cancel under way, the door for remote peers.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>

#include "actors/embed.hpp"
#include "actors/journal/reader.hpp"
#include "actors/node_impl.hpp"
#include "messages/wire/schema.hpp"
#include "node_support.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

// A device that can be told to fail, to throw, or to hold a unit until it is released.
struct device_switch {
    std::atomic<bool> fail{false};
    std::atomic<int> built{0};
    std::atomic<std::uint64_t> units{0};
    std::atomic<bool> hold{false};
};

class switched_model final : public model {
public:
    switched_model(std::unique_ptr<model> inner, std::shared_ptr<device_switch> control)
        : inner_(std::move(inner)), control_(std::move(control)) {
        ++control_->built;
    }
    const model_layout& layout() const noexcept override { return inner_->layout(); }
    void prepare(std::uint32_t tokens, std::uint32_t rows) override { inner_->prepare(tokens, rows); }
    void attach(const context_memory& memory) override { inner_->attach(memory); }
    unit_status run(const unit& work) override {
        ++control_->units;
        control_->units.notify_all();
        control_->hold.wait(true);
        if (control_->fail) throw std::runtime_error("the device caught fire");
        return inner_->run(work);
    }

private:
    std::unique_ptr<model> inner_;
    std::shared_ptr<device_switch> control_;
};

node_options switched_node(std::shared_ptr<device_switch> control) {
    auto options = small_node();
    options.load_model = [control] { return std::make_unique<switched_model>(oracle::make(small_oracle()), control); };
    return options;
}

// Waits for a phase without sleeping: the log of the node is the signal.
class log_watch {
public:
    void operator()(const std::string& line) {
        std::lock_guard lock(mutex_);
        lines_.push_back(line);
        changed_.notify_all();
    }
    bool wait(const std::string& part, int times = 1) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, patience, [&] {
            int found = 0;
            for (const auto& line : lines_) found += line.find(part) != std::string::npos ? 1 : 0;
            return found >= times;
        });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> lines_;
};

void answers_rightly(node& server, token_id start = 5) {
    auto sink = send(server, some_prompt(33, start), 9);
    REQUIRE(sink->wait_end());
    CHECK(sink->error.message == "");
    REQUIRE(sink->was_finished);
    CHECK(sink->answers.at(0) == right_answer(some_prompt(33, start), 9));
}

template <class Handle>
void kill(const Handle& whom) {
    caf::anon_send_exit(whom, caf::exit_reason::kill);
}

}  // namespace

TEST_CASE("a dead Scheduler, ResourceManager, Transfer or preparer is replaced; Program stays") {
    for (int which = 0; which < 4; ++which) {
        CAPTURE(which);
        auto control = std::make_shared<device_switch>();
        auto log = std::make_shared<log_watch>();
        auto options = switched_node(control);
        options.log = [log](const std::string& line) { (*log)(line); };
        // The wiring is the supervisor's; an application that spawns its own actors has the handles. Here they are
        // caught as they are spawned, by the registry of the node's system.
        node server(std::move(options));
        server.start();
        answers_rightly(server);
        auto peers = server.inside().state->peers();
        REQUIRE(peers);
        auto under_way = send(server, some_prompt(40), 900);
        REQUIRE(under_way->wait_deltas(3));
        switch (which) {
            case 0: kill(peers->scheduler); break;
            case 1: kill(peers->resource_manager); break;
            case 2: kill(peers->transfer); break;
            default: kill(peers->preparers.front()); break;
        }
        REQUIRE(under_way->wait_end());
        CHECK(under_way->was_failed);  // never a silent stop
        CHECK(under_way->error.status == 500);
        REQUIRE(log->wait("restarted; "));
        CHECK(server.health().accepting);
        CHECK(server.restarts() == 1);
        CHECK(control->built == 1);  // only a failed device is built anew
        answers_rightly(server);
        CHECK(server.stop(5s).in_order);
    }
}

TEST_CASE("a dead Frontend is replaced and its clients hear an end") {
    auto log = std::make_shared<log_watch>();
    auto options = small_node();
    options.log = [log](const std::string& line) { (*log)(line); };
    node server(std::move(options));
    server.start();
    auto under_way = send(server, some_prompt(40), 900);
    REQUIRE(under_way->wait_deltas(3));
    kill(server.inside().state->frontend());
    REQUIRE(under_way->wait_end());
    CHECK(under_way->was_failed);
    REQUIRE(log->wait("restarted; "));
    answers_rightly(server);
}

TEST_CASE("a node that rests after a restart under way is healthy however long it rests") {
    auto now = std::make_shared<std::atomic<time_ns>>(1'000'000'000);
    auto log = std::make_shared<log_watch>();
    auto options = small_node();
    options.clock = [now] { return now->load(); };
    options.stall_limit_s = 30;
    options.log = [log](const std::string& line) { (*log)(line); };
    node server(std::move(options));
    server.start();
    auto under_way = send(server, some_prompt(40), 900);
    REQUIRE(under_way->wait_deltas(3));
    kill(server.inside().state->peers()->scheduler);
    REQUIRE(under_way->wait_end());
    REQUIRE(log->wait("restarted; "));
    *now += 1000 * time_ns{1'000'000'000};
    CHECK(server.health().accepting);
    CHECK(server.health().reason == "");
    CHECK(server.numbers()->lanes_used == 0);
    CHECK(server.numbers()->requests_decode == 0);
    CHECK(server.numbers()->requests_failed == 1);
}

TEST_CASE("a broken node without a Frontend says why to whoever asks") {
    auto log = std::make_shared<log_watch>();
    auto options = small_node();
    options.restarts_max = 0;
    options.log = [log](const std::string& line) { (*log)(line); };
    node server(std::move(options));
    server.start();
    kill(server.inside().state->frontend());
    REQUIRE(log->wait("not restarted"));
    auto late = send(server, some_prompt(10), 4);
    REQUIRE(late->wait_end());
    CHECK(late->was_rejected);
    CHECK(late->error.status == 503);
    CHECK(late->error.message.find("Frontend ended") != std::string::npos);
}

TEST_CASE("a supervisor that fails takes the node with it, and stop doesn't wait for it") {
    auto options = small_node();
    options.log = [](const std::string&) { throw std::runtime_error("nowhere to write"); };
    node server(std::move(options));
    server.start();
    auto under_way = send(server, some_prompt(40), 900);
    REQUIRE(under_way->wait_deltas(3));
    kill(server.inside().state->peers()->scheduler);
    REQUIRE(under_way->wait_end());
    CHECK(under_way->was_failed);
    const auto report = server.stop(5s);
    CHECK_FALSE(report.in_order);
    CHECK_FALSE(server.health().accepting);
}

TEST_CASE("a failed device fails its requests and Program is built anew, at the second try if need be") {
    auto control = std::make_shared<device_switch>();
    auto log = std::make_shared<log_watch>();
    auto options = switched_node(control);
    options.restarts_max = 1000;
    options.restart_delay_ms = 0;
    options.log = [log](const std::string& line) { (*log)(line); };
    node server(std::move(options));
    server.start();
    auto under_way = send(server, some_prompt(40), 900);
    REQUIRE(under_way->wait_deltas(2));
    control->fail = true;
    REQUIRE(under_way->wait_end());
    CHECK(under_way->was_failed);
    REQUIRE(log->wait("could not restart: warm-up: "));  // it still burns
    CHECK_FALSE(server.health().accepting);
    control->fail = false;
    REQUIRE(log->wait("restarted; "));
    CHECK(control->built >= 2);
    answers_rightly(server);
}

TEST_CASE("a device that fails for good breaks the node, which says why") {
    auto control = std::make_shared<device_switch>();
    auto log = std::make_shared<log_watch>();
    auto options = switched_node(control);
    options.log = [log](const std::string& line) { (*log)(line); };
    options.restarts_max = 2;
    options.warm_up = false;
    node server(std::move(options));
    server.start();
    control->fail = true;
    for (int i = 0; i < 3; ++i) {
        auto sink = send(server, some_prompt(10), 4);
        REQUIRE(sink->wait_end());
        CHECK_FALSE(sink->was_finished);
        if (i < 2) REQUIRE(log->wait("restarted; ", i + 1));
    }
    REQUIRE(log->wait("not restarted"));
    const auto health = server.health();
    CHECK_FALSE(health.accepting);
    CHECK(health.reason.find("restarts_max") != std::string::npos);
    auto late = send(server, some_prompt(10), 4);
    REQUIRE(late->wait_end());
    CHECK(late->was_rejected);
}

TEST_CASE("rare deaths of a long life never break the node") {
    auto now = std::make_shared<std::atomic<time_ns>>(1'000'000'000);
    auto log = std::make_shared<log_watch>();
    auto options = small_node();
    options.clock = [now] { return now->load(); };
    options.restarts_max = 2;
    options.restart_forgiven_s = 600;
    options.log = [log](const std::string& line) { (*log)(line); };
    node server(std::move(options));
    server.start();
    for (int i = 1; i <= 4; ++i) {
        *now += time_ns{601} * 1'000'000'000;
        kill(server.inside().state->peers()->scheduler);
        REQUIRE(log->wait("restarted; ", i));
        answers_rightly(server);
    }
    CHECK(server.restarts() == 4);
    for (int i = 5; i <= 6; ++i) {  // without a quiet stretch between them they add up
        kill(server.inside().state->peers()->scheduler);
        if (i < 6) REQUIRE(log->wait("restarted; ", i));
    }
    REQUIRE(log->wait("not restarted"));
}

TEST_CASE("fault 88: health answers while the device is stuck, and says when nothing moves") {
    auto control = std::make_shared<device_switch>();
    auto now = std::make_shared<std::atomic<time_ns>>(1'000'000'000);
    auto options = switched_node(control);
    options.clock = [now] { return now->load(); };
    options.stall_limit_s = 30;
    node server(std::move(options));
    server.start();
    control->hold = true;
    const auto units = control->units.load();
    auto stuck = send(server, some_prompt(10), 4);
    control->units.wait(units);  // the unit is on the device, and stays there
    CHECK(server.health().accepting);
    *now += 31 * time_ns{1'000'000'000};
    const auto health = server.health();
    CHECK_FALSE(health.accepting);
    CHECK(health.reason == "work is waiting, but nothing was computed for 31 s (limit 30 s)");
    control->hold = false;
    control->hold.notify_all();
    REQUIRE(stuck->wait_end());
    CHECK(stuck->was_finished);
    CHECK(server.health().accepting);
}

TEST_CASE("stop lets accepted work finish, then cuts it short") {
    {
        node server(small_node());
        server.start();
        auto sink = send(server, some_prompt(20), 200);
        REQUIRE(sink->wait_deltas(1));
        const auto report = server.stop(60s);
        CHECK(report.cut_short == 0);
        CHECK(report.in_order);
        CHECK(sink->was_finished);
        CHECK(sink->answers.at(0) == right_answer(some_prompt(20), 200));
    }
    {
        node server(small_node());
        server.start();
        auto sink = send(server, some_prompt(20), 1000);
        REQUIRE(sink->wait_deltas(1));
        const auto report = server.stop(0ms);
        CHECK(report.in_order);
        REQUIRE(sink->wait_end());
        CHECK((sink->was_finished || (sink->was_failed && report.cut_short == 1)));
        if (sink->was_failed) CHECK(sink->error.code == "shutting_down");
    }
}

TEST_CASE("a request under way is cancelled; the lane serves the next") {
    auto options = small_node();
    options.program.max_concurrency = 1;
    node server(std::move(options));
    server.start();
    request_id id;
    auto sink = send(server, some_prompt(20), 1000, &id);
    auto waiting = send(server, some_prompt(21, 9), 5);
    REQUIRE(sink->wait_deltas(2));
    server.cancel(id);
    server.cancel(id);  // idempotent
    REQUIRE(sink->wait_end());
    CHECK(sink->was_failed);
    CHECK(sink->error.status == 499);
    REQUIRE(waiting->wait_end());
    CHECK(waiting->answers.at(0) == right_answer(some_prompt(21, 9), 5));
    server.cancel(id);
    server.cancel(request_id(123456));  // nobody's
    answers_rightly(server);
}

TEST_CASE("steady decode is one plan and one answer a cycle, nothing else") {
    const std::string file = "contract_steady.journal";
    std::remove(file.c_str());
    auto options = small_node();
    options.program.max_context_tokens = 2048;
    options.journal.file = file;
    node server(std::move(options));
    server.start();
    auto sink = send(server, some_prompt(10), 1100);
    REQUIRE(sink->wait_end());
    CHECK(sink->answers.at(0).size() == 1100);
    server.stop(1s);

    const auto bytes = read_journal_files(file);
    journal_reader reader(bytes);
    journal_record record;
    std::vector<std::string> types;  // of messages between the actors, client deltas aside
    std::uint64_t plans = 0;
    std::map<std::string, std::uint64_t> steady;
    while (reader.next(record)) {
        std::string type = "tick";
        if (const auto* message = std::get_if<bus_message>(&record.content)) {
            type = wire::enum_name(record.from);
            type += "->";
            type += wire::enum_name(record.to);
            if (const auto* plan = std::get_if<cycle_plan>(message)) {
                ++plans;
                type += plan->decodes.size() == 1 && plan->binds.empty() && plan->prefills.empty() ? " decode" : " other";
            }
        }
        ++steady[type];
    }
    // Counted over the whole run: receivers record when they get to a message, so the records of one cycle may lie apart.
    const std::uint64_t decodes = steady["scheduler->program decode"];
    CHECK(decodes >= 1000);
    CHECK(steady["program->scheduler"] == plans);     // one answer a plan
    CHECK(steady["scheduler->frontend"] <= plans + 1);  // outputs, and the acceptance
    std::uint64_t rest = 0;
    for (const auto& [type, count] : steady)
        if (type != "scheduler->program decode" && type != "program->scheduler" && type != "scheduler->frontend") rest += count;
    CHECK(rest < 20);  // the request coming and going; nothing that grows with the cycles
    std::remove(file.c_str());
}

TEST_CASE("a remote peer comes in through the gate; another schema is refused") {
    auto options = small_node();
    options.caf_publish = true;
    node server(std::move(options));
    server.start();
    REQUIRE(server.published_port() != 0);

    auto config = bus::make_config(2, true);
    caf::actor_system elsewhere{*config};
    std::string error;
    CHECK_FALSE(connect_with_schema(elsewhere, "127.0.0.1", server.published_port(), wire::schema_hash() ^ 1, 20s, error));
    CHECK(error.find("refused") != std::string::npos);
    CHECK(error.find("schema") != std::string::npos);

    auto frontend = connect_to_node(elsewhere, "127.0.0.1", server.published_port(), 20s, error);
    REQUIRE_MESSAGE(frontend, error);

    // A client that is an actor over there.
    struct heard {
        std::promise<std::vector<token_id>> answer;
        std::vector<token_id> tokens;
        bool was_accepted = false;
    };
    auto state = std::make_shared<heard>();
    auto answer = state->answer.get_future();
    auto client = elsewhere.spawn([state](client_actor::pointer) -> client_actor::behavior_type {
        return {
            [state](const accepted&) { state->was_accepted = true; },
            [state](const rejected&) { state->answer.set_value({-1}); },
            [state](const text_delta& m) {
                for (const auto& each : m.tokens) state->tokens.push_back(each.token);
            },
            [state](const finished& m) {
                if (m.request != request_id(42)) state->tokens.clear();
                state->answer.set_value(state->tokens);
            },
            [state](const failed&) { state->answer.set_value({-2}); },
        };
    });
    bus::tell_from_outside(*frontend, token_request(request_id(42), some_prompt(25), 12), client);
    REQUIRE(answer.wait_for(patience) == std::future_status::ready);
    CHECK(answer.get() == right_answer(some_prompt(25), 12));
    CHECK(state->was_accepted);

    const auto text = bus::ask<tokenized>(elsewhere, *frontend, 20s, error, tokenize_text{});
    REQUIRE_MESSAGE(text, error);
    CHECK(text->error);  // the oracle has no text
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
}

TEST_CASE("a client actor that goes away cancels its requests") {
    auto options = small_node();
    options.program.max_concurrency = 1;
    node server(std::move(options));
    server.start();
    auto& system = *server.inside().state->system;
    auto begun = std::make_shared<std::promise<void>>();
    auto client = system.spawn([begun, told = false](client_actor::pointer) mutable -> client_actor::behavior_type {
        auto once = std::make_shared<bool>(false);
        return {
            [](const accepted&) {}, [](const rejected&) {},
            [begun, once](const text_delta&) {
                if (!std::exchange(*once, true)) begun->set_value();
            },
            [](const finished&) {}, [](const failed&) {},
        };
    });
    bus::tell_from_outside(frontend_of(server), token_request(request_id(1), some_prompt(20), 1000), client);
    REQUIRE(begun->get_future().wait_for(patience) == std::future_status::ready);
    caf::anon_send_exit(client, caf::exit_reason::kill);
    // The one lane is free again long before 1000 tokens were wanted by nobody.
    answers_rightly(server);
    CHECK(server.numbers()->requests_cancelled == 1);
}

TEST_CASE("nobody answers: connecting ends at the deadline with a reason") {
    auto config = bus::make_config(2, true);
    caf::actor_system system{*config};
    std::string error;
    CHECK_FALSE(connect_to_node(system, "127.0.0.1", 1, 5s, error));  // port 1: nothing listens there
    CHECK(error.find("no node at 127.0.0.1:1") == 0);
}

TEST_CASE("a node inside an application's own actor system") {
    auto config = bus::make_config(4, false);
    caf::actor_system system{*config};
    node server(small_node(), &system);
    server.start();
    answers_rightly(server);
    server.stop(1s);
    system.await_all_actors_done();  // the node left nothing behind
}

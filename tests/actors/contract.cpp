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

// A device that can be told to fail, and to keep a unit until it is released: what a test does meanwhile is done while
// the request is under way for certain, however slow the machine.
class device_switch {
public:
    std::atomic<bool> fail{false};
    std::atomic<int> built{0};

    // The `count`-th unit from now stays on the device.
    void hold_after(int count) {
        std::lock_guard lock(mutex_);
        before_hold_ = count;
    }
    bool wait_held() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, patience, [&] { return held_; });
    }
    void release() {
        std::lock_guard lock(mutex_);
        held_ = false;
        changed_.notify_all();
    }
    // The device's side.
    void pass() {
        std::unique_lock lock(mutex_);
        if (before_hold_ == 0 || --before_hold_ > 0) return;
        held_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return !held_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int before_hold_ = 0;
    bool held_ = false;
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
        control_->pass();
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

std::shared_ptr<log_watch> log_of(node_options& options) {
    auto log = std::make_shared<log_watch>();
    options.log = [log](const std::string& line) { (*log)(line); };
    return log;
}

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
            auto options = switched_node(control);
        const auto log = log_of(options);
        node server(std::move(options));
        server.start();
        answers_rightly(server);
        auto peers = server.inside().state->peers();
        REQUIRE(peers);
        control->hold_after(4);
        auto under_way = send(server, some_prompt(40), 900);
        REQUIRE(control->wait_held());
        switch (which) {
            case 0: kill(peers->scheduler); break;
            case 1: kill(peers->resource_manager); break;
            case 2: kill(peers->transfer); break;
            default: kill(peers->preparers.front()); break;
        }
        REQUIRE(under_way->wait_end());
        CHECK(under_way->was_failed);  // never a silent stop
        CHECK(under_way->error.status == 500);
        control->release();
        REQUIRE(log->wait("restarted; "));
        CHECK(server.health().accepting);
        CHECK(server.restarts() == 1);
        CHECK(control->built == 1);  // only a failed device is built anew
        answers_rightly(server);
        CHECK(server.stop(5s).in_order);
    }
}

TEST_CASE("a dead Frontend is replaced and its clients hear an end") {
    auto control = std::make_shared<device_switch>();
    auto options = switched_node(control);
    const auto log = log_of(options);
    node server(std::move(options));
    server.start();
    control->hold_after(4);
    auto under_way = send(server, some_prompt(40), 900);
    REQUIRE(control->wait_held());
    kill(server.inside().state->frontend());
    REQUIRE(under_way->wait_end());
    CHECK(under_way->was_failed);
    control->release();
    REQUIRE(log->wait("restarted; "));
    answers_rightly(server);
}

TEST_CASE("a node that rests after a restart under way is healthy however long it rests") {
    auto now = std::make_shared<std::atomic<time_ns>>(1'000'000'000);
    auto control = std::make_shared<device_switch>();
    auto options = switched_node(control);
    options.clock = [now] { return now->load(); };
    options.stall_limit_s = 30;
    const auto log = log_of(options);
    node server(std::move(options));
    server.start();
    control->hold_after(4);
    auto under_way = send(server, some_prompt(40), 900);
    REQUIRE(control->wait_held());
    kill(server.inside().state->peers()->scheduler);
    REQUIRE(under_way->wait_end());
    control->release();
    REQUIRE(log->wait("restarted; "));
    *now += 1000 * time_ns{1'000'000'000};
    CHECK(server.health().accepting);
    CHECK(server.health().reason == "");
    CHECK(server.numbers()->lanes_used == 0);
    CHECK(server.numbers()->requests_decode == 0);
    CHECK(server.numbers()->requests_failed == 1);
}

TEST_CASE("a broken node without a Frontend says why to whoever asks") {
    auto options = small_node();
    options.restarts_max = 0;
    const auto log = log_of(options);
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
    auto control = std::make_shared<device_switch>();
    auto options = switched_node(control);
    options.log = [](const std::string&) { throw std::runtime_error("nowhere to write"); };
    node server(std::move(options));
    server.start();
    control->hold_after(4);
    auto under_way = send(server, some_prompt(40), 900);
    REQUIRE(control->wait_held());
    kill(server.inside().state->peers()->scheduler);
    REQUIRE(under_way->wait_end());
    CHECK(under_way->was_failed);
    control->release();
    const auto report = server.stop(5s);
    CHECK_FALSE(report.in_order);
    CHECK_FALSE(server.health().accepting);
}

TEST_CASE("a failed device fails its requests and Program is built anew, at the second try if need be") {
    auto control = std::make_shared<device_switch>();
    auto log = std::make_shared<log_watch>();
    auto options = switched_node(control);
    options.restart_delay_ms = 0;
    node* self = nullptr;
    std::atomic<int> refused{0};
    // The supervisor says it between two tries: the device burns in the first and is well in the second.
    options.log = [log, control, &self, &refused](const std::string& line) {
        if (line.find("could not restart: warm-up: ") != std::string::npos) {
            if (!self->health().accepting) ++refused;
            control->fail = false;
        }
        (*log)(line);
    };
    node server(std::move(options));
    self = &server;
    server.start();
    control->hold_after(3);
    auto under_way = send(server, some_prompt(40), 900);
    REQUIRE(control->wait_held());
    control->fail = true;
    control->release();
    REQUIRE(under_way->wait_end());
    CHECK(under_way->was_failed);
    REQUIRE(log->wait("restarted; "));
    CHECK(refused == 1);
    CHECK(control->built == 3);  // at the start, in the try that failed, in the one that didn't
    answers_rightly(server);
}

TEST_CASE("a device that fails for good breaks the node, which says why") {
    auto control = std::make_shared<device_switch>();
    auto options = switched_node(control);
    const auto log = log_of(options);
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
    auto options = small_node();
    options.clock = [now] { return now->load(); };
    options.restarts_max = 2;
    options.restart_forgiven_s = 600;
    const auto log = log_of(options);
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
    control->hold_after(1);
    auto stuck = send(server, some_prompt(10), 4);
    REQUIRE(control->wait_held());
    CHECK(server.health().accepting);
    *now += 31 * time_ns{1'000'000'000};
    const auto health = server.health();
    CHECK_FALSE(health.accepting);
    CHECK(health.reason == "work is waiting, but nothing was computed for 31 s (limit 30 s)");
    control->release();
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
        auto control = std::make_shared<device_switch>();
        node server(switched_node(control));
        server.start();
        control->hold_after(3);
        auto sink = send(server, some_prompt(20), 1000);
        REQUIRE(control->wait_held());
        auto stopped = std::async(std::launch::async, [&] { return server.stop(0ms); });
        REQUIRE(sink->wait_end());  // before the device is done
        CHECK(sink->was_failed);
        CHECK(sink->error.code == "shutting_down");
        control->release();
        const auto report = stopped.get();
        CHECK(report.in_order);
        CHECK(report.cut_short == 1);
    }
}

TEST_CASE("a request under way is cancelled; the lane serves the next") {
    auto control = std::make_shared<device_switch>();
    auto options = switched_node(control);
    options.program.max_concurrency = 1;
    node server(std::move(options));
    server.start();
    control->hold_after(3);
    request_id id;
    auto sink = send(server, some_prompt(20), 1000, &id);
    auto waiting = send(server, some_prompt(21, 9), 5);
    REQUIRE(control->wait_held());
    server.cancel(id);
    server.cancel(id);  // idempotent
    REQUIRE(sink->wait_end());  // nobody waits for the device
    CHECK(sink->was_failed);
    CHECK(sink->error.status == 499);
    control->release();
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
    CHECK_FALSE(connect_with_schema(elsewhere, "127.0.0.1", server.published_port(), wire::schema_hash() ^ 1, patience, error));
    CHECK(error.find("refused") != std::string::npos);
    CHECK(error.find("schema") != std::string::npos);

    auto frontend = connect_to_node(elsewhere, "127.0.0.1", server.published_port(), patience, error);
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

    const auto text = bus::ask<tokenized>(elsewhere, *frontend, patience, error, tokenize_text{});
    REQUIRE_MESSAGE(text, error);
    CHECK(text->error);  // the oracle has no text
    caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
}

TEST_CASE("a client actor that goes away cancels its requests") {
    auto control = std::make_shared<device_switch>();
    auto options = switched_node(control);
    options.program.max_concurrency = 1;
    node server(std::move(options));
    server.start();
    auto& system = *server.inside().state->system;
    auto client = system.spawn([](client_actor::pointer) -> client_actor::behavior_type {
        return {
            [](const accepted&) {}, [](const rejected&) {}, [](const text_delta&) {},
            [](const finished&) {}, [](const failed&) {},
        };
    });
    control->hold_after(3);
    bus::tell_from_outside(frontend_of(server), token_request(request_id(1), some_prompt(20), 1000), client);
    REQUIRE(control->wait_held());
    caf::anon_send_exit(client, caf::exit_reason::kill);
    CHECK(eventually([&] { return server.numbers()->requests_cancelled == 1; }));
    control->release();
    answers_rightly(server);  // the one lane is free again
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

// The race of message_race.cpp once more, now between real CAF actors under CAF's own test coordinator: it runs one
// message at a time in this thread, and only when told to. Useful where the shells themselves are in question.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "actors/spawn.hpp"
#include "native/models/oracle/oracle.hpp"
#include "test_system.hpp"

namespace {

using namespace fermata;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "coordinator_race: %s\n", what);
    std::exit(1);
}

struct last_word final : client_sink {
    int ends = 0;
    bool complete = false, cancelled = false;
    void on(const accepted&) override {}
    void on(const rejected&) override { ++ends; }
    void on(const text_delta&) override {}
    void on(const finished&) override { ++ends, complete = true; }
    void on(const failed& m) override { ++ends, cancelled = m.error.status == 499; }
};

// The five actors and a preparer, wired by hand; no node, no supervisor.
struct stage {
    test_system system;
    context_ptr context = std::make_shared<node_context>();
    std::shared_ptr<program_seat> seat;
    std::shared_ptr<peer_handles> peers = std::make_shared<peer_handles>();
    std::shared_ptr<last_word> client = std::make_shared<last_word>();

    stage() {
        context->clock = [] { return time_ns{0}; };
        context->numbers = std::make_shared<telemetry>();
        oracle::options how;
        how.vocabulary = 100;
        how.state_bytes = 0;
        program_options device;
        device.max_context_tokens = 256;
        device.max_concurrency = 1;
        device.numbers = context->numbers;
        seat = std::make_shared<program_seat>(std::make_unique<program>(device, oracle::make(how)));
        scheduler_options scheduling;
        scheduling.max_concurrency = 1;
        scheduling.numbers = context->numbers;
        planning_limits limits;
        limits.max_context_tokens = 256;
        const auto text = std::make_shared<const text_model>(nullptr, "");

        auto& s = system.get();
        peers->scheduler = spawn_scheduler(s, context, std::make_shared<scheduler>(scheduling, seat->core->view()));
        peers->resource_manager =
            spawn_resource_manager(s, context, std::make_shared<resource_manager>(resource_manager_options{}));
        peers->program = spawn_program(s, context, seat);
        peers->transfer = spawn_transfer(s, context, seat);
        peers->preparers.push_back(spawn_preparer(s, context, {text, limits}));
        peers->frontend = spawn_frontend(s, context, std::make_shared<frontend_core>(frontend_options{}, text));
        const meet others{peers, nullptr};
        bus::tell_from_outside(peers->scheduler, others);
        bus::tell_from_outside(peers->resource_manager, others);
        bus::tell_from_outside(peers->program, others);
        bus::tell_from_outside(peers->transfer, others);
        bus::tell_from_outside(peers->preparers.front(), others);
        bus::tell_from_outside(peers->frontend, others);
        system.run();

        auto request = std::make_shared<submit>();
        request->request = request_id(1);
        request->kind = prompt_kind::tokens;
        request->prompt_tokens = token_run({3, 1, 4, 1, 5, 9, 2, 6});
        request->max_tokens = 1;
        request->ignore_eos = true;
        bus::tell_from_outside(peers->frontend, submit_local{request, client});
        require(system.run_until_waiting_for(peers->program), "a plan should be on its way to Program");
    }
    ~stage() {
        for (const auto& each : peers->preparers) bus::tell_from_outside(each, halt{});
        bus::tell_from_outside(peers->frontend, halt{});
        bus::tell_from_outside(peers->scheduler, halt{});
        bus::tell_from_outside(peers->resource_manager, halt{});
        bus::tell_from_outside(peers->transfer, halt{});
        bus::tell_from_outside(peers->program, halt{});
        *peers = {};
        system.run();
    }
    // The Frontend passes it on at once: it is now behind whatever Scheduler's mailbox holds.
    void client_leaves() {
        bus::tell_from_outside(peers->frontend, cancel_request{request_id(1)});
        require(system.run_one<cancel_request>(peers->frontend), "the Frontend should have had the cancel");
    }
    void settle() {
        system.run();
        require(client->ends == 1, "the request has to end exactly once");
        require(context->numbers->pages_active == 0, "pages are still taken");
        require(seat->core->check_integrity().empty(), "Program's tables disagree");
    }
};

}  // namespace

int main() {
    {
        stage first;
        first.client_leaves();  // in Scheduler's mailbox before Program has run its unit
        first.settle();
        require(first.client->cancelled, "cancel came first: the request ends as cancelled");
        require(first.context->numbers->requests_cancelled == 1, "Scheduler counts it as cancelled");
        std::puts("cancel, then result: cancelled, once");
    }
    {
        stage second;
        require(second.system.run_one<cycle_plan>(second.peers->program), "Program should have had its plan");
        second.client_leaves();  // behind the result
        second.settle();
        // Scheduler counts it as complete; the client, who had left before the result came through, hears that it left.
        require(second.context->numbers->requests_length == 1, "the result came first: the sequence is complete");
        std::puts("result, then cancel: complete, once");
    }
    return 0;
}

// Races, written down in both orders on the real cores and the real Program: messages are delivered by hand.
#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "wired_node.hpp"

using namespace fermata;
using namespace fermata::simulation;

namespace {

struct bench {
    bus transport;
    wired_node node;
    std::map<std::uint64_t, std::vector<token_id>> tokens;
    std::map<std::uint64_t, finish_reason> ends;
    std::map<std::uint64_t, sequence_usage> usage;

    bench() : bench(sizes(0)) {}
    explicit bench(const node_options& o) : node(o, {}, transport) {}

    static node_options sizes(std::size_t state_bytes) {
        node_options o;
        o.model.state_bytes = state_bytes;
        o.model.vocabulary = 97;
        o.model.page_tokens = 4;
        o.model.context_tokens = 64;
        o.tail_copy_tokens_min = 1;
        o.device.max_context_tokens = 64;
        o.device.max_concurrency = 2;
        o.device.kv_capacity_tokens = 128;
        o.device.prefill_chunk_tokens = 8;
        o.device.batch_tokens = 16;
        return o;
    }
    static std::vector<token_id> prompt(std::uint64_t from, std::size_t n) {
        std::vector<token_id> v(n);
        for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<token_id>((from * 13 + i * 7) % 96);
        return v;
    }
    void submit(std::uint64_t request, std::vector<token_id> tokens_in, std::uint32_t max_new) {
        auto s = std::make_shared<sequence_spec>();
        s->request = request_id{request};
        s->prompt = token_run(std::move(tokens_in));
        s->sampling.temperature = 0;
        s->guard.max_new_tokens = token_pos(max_new);
        enqueue e;
        e.request = s->request;
        e.choices.push_back(s);
        transport.send(peer::frontend, peer::scheduler, e);
        node.deliver(peer::frontend, peer::scheduler);
    }
    void cancel(std::uint64_t request) {
        transport.send(peer::frontend, peer::scheduler, cancel_request{request_id{request}});
        node.deliver(peer::frontend, peer::scheduler);
    }
    // Scheduler and Program exchange one plan, ResourceManager answering what it is asked.
    void cycle() {
        while (transport.waiting(peer::scheduler, peer::resources)) {
            node.deliver(peer::scheduler, peer::resources);
            node.deliver(peer::resources, peer::scheduler);
        }
        node.deliver(peer::scheduler, peer::program);
        node.deliver(peer::program, peer::scheduler);
    }
    void read() {
        while (transport.waiting(peer::scheduler, peer::frontend)) {
            const envelope m = transport.take(peer::scheduler, peer::frontend);
            const auto* rows = std::get_if<outputs>(&m.message);
            if (!rows) continue;
            for (const auto& each : rows->rows) {
                if (each.row.token != no_token) tokens[each.request.value].push_back(each.row.token);
                if (each.row.finish == finish_reason::none) continue;
                CHECK(!ends.contains(each.request.value));  // O1: one end
                ends[each.request.value] = each.row.finish;
                usage[each.request.value] = *each.usage;
            }
        }
    }
    void settle() {
        node.settle();
        read();
    }
    void check_at_rest() {
        settle();
        CHECK(node.scheduling().quiet());
        CHECK(node.device().check_integrity().empty());
        CHECK(node.numbers().pages_active == 0);
        CHECK(node.scheduling().look().lanes_used == 0);
    }
};

oracle::options model_of(const bench&) { return bench::sizes(0).model; }

}  // namespace

TEST_CASE("cancel against the answer that ends the request") {
    for (const bool cancel_first : {true, false}) {
        bench b;
        b.submit(1, bench::prompt(1, 6), 1);
        b.node.deliver(peer::scheduler, peer::program);  // the unit that samples the only token has run
        if (cancel_first) b.cancel(1);
        b.node.deliver(peer::program, peer::scheduler);
        if (!cancel_first) b.cancel(1);
        b.check_at_rest();
        CHECK(b.ends.at(1) == (cancel_first ? finish_reason::cancelled : finish_reason::length));
        CHECK(b.tokens[1].size() == (cancel_first ? 0u : 1u));
    }
}

TEST_CASE("cancel against the end of the copy that its bind waits for") {  // N2
    for (const bool cancel_first : {true, false}) {
        bench b;
        b.submit(1, bench::prompt(1, 16), 6);
        b.settle();
        auto again = bench::prompt(1, 16);
        again.insert(again.end(), b.tokens[1].begin(), b.tokens[1].end());
        again.resize(19);
        b.submit(2, again, 2);
        while (!b.transport.waiting(peer::program, peer::transfer)) b.cycle();
        b.node.deliver(peer::program, peer::transfer);
        b.node.deliver(peer::transfer, peer::copier);  // the bytes moved
        if (cancel_first) b.cancel(2);
        b.node.deliver(peer::copier, peer::transfer);
        b.node.deliver(peer::transfer, peer::program);
        b.read();
        if (!cancel_first) b.cancel(2);
        b.check_at_rest();
        CHECK(b.ends.at(2) == finish_reason::cancelled);
        b.submit(3, again, 3);  // the lane works
        b.settle();
        CHECK(b.tokens[3] == oracle::expected(model_of(b), again, 3));
    }
}

TEST_CASE("a source that goes while it is being chosen: the bind is stale and chosen again") {
    for (const bool drop_first : {true, false}) {
        node_options o = bench::sizes(0);
        o.scheduling.tau_low = 0;
        bench b(o);
        const auto base = bench::prompt(1, 16);
        b.submit(1, base, 2);
        b.settle();
        auto longer = base;
        longer.push_back(3);
        b.submit(2, longer, 2);
        REQUIRE(b.transport.waiting(peer::scheduler, peer::resources));
        const auto drop = [&] {  // behind everybody's back
            cycle_plan plan;
            for (const auto& point : b.node.device().view()->points) plan.drops.push_back(point.checkpoint);
            cycle_done done;
            b.node.device().run_cycle(plan, done);
        };
        if (drop_first) drop();
        b.node.deliver(peer::scheduler, peer::resources);
        b.node.deliver(peer::resources, peer::scheduler);
        b.node.deliver(peer::scheduler, peer::program);
        if (!drop_first) drop();
        b.check_at_rest();
        CHECK(b.tokens[2] == oracle::expected(model_of(b), longer, 2));
        CHECK(b.usage[2].cached.value == (drop_first ? 0u : 16u));
    }
}

TEST_CASE("a copy's notice against the answer of the cycle beside it") {
    for (const bool notice_first : {true, false}) {
        bench b;
        b.submit(1, bench::prompt(1, 16), 6);
        b.settle();
        b.submit(3, bench::prompt(5, 4), 12);  // keeps the device busy
        b.cycle();
        auto again = bench::prompt(1, 16);
        again.insert(again.end(), b.tokens[1].begin(), b.tokens[1].begin() + 4);
        b.submit(2, again, 3);
        while (!b.transport.waiting(peer::program, peer::transfer)) b.cycle();
        b.node.deliver(peer::program, peer::transfer);
        b.node.deliver(peer::transfer, peer::copier);
        b.node.deliver(peer::copier, peer::transfer);
        // The next plan of request 3 is under way; Program learns of the copy before or after it.
        if (notice_first) b.node.deliver(peer::transfer, peer::program);
        b.node.deliver(peer::scheduler, peer::program);
        if (!notice_first) b.node.deliver(peer::transfer, peer::program);
        b.check_at_rest();
        CHECK(b.tokens[2] == oracle::expected(model_of(b), again, 3));
        CHECK(b.tokens[3] == oracle::expected(model_of(b), bench::prompt(5, 4), 12));
        CHECK(b.usage[2].cached.value == 19);
    }
}

TEST_CASE("an early publication and a late one: ResourceManager may hear before or after it is asked") {
    for (const bool heard : {true, false}) {
        bench b;
        const auto base = bench::prompt(1, 16);
        b.submit(1, base, 1);
        b.cycle();
        b.node.deliver(peer::scheduler, peer::program);
        b.node.deliver(peer::program, peer::scheduler);  // request 1 ended; its points are published on another line
        auto longer = base;
        longer.push_back(3);
        if (heard)
            while (b.transport.waiting(peer::program, peer::resources)) b.node.deliver(peer::program, peer::resources);
        b.submit(2, longer, 2);
        while (b.transport.waiting(peer::scheduler, peer::resources)) {
            b.node.deliver(peer::scheduler, peer::resources);
            b.node.deliver(peer::resources, peer::scheduler);
        }
        b.check_at_rest();
        CHECK(b.tokens[2] == oracle::expected(model_of(b), longer, 2));
        CHECK(b.usage[2].cached.value == (heard ? 16u : 0u));
    }
}

TEST_CASE("the lane of a cancelled request is free within one unit, and its next holder starts clean") {  // faults 11, 85, 89
    node_options o = bench::sizes(64);
    o.device.max_concurrency = 1;
    o.device.kv_capacity_tokens = 64;
    bench b(o);
    b.submit(1, bench::prompt(1, 20), 10);
    b.cycle();
    b.submit(2, bench::prompt(9, 7), 3);
    b.cancel(1);
    const auto plans = b.node.scheduling().look().plans;
    b.node.deliver(peer::scheduler, peer::program);
    b.node.deliver(peer::program, peer::scheduler);  // the unit under way
    b.cycle();                                       // the cancel
    b.cycle();
    CHECK(b.node.scheduling().look().plans - plans <= 3);
    CHECK(b.node.scheduling().look().lanes_used == 1);
    b.check_at_rest();
    CHECK(b.tokens[2] == oracle::expected(o.model, bench::prompt(9, 7), 3));
}

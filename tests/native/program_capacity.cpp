// Permits and shortages: all or nothing, told exactly, nothing freed by Program itself.
#include <stdexcept>

#include "native/program_driver.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

const ticket a{1}, b{2}, c{3};

// 512 tokens of context, 32 pages of 16 for everybody.
program_options one_context() {
    auto out = small_options();
    out.kv_capacity_tokens = 512;
    return out;
}

std::string fault_of(program_options options, oracle::options how = small_oracle(0)) {
    try {
        program core(std::move(options), oracle::make(how));
    } catch (const std::invalid_argument& fault) {
        return fault.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a bind that lacks room takes nothing and says what is missing") {  // C1, C2, C6, N1
    driver d(one_context(), small_oracle(64));
    d.bind(a, spec_of(some_tokens(400, 1), 100), lane(0), {}, 0, 128);
    for (int i = 0; i < 4; ++i) d.prefill(a, 128);
    CHECK(d.free_pages() == 32 - 25);
    const occupancy before = d.done.room;
    const auto got = d.bind(b, spec_of(some_tokens(128, 2), 100), lane(1), {}, 0, 128);
    CHECK(got.outcome == bind_outcome::short_of_room);
    REQUIRE(d.done.shortages.size() == 1);
    CHECK(d.done.shortages[0].who == b);
    CHECK(d.done.shortages[0].pages == 1);
    CHECK(d.done.shortages[0].pages_needed == 8);
    CHECK_FALSE(d.done.shortages[0].never);
    CHECK(d.done.room == before);
    // A smaller first unit fits.
    CHECK(d.bind(b, spec_of(some_tokens(128, 2), 100), lane(1), {}, 0, 64).outcome == bind_outcome::bound);
    CHECK(d.free_pages() == 32 - 25 - 4);
}

TEST_CASE("the permit of a bind is held until its first unit, then what is left goes back") {  // N1, C3
    driver d(one_context(), small_oracle(0));
    d.bind(a, spec_of(some_tokens(100, 1), 10), lane(0), {}, 0, 64);
    CHECK(d.free_pages() == 28);
    CHECK(d.done.room.pages_active == 4);  // B3: charged when reserved
    d.prefill(a, 20);
    CHECK(d.free_pages() == 30);
    d.prefill(a, 64);
    CHECK(d.free_pages() == 26);
}

TEST_CASE("a bind reserves for the tokens that are left, not for the chunk asked for") {
    driver d(one_context(), small_oracle(0));
    d.bind(a, spec_of(some_tokens(20, 1), 10), lane(0), {}, 0, 10000);
    CHECK(d.free_pages() == 30);
    d.bind(b, spec_of(some_tokens(300, 1), 10), lane(1));  // the default chunk: 64
    CHECK(d.free_pages() == 26);
}

TEST_CASE("rows get their permits in the order given; a short one doesn't stop the rest") {  // D1
    auto options = one_context();
    driver d(options, small_oracle(0));
    d.bind(c, spec_of(some_tokens(400, 9), 50), lane(0));
    for (int i = 0; i < 7; ++i) d.prefill(c);
    const std::uint32_t left = d.free_pages();
    REQUIRE(left == 32 - 25);
    d.bind(a, spec_of(some_tokens(47, 1), 50), lane(1));
    d.bind(b, spec_of(some_tokens(60, 2), 50), lane(2));
    d.prefill(a);
    d.prefill(b);
    CHECK(d.free_pages() == 0);
    CHECK(d.answers[a].tokens.size() == 1);
    // Now a needs a page for position 48, b does not.
    d.decode({a, b});
    CHECK(d.done.rows.size() == 2);
    d.decode({a, b});
    REQUIRE(d.done.shortages.size() == 1);
    CHECK(d.done.shortages[0].who == a);
    CHECK(d.done.shortages[0].pages == 1);
    CHECK(d.done.shortages[0].pages_needed == 1);
    REQUIRE(d.done.rows.size() == 1);
    CHECK(d.done.rows[0].who == b);
    // Room comes: a goes on as if nothing had been.
    d.cancel(c);
    d.drop(d.points.begin()->first);
    d.run_until(a, 50);
    d.run_until(b, 50);
    CHECK(d.answers[a].tokens == oracle::expected(small_oracle(0), some_tokens(47, 1), 50));
    CHECK(d.answers[b].tokens == oracle::expected(small_oracle(0), some_tokens(60, 2), 50));
}

TEST_CASE("a chunk that lacks room doesn't run and takes nothing") {
    driver d(one_context(), small_oracle(0));
    d.bind(a, spec_of(some_tokens(512, 1), 1), lane(0), {}, 0, 64);
    d.bind(b, spec_of(some_tokens(512, 2), 1), lane(1), {}, 0, 64);
    for (int i = 0; i < 4; ++i) d.prefill(a, 96);
    CHECK(d.free_pages() == 32 - 24 - 4);
    cycle_plan plan;
    plan.prefills = {{a, token_pos(96)}, {b, token_pos(16)}};
    d.run(plan);
    REQUIRE(d.done.shortages.size() == 1);
    CHECK(d.done.shortages[0].pages == 2);
    CHECK(d.done.shortages[0].pages_needed == 6);
    CHECK(d.done.rows.size() == 1);
}

TEST_CASE("one request alone may use the whole pool to its last page") {  // faults 68, 74: sizing and admission agree
    for (std::uint32_t context : {512u, 511u, 497u, 496u}) {
        CAPTURE(context);
        auto options = one_context();
        options.max_concurrency = 1;
        options.max_context_tokens = context;
        options.kv_capacity_tokens = 0;
        driver d(options, small_oracle(0));
        CHECK(d.core.plan().pages == pages_for(context, 16));
        CHECK(d.complete(a, spec_of(some_tokens(context - 20, 1), 1000)).tokens.size() == 20);
        CHECK(d.answers[a].finish == finish_reason::length);
        CHECK(d.answers[a].tokens == oracle::expected(small_oracle(0), some_tokens(context - 20, 1), 20));
    }
}

TEST_CASE("a prompt that fills the context gets its first token") {
    driver d(one_context(), small_oracle(0));
    CHECK(d.complete(a, spec_of(some_tokens(512, 1), 10)).tokens ==
          oracle::expected(small_oracle(0), some_tokens(512, 1), 1));
    CHECK(d.answers[a].finish == finish_reason::length);
}

TEST_CASE("all of a unit stays within batch_tokens") {  // D5
    auto options = small_options();
    options.batch_tokens = 40;
    options.prefill_chunk_tokens = 40;
    driver d(options, small_oracle(0));
    for (std::uint32_t i = 1; i <= 3; ++i) d.bind(ticket(i), spec_of(some_tokens(100, i), 9), lane(i));
    cycle_plan plan;
    plan.prefills = {{a, token_pos(30)}, {b, token_pos(30)}, {c, token_pos(30)}};
    d.run(plan);
    REQUIRE(d.done.rows.size() == 2);
    CHECK(d.done.rows[0].computed.value == 30);
    CHECK(d.done.rows[1].computed.value == 10);
    CHECK(d.done.shortages.empty());
}

TEST_CASE("state slots run short on their own account") {
    auto options = small_options();
    options.max_concurrency = 2;
    options.device_state_slots = 0;
    const auto how = small_oracle(64);
    driver d(options, how);
    d.complete(a, spec_of(some_tokens(20, 1), 5));
    const auto kept = d.last_point();  // holds one of two slots
    d.bind(b, spec_of(some_tokens(20, 2), 50), lane(0));
    CHECK(d.bind(c, spec_of(some_tokens(20, 3), 5), lane(1)).outcome == bind_outcome::short_of_room);
    REQUIRE(d.done.shortages.size() == 1);
    CHECK(d.done.shortages[0].state_slots == 1);
    CHECK(d.done.shortages[0].pages == 0);
    CHECK(d.points.size() == 1);  // C6: nothing was freed
    d.drop(kept.checkpoint);
    CHECK(d.bind(c, spec_of(some_tokens(20, 3), 5), lane(1)).outcome == bind_outcome::bound);
    d.run_until(c, 5);
    CHECK(d.answers[c].tokens == oracle::expected(how, some_tokens(20, 3), 5));
}

TEST_CASE("capacity options outside their range are errors that name both ends") {  // B2
    auto options = small_options();
    options.kv_capacity_tokens = 511 - 15;
    CHECK(fault_of(options) == "kv_capacity 496 tokens: must lie between 512 (one request of max_context, and a page a "
                               "lane) and 2048 (max_concurrency x max_context)");
    options.kv_capacity_tokens = 497;
    CHECK(fault_of(options) == "");  // rounded up to pages
    options.kv_capacity_tokens = 2049;
    CHECK(fault_of(options).find("between 512") != std::string::npos);
    options.kv_capacity_tokens = ~std::uint64_t{0};
    CHECK(fault_of(options).find("2048") != std::string::npos);
    options.kv_capacity_tokens = 2048;
    CHECK(fault_of(options) == "");
    options.max_context_tokens = 20;  // two pages, but a page a lane
    options.kv_capacity_tokens = 48;
    CHECK(fault_of(options).find("between 64") != std::string::npos);
    options = small_options();
    options.max_context_tokens = 200000;
    CHECK(fault_of(options) == "max_context 200000: must lie between 1 and 131072 tokens (what the model allows)");
    options.max_context_tokens = 0;
    CHECK(fault_of(options).find("max_context 0") != std::string::npos);
    options = small_options();
    options.max_concurrency = 0;
    CHECK(fault_of(options) == "max_concurrency 0: must lie between 1 and 1024 lanes");
    options = small_options();
    options.batch_tokens = 3;
    CHECK(fault_of(options).find("batch_tokens 3: must lie between 4") != std::string::npos);
    options = small_options();
    options.prefill_chunk_tokens = 129;
    CHECK(fault_of(options) == "prefill_chunk 129: must lie between 1 and 128 tokens (at most batch_tokens)");
}

TEST_CASE("automatic capacity fits the bytes given, or says why not") {  // B2
    auto options = small_options();
    const std::uint64_t page_bytes = 16 * 2 * 8;
    options.kv_bytes_max = 40 * page_bytes + 7;
    driver d(options, small_oracle(0));
    CHECK(d.core.plan().pages == 40);
    CHECK(d.core.plan().kv == 40 * page_bytes);
    options.kv_bytes_max = 31 * page_bytes;
    CHECK(fault_of(options).find("kv_capacity auto: 7936 bytes hold 496 tokens; must lie between 512 and 2048 tokens") !=
          std::string::npos);
    options.kv_bytes_max = 0;
    driver all(options, small_oracle(0));
    CHECK(all.core.plan().pages == 128);
}

TEST_CASE("the memory plan adds up from the layout") {
    driver d(small_options(), small_oracle(64));
    const memory_plan plan = d.core.plan();
    CHECK(plan.kv == std::uint64_t{plan.pages} * 16 * 2 * 8);
    CHECK(plan.states == 8 * 64);  // four lanes and four extra
    CHECK(plan.page_tokens == 16);
    CHECK(plan.largest_request_tokens == 512);
    CHECK(plan.smallest_reusable_prefix_tokens == 1);
    CHECK(driver(small_options(), small_oracle(0)).core.plan().smallest_reusable_prefix_tokens == 16);
}

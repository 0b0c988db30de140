// Steady decoding allocates nothing in Program: every operator new of this program is counted while cycles run.
#include <cstdlib>
#include <new>

#include "native/program_driver.hpp"

namespace {

thread_local bool counting = false;
thread_local std::size_t allocations = 0;

void* counted(std::size_t bytes) {
    if (counting) ++allocations;
    if (void* p = std::malloc(bytes ? bytes : 1)) return p;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
// The form that std::stable_sort's buffer comes from: all forms that pair with the deletes below are replaced.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes ? bytes : 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes ? bytes : 1); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

using namespace fermata;
using namespace fermata::test;

TEST_CASE("eight rows decode for hundreds of cycles without one allocation") {
    for (std::size_t state_bytes : {0u, 64u}) {
        program_options options = small_options();
        options.max_concurrency = 8;
        options.max_context_tokens = 600;
        options.tokens = std::make_shared<token_table>();
        options.numbers = std::make_shared<telemetry>();
        options.clock = [] { return time_ns{1}; };
        program core(options, oracle::make(small_oracle(state_bytes)));
        cycle_plan plan;
        cycle_done done;
        for (std::uint32_t i = 0; i < 8; ++i) {
            auto spec = spec_of(some_tokens(20 + i, i), 500);
            if (i % 2) {  // half of them sample, with all filters, penalties and a stop string
                spec->sampling.temperature = 0.9f;
                spec->sampling.top_k = i > 4 ? 40 : 0;
                spec->sampling.top_p = 0.9f;
                spec->sampling.frequency_penalty = 0.1f;
                spec->sampling.repetition_penalty = 1.1f;
                spec->guard.stop = {"never"};
            }
            plan.binds.push_back({ticket(i + 1), lane(i), spec, {}, token_pos(0), token_pos(0)});
            plan.prefills.push_back({ticket(i + 1), token_pos(16)});
        }
        core.run_cycle(plan, done);
        plan.binds.clear();
        core.run_cycle(plan, done);
        plan.prefills.clear();
        for (std::uint32_t i = 0; i < 8; ++i) plan.decodes.push_back(ticket(i + 1));
        core.run_cycle(plan, done);
        REQUIRE(done.rows.size() == 8);
        allocations = 0;
        counting = true;
        for (int i = 0; i < 300; ++i) core.run_cycle(plan, done);  // crosses many page borders
        counting = false;
        CHECK(done.rows.size() == 8);
        CHECK(allocations == 0);
        std::vector<int> noticed(4);  // the counter does count
        counting = true;
        noticed = std::vector<int>(8);
        counting = false;
        CHECK(allocations > 0);
    }
}

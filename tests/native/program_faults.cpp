// What goes wrong goes wrong for one request: logits that aren't finite, a page that may not be written, a unit that is
// abandoned, a device that fails.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "native/program_driver.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

const ticket a{1}, b{2}, c{3};

// The oracle with faults on demand.
class faulty final : public model {
public:
    explicit faulty(const oracle::options& how) : inner_(oracle::make(how)) {}
    const model_layout& layout() const noexcept override { return inner_->layout(); }
    void prepare(std::uint32_t tokens, std::uint32_t rows) override { inner_->prepare(tokens, rows); }
    void attach(const context_memory& memory) override { inner_->attach(memory); }
    unit_status run(const unit& work) override {
        ++units;
        if (fail_next) throw std::runtime_error("the device is gone");
        const unit_status status = inner_->run(work);
        for (const unit_row& row : work.rows)
            for (std::uint32_t i = 0; i < row.logit_rows; ++i) {
                const std::uint32_t position = row.first.value + static_cast<std::uint32_t>(row.tokens.size()) - row.logit_rows + i;
                if (position == poisoned_position)
                    row.logits[i * layout().vocabulary + 7] = std::numeric_limits<float>::quiet_NaN();
            }
        return status;
    }
    std::uint32_t poisoned_position = ~0u;
    bool fail_next = false;
    int units = 0;

private:
    std::unique_ptr<model> inner_;
};

struct scene {
    explicit scene(std::size_t state_bytes, program_options options = small_options())
        : how(small_oracle(state_bytes)), family(new faulty(how)), d(std::move(options), std::unique_ptr<model>(family)) {}
    oracle::options how;
    faulty* family;
    driver d;
};

}  // namespace

TEST_CASE("logits that aren't finite end their row with an error; nothing of it is kept, others go on") {
    for (std::size_t state_bytes : {0u, 64u})
        for (std::uint32_t where : {29u, 30u, 35u}) {  // the first token of the answer, and later ones
            scene s(state_bytes);
            s.family->poisoned_position = where;
            s.d.bind(a, spec_of(some_tokens(30, 1), 20), lane(0));
            s.d.bind(b, spec_of(some_tokens(50, 2), 20), lane(1));
            s.family->poisoned_position = where;
            for (int i = 0; i < 30; ++i) {
                cycle_plan plan;
                plan.decodes = {a, b};
                plan.prefills = {{a, token_pos(64)}, {b, token_pos(64)}};
                s.d.run(plan);
            }
            CHECK(s.d.answers[a].finish == finish_reason::error);
            CHECK(s.d.answers[a].failure == failure_kind::not_finite);
            CHECK(s.d.answers[a].error == "logits are not finite at position " + std::to_string(where));
            CHECK(s.d.answers[a].tokens.size() == where - 29);
            CHECK(s.d.answers[b].tokens == oracle::expected(s.how, some_tokens(50, 2), 20));
            for (const auto& [id, point] : s.d.points) CHECK(point.from == b);
            CHECK(s.d.done.room.pages_active == 0);
        }
}

TEST_CASE("scores that aren't finite end a scored prompt") {
    scene s(0);
    s.family->poisoned_position = 12;
    auto spec = spec_of(some_tokens(30, 1), 20);
    spec->report.prompt_logprobs = true;
    s.d.bind(a, spec, lane(0));
    s.d.prefill(a, 20);
    CHECK(s.d.answers[a].error == "logits are not finite at position 12");
    CHECK(s.d.points.empty());
    CHECK(s.d.free_pages() == s.d.done.room.pages_total);
}

TEST_CASE("an abandoned unit commits nothing and the flag is used up") {  // architecture 2, fault 89
    for (std::size_t state_bytes : {0u, 64u}) {
        scene s(state_bytes);
        const auto prompt = some_tokens(47, 1);
        s.d.bind(a, spec_of(prompt, 20), lane(0));
        s.d.prefill(a, 64);
        s.d.decode({a});
        const occupancy before = s.d.done.room;  // the next token needs a page
        s.d.core.stop_flag() = true;
        s.d.decode({a});
        CHECK(s.d.done.rows.empty());
        CHECK_FALSE(s.d.done.device_failed);
        CHECK(s.d.done.room == before);
        CHECK_FALSE(s.d.core.stop_flag());
        s.d.run_until(a, 20);
        CHECK(s.d.answers[a].tokens == oracle::expected(s.how, prompt, 20));
        // The same in the first unit of a bind, whose permit it keeps.
        s.d.bind(b, spec_of(prompt, 20), lane(1));
        const occupancy bound = s.d.done.room;
        s.d.core.stop_flag() = true;
        s.d.prefill(b, 64);
        CHECK(s.d.done.rows.empty());
        CHECK(s.d.done.room == bound);
        s.d.run_until(b, 20);
        CHECK(s.d.answers[b].tokens == s.d.answers[a].tokens);
    }
}

TEST_CASE("a device that fails is reported with its words; Program stays consistent") {
    scene s(0);
    const auto prompt = some_tokens(30, 1);
    s.d.bind(a, spec_of(prompt, 20), lane(0));
    s.d.prefill(a, 17);
    s.family->fail_next = true;
    s.d.prefill(a, 17);
    CHECK(s.d.done.device_failed);
    CHECK(s.d.done.error == "the device is gone");
    CHECK(s.d.done.rows.empty());
    s.family->fail_next = false;
    s.d.run_until(a, 20);
    CHECK_FALSE(s.d.done.device_failed);
    CHECK(s.d.answers[a].tokens == oracle::expected(s.how, prompt, 20));
}

TEST_CASE("an empty plan, or one about nobody, runs nothing") {
    scene s(0);
    s.d.run({});
    cycle_plan plan;
    plan.cancels = {a};
    plan.pauses = {a};
    plan.decodes = {a, b};
    plan.prefills = {{c, token_pos(5)}};
    plan.drops = {checkpoint_id(4)};
    s.d.run(plan);
    CHECK(s.d.done.rows.empty());
    CHECK(s.family->units == 0);
}

TEST_CASE("a row named twice runs once") {
    scene s(0);
    const auto prompt = some_tokens(30, 1);
    s.d.bind(a, spec_of(prompt, 8), lane(0));
    cycle_plan plan;
    plan.prefills = {{a, token_pos(10)}, {a, token_pos(10)}};
    plan.decodes = {a};
    s.d.run(plan);
    CHECK(s.d.done.rows.size() == 1);
    s.d.run_until(a, 1);
    plan = {};
    plan.decodes = {a, a};
    plan.prefills = {{a, token_pos(10)}};
    s.d.run(plan);
    CHECK(s.d.done.rows.size() == 1);
    s.d.run_until(a, 8);
    CHECK(s.d.answers[a].tokens == oracle::expected(s.how, prompt, 8));
}

TEST_CASE("cancel at any moment gives everything back") {  // O1, fault 83
    for (std::size_t state_bytes : {0u, 64u})
        for (int units = 0; units < 14; ++units) {
            scene s(state_bytes);
            s.d.bind(a, spec_of(some_tokens(50, 1), 20), lane(0));
            for (int i = 0; i < units; ++i) {
                cycle_plan plan;
                plan.decodes = {a};
                plan.prefills = {{a, token_pos(9)}};
                s.d.run(plan);
            }
            s.d.cancel(a);
            for (const auto& point : std::map(s.d.points)) s.d.drop(point.first);
            CHECK(s.d.free_pages() == s.d.done.room.pages_total);
            CHECK(s.d.done.room.state_slots_free == s.d.done.room.state_slots_total);
        }
}

// Random life on a tiny Program: binds from right and wrong sources, pauses, resumes, cancels, drops, copies that are
// late, fail or are answered twice, units that are abandoned. After every step the stores agree with their holders; every
// token equals the oracle's; at the end nothing is left. The plain model beside it knows tokens only.
#include <algorithm>
#include <random>

#include "native/program_driver.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

struct life {
    std::vector<token_id> prompt;
    std::vector<token_id> right;  // the whole answer, from tokens alone
    std::uint32_t budget = 0;
    bool paused = false;
    bool ever_bound = false;
};

class world {
public:
    world(std::uint32_t seed, std::size_t state_bytes)
        : random_(seed), how_(small_oracle(state_bytes)), d_(options(seed), how_) {
        for (std::uint32_t i = 0; i < 3; ++i) stems_.push_back(some_tokens(60, i));
    }

    void step() {
        cycle_plan plan;
        if (one_in(6)) bind(plan);
        if (one_in(9)) resume(plan);
        if (one_in(25) && !lives_.empty()) cancel(plan, any_life());
        if (one_in(12) && !lives_.empty()) plan.pauses.push_back(any_life());
        if (one_in(30) && !d_.points.empty()) plan.drops.push_back(any_point());
        if (pressed_ && !d_.points.empty()) plan.drops.push_back(any_point());
        for (const auto& [who, life] : lives_) {
            if (one_in(8)) continue;
            plan.decodes.push_back(who);
            plan.prefills.push_back({who, token_pos(1 + pick(40))});
        }
        std::shuffle(plan.decodes.begin(), plan.decodes.end(), random_);
        std::shuffle(plan.prefills.begin(), plan.prefills.end(), random_);
        if (one_in(20)) d_.core.stop_flag() = true;
        d_.run(plan);
        learn();
        copies();
    }

    void finish() {
        cycle_plan plan;
        for (const auto& [who, life] : lives_) plan.cancels.push_back(who);
        for (const auto& [id, point] : d_.points) plan.drops.push_back(id);
        d_.run(plan);
        for (const copy_order& order : held_) d_.finish_copy(d_.core.copies()->run(order));
        d_.finish_copies();
        d_.run({});
        CHECK(d_.points.empty());
        CHECK(d_.done.room.pages_free == d_.done.room.pages_total);
        CHECK(d_.done.room.state_slots_free == d_.done.room.state_slots_total);
        CHECK(d_.done.copies_in_flight == 0);
    }

    std::uint64_t ended = 0, reused = 0, replayed = 0, shortages = 0, failed_copies = 0;

private:
    static program_options options(std::uint32_t seed) {
        program_options out = small_options();
        out.max_context_tokens = 160;
        out.kv_capacity_tokens = seed % 2 ? 160 : 320;
        out.max_concurrency = 3;
        out.device_state_slots = seed % 3;
        out.batch_tokens = 64;
        return out;
    }
    std::uint32_t pick(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }
    bool one_in(std::uint32_t n) { return pick(n) == 0; }
    ticket any_life() {
        auto it = lives_.begin();
        std::advance(it, pick(lives_.size()));
        return it->first;
    }
    checkpoint_id any_point() {
        auto it = d_.points.begin();
        std::advance(it, pick(d_.points.size()));
        return it->first;
    }

    // A source for `tokens`: usually as good as a directory would give, sometimes nonsense.
    void choose_source(std::span<const token_id> tokens, std::uint32_t limit, bind_order& order) {
        if (one_in(4)) return;
        for (const auto& [id, point] : d_.points) {
            const auto known = point.tokens.span();
            std::uint32_t match = 0;
            while (match < std::min<std::size_t>(known.size(), limit) && known[match] == tokens[match]) ++match;
            if (point.exact_only && match < known.size()) match = 0;
            if (match <= order.source_tokens.value) continue;
            order.source = id;
            order.source_tokens = token_pos(point.exact_only ? match : 1 + pick(match));
        }
        if (one_in(15) && !d_.points.empty()) {
            order.source = any_point();
            order.source_tokens = token_pos(pick(170));
        }
    }

    void bind(cycle_plan& plan) {
        life next;
        next.prompt = stems_[pick(stems_.size())];
        next.prompt.resize(1 + pick(next.prompt.size()));
        if (one_in(2) && !finished_.empty()) next.prompt = finished_[pick(finished_.size())];
        if (next.prompt.size() > 100) next.prompt.resize(100);
        next.prompt = joined(next.prompt, some_tokens(pick(20), pick(3)));
        next.budget = 1 + pick(40);
        auto spec = spec_of(next.prompt, next.budget);
        next.right = oracle::expected(how_, next.prompt, next.budget);
        const ticket who(++tickets_);
        bind_order order{who, lane(pick(3)), spec, {}, token_pos(0), token_pos(pick(60))};
        choose_source(next.prompt, static_cast<std::uint32_t>(next.prompt.size()) - 1, order);
        plan.binds.push_back(order);
        fresh_ = next;
    }

    void resume(cycle_plan& plan) {
        for (const auto& [who, life] : lives_) {
            if (!life.paused) continue;
            bind_order order{who, lane(pick(3)), nullptr, {}, token_pos(0), token_pos(pick(60))};
            const auto all = joined(life.prompt, d_.answers[who].tokens);
            const bool answering = !d_.answers[who].tokens.empty();
            choose_source(all, static_cast<std::uint32_t>(answering ? all.size() : life.prompt.size()) - 1, order);
            plan.binds.push_back(order);
            return;
        }
    }

    void cancel(cycle_plan& plan, ticket who) {
        plan.cancels.push_back(who);
        lives_.erase(who);
    }

    void learn() {
        for (const pause_result& each : d_.done.pauses) {
            life& l = lives_.at(each.who);
            l.paused = true;
            const auto all = joined(l.prompt, d_.answers[each.who].tokens);
            REQUIRE(std::equal(each.ledger.span().begin(), each.ledger.span().end(), all.begin()));
        }
        for (const bind_result& each : d_.done.binds) {
            const bool taken = each.outcome == bind_outcome::bound || each.outcome == bind_outcome::copying;
            if (taken && !lives_.count(each.who)) lives_[each.who] = fresh_;
            if (taken) lives_.at(each.who).paused = false;
            if (each.outcome == bind_outcome::bound) lives_.at(each.who).ever_bound = true;
            if (taken) reused += each.position.value;
        }
        pressed_ = !d_.done.shortages.empty();
        shortages += d_.done.shortages.size();
        for (const shortage& each : d_.done.shortages) {
            REQUIRE_FALSE(each.never);  // every request fits the pool alone
            REQUIRE(each.pages <= each.pages_needed);
        }
        for (const row_result& row : d_.done.rows) {
            replayed += row.replayed.value;
            const life& l = lives_.at(row.who);
            const answer& got = d_.answers[row.who];
            REQUIRE(got.tokens.size() <= l.right.size());
            if (row.token != no_token) REQUIRE(row.token == l.right[got.tokens.size() - 1]);
            if (row.finish == finish_reason::none) continue;
            REQUIRE(row.finish == finish_reason::length);
            REQUIRE(got.tokens == l.right);
            finished_.push_back(joined(l.prompt, got.tokens));
            if (finished_.size() > 12) finished_.erase(finished_.begin());
            lives_.erase(row.who);
            ++ended;
        }
    }

    void copies() {
        copy_order order;
        while (one_in(2) && d_.core.next_copy(order)) held_.push_back(order);
        while (!held_.empty() && one_in(2)) {
            const std::uint32_t i = pick(held_.size());
            const copy_order copy = held_[i];
            held_.erase(held_.begin() + i);
            copy_done done = d_.core.copies()->run(copy);
            if (one_in(6)) done = {copy.copy, false, "lost"}, ++failed_copies;
            program_notice notice;
            REQUIRE(d_.core.complete(done, notice));
            REQUIRE(d_.core.check_integrity() == "");
            for (const bind_result& each : notice.binds) copied(each);
            REQUIRE_FALSE(d_.core.complete(done, notice));
        }
    }

    // A first bind whose copy failed is forgotten by Program; a resume is paused again.
    void copied(const bind_result& result) {
        life& l = lives_.at(result.who);
        if (result.outcome == bind_outcome::stale && !l.ever_bound) lives_.erase(result.who);
        else l.paused = result.outcome == bind_outcome::stale, l.ever_bound = true;
    }

    std::mt19937 random_;
    oracle::options how_;
    driver d_;
    std::vector<std::vector<token_id>> stems_, finished_;
    std::map<ticket, life> lives_;
    life fresh_;
    std::vector<copy_order> held_;
    std::uint64_t tickets_ = 0;
    bool pressed_ = false;
};

}  // namespace

TEST_CASE("random life on a tiny Program: always right tokens, never a leak") {
    std::uint64_t ended = 0, reused = 0, replayed = 0, shortages = 0, failed_copies = 0;
    for (std::uint32_t seed = 0; seed < 60; ++seed)
        for (std::size_t state_bytes : {0u, 64u}) {
            CAPTURE(seed);
            CAPTURE(state_bytes);
            world w(seed, state_bytes);
            for (int i = 0; i < 250; ++i) w.step();
            w.finish();
            ended += w.ended;
            reused += w.reused;
            replayed += w.replayed;
            shortages += w.shortages;
            failed_copies += w.failed_copies;
        }
    // The life was eventful enough to mean something.
    CHECK(ended > 600);
    CHECK(reused > 5000);
    CHECK(replayed > 2000);
    CHECK(shortages > 50);
    CHECK(failed_copies > 50);
}

// Which point a request resumes from.
#include <doctest/doctest.h>

#include <random>

#include "actors/cores/resource_manager.hpp"

using namespace fermata;

namespace {

struct memory {
    resource_manager manager;
    std::shared_ptr<program_view> view = std::make_shared<program_view>();

    explicit memory(resource_manager_options o = {8, 4, xxh_block_digest}) : manager(o) { view->page_tokens = o.page_tokens; }

    void publish(std::uint64_t id, std::vector<token_id> tokens, bool exact = false, std::string session = {}) {
        checkpoint_published p;
        p.checkpoint = checkpoint_id{id};
        p.from = ticket{id};
        p.coverage = token_pos(static_cast<std::uint32_t>(tokens.size()));
        p.tokens = token_run(std::move(tokens));
        p.exact_only = exact;
        p.session = std::move(session);
        manager.on(p);
        point_view v;
        v.checkpoint = p.checkpoint;
        v.coverage = p.coverage;
        v.exact_only = exact;
        auto next = std::make_shared<program_view>(*view);  // pictures are immutable
        next->points.push_back(v);
        view = next;
    }
    source_chosen choose(std::vector<token_id> tokens, std::uint32_t limit, std::string session = {}) {
        return manager.on(choose_source{cycle_no{3}, ticket{9}, token_run(std::move(tokens)), token_pos(limit),
                                        std::move(session), view});
    }
};

std::vector<token_id> count_up(token_id first, std::size_t n) {
    std::vector<token_id> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = first + static_cast<token_id>(i);
    return v;
}

}  // namespace

TEST_CASE("deepest legal position: the minimum of match, coverage and limit, at a page border") {  // A3, F1
    memory m;
    m.publish(1, count_up(0, 40));
    CHECK(m.choose(count_up(0, 100), 99).position == token_pos(40));
    CHECK(m.choose(count_up(0, 30), 29).position == token_pos(29));  // 24 + a tail of 5, worth a copy (at least 4)
    CHECK(m.choose(count_up(0, 28), 27).position == token_pos(24));  // a tail of 3 is not
    CHECK(m.choose(count_up(0, 40), 39).position == token_pos(39));  // one token is left to compute (fault 17)
    CHECK(m.choose(count_up(0, 41), 40).position == token_pos(40));
    CHECK(m.choose(count_up(0, 7), 3).source == std::nullopt);
    CHECK(m.choose(count_up(1, 40), 39).source == std::nullopt);
    CHECK(m.choose(count_up(0, 100), 0).source == std::nullopt);
    const auto answer = m.choose(count_up(0, 100), 99);
    CHECK(answer.turn == cycle_no{3});
    CHECK(answer.who == ticket{9});
}

TEST_CASE("one different token ends the match there, not at zero") {  // fault 47
    memory m;
    m.publish(1, count_up(0, 80));
    for (std::uint32_t at = 0; at < 80; ++at) {
        auto prompt = count_up(0, 100);
        prompt[at] = 7777;
        const std::uint32_t tail = at % 8;
        const std::uint32_t wanted = tail >= 4 ? at : at - tail;
        const auto got = m.choose(prompt, 99);
        CHECK(got.position.value == wanted);
        CHECK(got.source.has_value() == (wanted > 0));
    }
}

TEST_CASE("an exact point serves its own position alone") {  // A3
    memory m;
    m.publish(1, count_up(0, 20), true);
    m.publish(2, count_up(0, 33), true);
    CHECK(m.choose(count_up(0, 60), 59).source == checkpoint_id{2});
    CHECK(m.choose(count_up(0, 33), 32).source == checkpoint_id{1});  // 33 would leave nothing to compute
    CHECK(m.choose(count_up(0, 33), 32).position == token_pos(20));
    CHECK(m.choose(count_up(0, 19), 18).source == std::nullopt);
    auto diverged = count_up(0, 60);
    diverged[32] = 5;
    CHECK(m.choose(diverged, 59).source == checkpoint_id{1});
}

TEST_CASE("ties: matching session, then the newer publication") {  // F2
    memory m;
    m.publish(1, count_up(0, 16), false, "a");
    m.publish(2, count_up(0, 16), false, "b");
    m.publish(3, count_up(0, 16), false, "c");
    CHECK(m.choose(count_up(0, 40), 39).source == checkpoint_id{3});
    CHECK(m.choose(count_up(0, 40), 39, "a").source == checkpoint_id{1});
    CHECK(m.choose(count_up(0, 40), 39, "nobody").source == checkpoint_id{3});
    m.publish(4, count_up(0, 24), false, "z");
    CHECK(m.choose(count_up(0, 40), 39, "a").source == checkpoint_id{4});  // deeper beats the session
}

TEST_CASE("only what Program holds in this picture is chosen") {
    memory m;
    m.publish(1, count_up(0, 16));
    m.publish(2, count_up(0, 32));
    auto smaller = std::make_shared<program_view>(*m.view);
    smaller->points.pop_back();
    m.view = smaller;
    CHECK(m.choose(count_up(0, 40), 39).source == checkpoint_id{1});
    m.manager.on(checkpoint_dropped{checkpoint_id{1}});
    CHECK(m.choose(count_up(0, 40), 39).source == std::nullopt);
    CHECK(m.manager.records() == 1);
    m.manager.on(checkpoint_dropped{checkpoint_id{2}});
    CHECK(m.manager.records() == 0);
}

TEST_CASE("a digest narrows, content decides: with every digest equal nothing wrong is adopted") {  // A4, fault 94
    resource_manager_options o{8, 4, [](std::span<const token_id>, digest128) { return digest128{1, 1}; }};
    memory m(o);
    m.publish(1, count_up(500, 64));
    m.publish(2, count_up(0, 24));
    m.publish(3, count_up(900, 80));
    const auto got = m.choose(count_up(0, 100), 99);
    CHECK(got.source == checkpoint_id{2});
    CHECK(got.position == token_pos(24));
    auto half = count_up(500, 100);
    half[20] = 3;
    CHECK(m.choose(half, 99).source == checkpoint_id{1});
    CHECK(m.choose(half, 99).position == token_pos(20));
    CHECK(m.choose(count_up(7000, 90), 89).source == std::nullopt);
}

TEST_CASE("against a search by hand, over random families of prompts") {
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
        memory m;
        std::vector<std::pair<std::vector<token_id>, bool>> held;
        for (std::uint64_t id = 1; id <= 30; ++id) {
            std::vector<token_id> tokens;
            if (!held.empty() && random() % 4) {
                tokens = held[random() % held.size()].first;
                tokens.resize(1 + random() % tokens.size());
            }
            for (auto n = 1 + random() % 30; n > 0; --n) tokens.push_back(static_cast<token_id>(random() % 3));
            const bool exact = round % 2;
            held.emplace_back(tokens, exact);
            m.publish(id, tokens, exact);
        }
        for (int question = 0; question < 20; ++question) {
            auto prompt = held[random() % held.size()].first;
            for (auto n = 1 + random() % 12; n > 0; --n) prompt.push_back(static_cast<token_id>(random() % 3));
            const auto limit = static_cast<std::uint32_t>(prompt.size() - 1);
            std::uint32_t best = 0;
            for (const auto& [tokens, exact] : held) {
                std::uint32_t n = 0;
                while (n < tokens.size() && n < limit && tokens[n] == prompt[n]) ++n;
                if (exact) n = n == tokens.size() ? n : 0;
                else n = n % 8 >= 4 ? n : n - n % 8;
                best = std::max(best, n);
            }
            CHECK(m.choose(prompt, limit).position.value == best);
        }
    }
}

TEST_CASE("memory of records is bounded by what they cover") {  // B4
    memory m;
    for (std::uint64_t i = 1; i <= 200; ++i) m.publish(i, count_up(static_cast<token_id>(i * 100), 64));
    const std::size_t full = m.manager.metadata_bytes();
    CHECK(full < 200 * (64 / 8 * 16 + 400));
    for (std::uint64_t i = 1; i <= 200; ++i) m.manager.on(checkpoint_dropped{checkpoint_id{i}});
    CHECK(m.manager.records() == 0);
}

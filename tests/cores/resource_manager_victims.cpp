// What goes when room is needed.
#include <doctest/doctest.h>

#include <random>
#include <set>

#include "actors/cores/resource_manager.hpp"

using namespace fermata;

namespace {

struct pool {
    resource_manager manager{{8, 4, xxh_block_digest}};
    std::shared_ptr<program_view> view = std::make_shared<program_view>();

    void publish(std::uint64_t id, std::vector<std::uint32_t> pages, std::vector<std::uint32_t> active = {},
                 bool exact = false, std::uint64_t from = 0) {
        checkpoint_published p;
        p.checkpoint = checkpoint_id{id};
        p.from = ticket{from ? from : id};
        p.coverage = token_pos(static_cast<std::uint32_t>(pages.size() * 8));
        p.tokens = token_run(std::vector<token_id>(pages.size() * 8, static_cast<token_id>(id)));
        p.exact_only = exact;
        manager.on(p);
        auto next = std::make_shared<program_view>(*view);
        point_view v;
        v.checkpoint = p.checkpoint;
        v.exact_only = exact;
        for (const auto page : pages) v.pages.push_back(page_id{page});
        v.other_holders = active.empty() ? std::vector<std::uint32_t>(pages.size(), 0) : active;
        next->points.push_back(v);
        view = next;
    }
    victims_chosen ask(std::uint32_t pages, std::uint32_t slots = 0, std::vector<std::uint64_t> keep = {}) {
        choose_victims q;
        q.turn = cycle_no{1};
        q.pages = pages;
        q.state_slots = slots;
        for (const auto id : keep) q.keep.push_back(checkpoint_id{id});
        q.view = view;
        return manager.on(q);
    }
};

std::vector<std::uint64_t> ids(const victims_chosen& v) {
    std::vector<std::uint64_t> out;
    for (const auto id : v.drops) out.push_back(id.value);
    return out;
}

using list = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("the least recently used goes first, as many as needed and no more") {  // K4
    pool p;
    p.publish(1, {0, 1});
    p.publish(2, {2, 3});
    p.publish(3, {4, 5});
    CHECK(ids(p.ask(1)) == list{1});
    CHECK(p.ask(1).pages == 2);
    CHECK(ids(p.ask(3)) == list{1, 2});
    CHECK(p.ask(6).enough);
    CHECK_FALSE(p.ask(7).enough);
    CHECK(p.ask(7).pages == 6);
    CHECK(ids(p.ask(0)).empty());
    CHECK(p.ask(0).enough);
}

TEST_CASE("what was reused stays longer than what never was, and so does what grew from it") {  // K4, J2
    pool p;
    p.publish(1, {0});
    p.publish(2, {1});
    p.manager.on(checkpoint_adopted{checkpoint_id{1}, ticket{50}, token_pos(8)});
    CHECK(ids(p.ask(1)) == list{2});
    p.publish(3, {2}, {}, false, 50);  // the end of the sequence that resumed from 1
    p.publish(4, {3});
    CHECK(ids(p.ask(2)) == list{2, 4});
    CHECK(ids(p.ask(3)) == list{2, 4, 1});
}

TEST_CASE("a page is free only when all its holders go; actives keep theirs; kept sources too") {  // K3
    pool p;
    p.publish(1, {0, 1});
    p.publish(2, {0, 1, 2});
    p.publish(3, {3}, {1});
    CHECK(ids(p.ask(1)) == list{2});  // dropping 1 alone frees nothing, so it isn't dropped
    CHECK(ids(p.ask(3)) == list{1, 2});
    CHECK_FALSE(p.ask(4).enough);
    CHECK(p.ask(1, 0, {2}).enough == false);
    CHECK(ids(p.ask(1, 0, {2})).empty());
}

TEST_CASE("aliases that only together free something go together") {  // K3
    pool p;
    p.publish(1, {0, 1});
    p.publish(2, {0, 1});
    CHECK(ids(p.ask(2)) == list{1, 2});
    CHECK(p.ask(2).pages == 2);
}

TEST_CASE("state slots are a resource of their own") {  // K1, K2
    pool p;
    p.publish(1, {0}, {}, false);
    p.publish(2, {1}, {}, true);
    p.publish(3, {2}, {}, true);
    CHECK(ids(p.ask(0, 1)) == list{2});  // 1 has no image: not compared
    CHECK(ids(p.ask(2, 1)) == list{1, 2});
    CHECK_FALSE(p.ask(0, 3).enough);
}

TEST_CASE("against a search by hand: drops free what is claimed, and none is needless") {
    std::mt19937 random(9);
    for (int round = 0; round < 400; ++round) {
        pool p;
        std::vector<std::vector<std::uint32_t>> pages;
        std::vector<std::uint32_t> active(16);
        for (auto& each : active) each = random() % 5 == 0;
        const auto points = 1 + random() % 7;
        for (std::uint64_t id = 1; id <= points; ++id) {
            std::set<std::uint32_t> mine;
            for (auto n = 1 + random() % 5; n > 0; --n) mine.insert(static_cast<std::uint32_t>(random() % 16));
            std::vector<std::uint32_t> list_of(mine.begin(), mine.end()), holders;
            for (const auto page : list_of) holders.push_back(active[page]);
            pages.push_back(list_of);
            p.publish(id, list_of, holders);
        }
        const auto freed_by = [&](const std::set<std::uint64_t>& drops) {
            std::set<std::uint32_t> freed;
            for (const auto id : drops)
                for (const auto page : pages[id - 1]) {
                    bool held = active[page] > 0;
                    for (std::uint64_t other = 1; other <= points; ++other)
                        if (!drops.contains(other))
                            for (const auto q : pages[other - 1]) held |= q == page;
                    if (!held) freed.insert(page);
                }
            return static_cast<std::uint32_t>(freed.size());
        };
        std::set<std::uint64_t> everything;
        for (std::uint64_t id = 1; id <= points; ++id) everything.insert(id);
        const auto want = static_cast<std::uint32_t>(1 + random() % 6);
        const auto got = p.ask(want);
        const auto got_ids = ids(got);
        const std::set<std::uint64_t> drops(got_ids.begin(), got_ids.end());
        CHECK(got.pages == freed_by(drops));
        CHECK(got.enough == (freed_by(everything) >= want));
        if (!got.enough) CHECK(got.pages == freed_by(everything));
        for (const auto id : drops) {
            auto fewer = drops;
            fewer.erase(id);
            CHECK(freed_by(fewer) < std::min(want, got.pages));
        }
    }
}

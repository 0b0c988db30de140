// The token guard: what ends a row.
#include <doctest/doctest.h>

#include <random>

#include "native/guard/stop_matcher.hpp"
#include "native/guard/token_guard.hpp"
#include "native/program.hpp"

using namespace fermata;
using namespace fermata::guard;

namespace {

// Feeds `parts` and tells the index of the part in which the first stop string ends, or -1.
int first_end(const std::vector<std::string>& stops, const std::vector<std::string>& parts) {
    stop_matcher matcher(stops);
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (matcher.feed(parts[i])) return static_cast<int>(i);
    return -1;
}

std::shared_ptr<token_table> letters() {
    auto table = std::make_shared<token_table>();
    for (char c = 'a'; c <= 'z'; ++c) table->bytes.push_back(std::string(1, c));
    table->bytes.push_back("");  // 26: special
    table->end_of_generation = {26};
    return table;
}

}  // namespace

TEST_CASE("a stop string is found inside a token and across tokens") {
    CHECK(first_end({"END"}, {"x", "--END--"}) == 1);
    CHECK(first_end({"END"}, {"E", "N", "D"}) == 2);
    CHECK(first_end({"END"}, {"EN", "EN", "D"}) == 2);
    CHECK(first_end({"END"}, {"EN", "D"}) == 1);
    CHECK(first_end({"END"}, {"EN", "", "d"}) == -1);
    CHECK(first_end({"aab"}, {"aaa", "b"}) == 1);  // the second a begins the match
    CHECK(first_end({"abcabd", "zz"}, {"abcabcabd"}) == 0);
    CHECK(first_end({"long stop", "sto"}, {"long s", "to"}) == 1);
    CHECK(first_end({""}, {"anything"}) == -1);
    CHECK(first_end({std::string("\xF0\x9F\x99\x82")}, {"\xF0\x9F", "\x99", "\x82"}) == 2);  // bytes, not characters
}

TEST_CASE("the matcher agrees with searching the whole text") {
    std::mt19937 random(3);
    for (int round = 0; round < 3000; ++round) {
        const auto word = [&](std::size_t most) {
            std::string out(1 + random() % most, 'a');
            for (char& c : out) c = static_cast<char>('a' + random() % 2);
            return out;
        };
        std::vector<std::string> stops{word(5), word(5)};
        std::string text;
        std::vector<std::string> parts;
        int expected = -1;
        for (int i = 0; i < 8; ++i) {
            parts.push_back(word(4));
            text += parts.back();
            const bool found = text.find(stops[0]) != text.npos || text.find(stops[1]) != text.npos;
            if (found && expected < 0) expected = i;
        }
        REQUIRE(first_end(stops, parts) == expected);
    }
}

TEST_CASE("ids end a row: the model's, unless ignored, and the request's") {
    guard_spec spec;
    spec.max_new_tokens = token_pos(10);
    CHECK(token_guard(spec, letters(), token_pos(99)).accept(26, token_pos(1)) == finish_reason::stop);
    CHECK(token_guard(spec, letters(), token_pos(99)).accept(3, token_pos(1)) == finish_reason::none);
    spec.ignore_eos = true;
    CHECK(token_guard(spec, letters(), token_pos(99)).accept(26, token_pos(1)) == finish_reason::none);
    spec.stop_tokens = {3};
    CHECK(token_guard(spec, letters(), token_pos(99)).accept(3, token_pos(1)) == finish_reason::stop);
    CHECK(token_guard(spec, nullptr, token_pos(99)).accept(3, token_pos(1)) == finish_reason::stop);
}

TEST_CASE("budget and context end a row, whichever is smaller") {
    guard_spec spec;
    spec.max_new_tokens = token_pos(3);
    token_guard by_budget(spec, letters(), token_pos(99));
    CHECK(by_budget.tokens_max().value == 3);
    CHECK(by_budget.accept(1, token_pos(2)) == finish_reason::none);
    CHECK(by_budget.accept(1, token_pos(3)) == finish_reason::length);
    token_guard by_context(spec, letters(), token_pos(2));
    CHECK(by_context.accept(1, token_pos(2)) == finish_reason::length);
}

TEST_CASE("a stop at the last token of the budget is a stop") {
    guard_spec spec;
    spec.max_new_tokens = token_pos(2);
    spec.stop = {"ab"};
    token_guard guard(spec, letters(), token_pos(99));
    CHECK(guard.accept(0, token_pos(1)) == finish_reason::none);
    CHECK(guard.accept(1, token_pos(2)) == finish_reason::stop);
}

TEST_CASE("a fresh guard fed the same tokens stands at the same place") {  // fault 77
    guard_spec spec;
    spec.max_new_tokens = token_pos(50);
    spec.stop = {"abab", "cc"};
    std::mt19937 random(5);
    for (int round = 0; round < 200; ++round) {
        token_guard once(spec, letters(), token_pos(99));
        std::vector<token_id> fed;
        for (std::uint32_t i = 1; i < 30; ++i) {
            fed.push_back(static_cast<token_id>(random() % 3));
            token_guard again(spec, letters(), token_pos(99));
            finish_reason last = finish_reason::none;
            for (std::uint32_t j = 0; j < fed.size(); ++j) last = again.accept(fed[j], token_pos(j + 1));
            const finish_reason now = once.accept(fed.back(), token_pos(i));
            REQUIRE(now == last);
            if (now != finish_reason::none) break;
        }
    }
}

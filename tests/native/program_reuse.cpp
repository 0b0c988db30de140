// Resume points: shared pages, copied tails, forked images, and what a plan may not ask of them. Right tokens come from
// the oracle's reference: a page or image that isn't what it should be would show.
#include "native/program_driver.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

[[maybe_unused]] const ticket a{1}, b{2}, c{3}, d{4};

// A finished sequence of `prompt` + `tokens`: its endpoint covers prompt + tokens - 1.
struct history {
    std::vector<token_id> all;
    checkpoint_published end;
};

history finished(driver& d, ticket who, std::size_t prompt, std::uint32_t tokens, std::uint32_t seed = 1) {
    const auto start = some_tokens(prompt, seed);
    history out;
    out.all = joined(start, d.complete(who, spec_of(start, tokens)).tokens);
    out.end = d.last_point();
    return out;
}

}  // namespace

TEST_CASE("an attention-only point serves every position it covers: full pages shared, the tail copied") {  // A3, G7
    const auto how = small_oracle(0);
    for (std::uint32_t position : {1u, 15u, 16u, 17u, 31u, 32u, 40u, 48u}) {
        CAPTURE(position);
        driver d(small_options(), how);
        const history past = finished(d, a, 40, 9);  // covers 48
        const auto prompt = joined({past.all.begin(), past.all.begin() + position}, some_tokens(20, 9));
        const auto bound = d.bind(b, spec_of(prompt, 12), lane(0), past.end.checkpoint, position);
        const bool border = position % 16 == 0;
        CHECK(bound.outcome == (border ? bind_outcome::bound : bind_outcome::copying));
        CHECK(bound.position.value == position);
        CHECK(d.adopted.size() == (border ? 1 : 0));  // F11: use counts when the copy is complete
        d.finish_copies();
        REQUIRE(d.adopted.size() == 1);
        CHECK(d.adopted[0].by == b);
        CHECK(d.adopted[0].position.value == position);
        d.run_until(b, 12);
        CHECK(d.answers[b].tokens == oracle::expected(how, prompt, 12));
        CHECK(d.answers[b].computed == prompt.size() - position + 11);
        // The parent was not touched: resend what it covers, all but one token. Taken to its very end it is covered
        // by the answer that grew from it, which then serves instead.
        const checkpoint_id serves = d.points.count(past.end.checkpoint) ? past.end.checkpoint : d.last_point().checkpoint;
        const std::vector<token_id> again(past.all.begin(), past.all.begin() + std::min(position + 1, 48u));
        d.complete(c, spec_of(again, 5), serves, static_cast<std::uint32_t>(again.size()) - 1);
        CHECK(d.answers[c].tokens == oracle::expected(how, again, 5));
    }
}

TEST_CASE("a hybrid point serves exactly its end; the image is forked") {  // A3, F13
    const auto how = small_oracle(64);
    for (std::size_t prompt_tokens : {40u, 39u, 41u}) {  // coverage 48 (a border), 47, 49
        driver d(small_options(), how);
        const history past = finished(d, a, prompt_tokens, 9);
        const std::uint32_t end = past.end.coverage.value;
        const auto prompt = joined(past.all, some_tokens(30, 5));
        CHECK(d.bind(b, spec_of(prompt, 12), lane(0), past.end.checkpoint, end - 1).outcome == bind_outcome::refused);
        // Two go on from it at once, in different ways.
        CHECK(d.bind(b, spec_of(prompt, 12), lane(0), past.end.checkpoint, end).outcome == bind_outcome::copying);
        CHECK(d.bind(c, spec_of(past.all, 12), lane(1), past.end.checkpoint, end).outcome == bind_outcome::copying);
        d.finish_copies();
        d.run_until(b, 12);
        d.run_until(c, 12);
        CHECK(d.answers[b].tokens == oracle::expected(how, prompt, 12));
        CHECK(d.answers[c].tokens == oracle::expected(how, past.all, 12));
        CHECK(d.points.count(past.end.checkpoint) == 1);  // the image is still there for a third
        d.complete(ticket(9), spec_of(joined(past.all, {7}), 3), past.end.checkpoint, end);
        CHECK(d.answers[ticket(9)].tokens == oracle::expected(how, joined(past.all, {7}), 3));
    }
}

TEST_CASE("a slot that another request used tells nothing to the next") {  // faults 11, 13, 14
    const auto how = small_oracle(64);
    auto options = small_options();
    options.max_concurrency = 1;
    options.device_state_slots = 0;  // one slot: everybody runs in it
    driver d(options, how);
    for (std::uint32_t i = 0; i < 5; ++i) {
        const auto prompt = some_tokens(20 + i, i % 2);
        CHECK(d.complete(ticket(i + 1), spec_of(prompt, 6)).tokens == oracle::expected(how, prompt, 6));
        d.drop(d.last_point().checkpoint);
    }
}

TEST_CASE("a sequence with a fresh slot ignores what it holds, also after a cancel halfway") {  // fault 13
    const auto how = small_oracle(64);
    auto options = small_options();
    options.max_concurrency = 1;
    options.device_state_slots = 0;
    driver d(options, how);
    d.bind(a, spec_of(some_tokens(50, 1), 9), lane(0));
    d.prefill(a, 17);
    d.cancel(a);
    const auto prompt = some_tokens(30, 2);
    CHECK(d.complete(b, spec_of(prompt, 6)).tokens == oracle::expected(how, prompt, 6));
}

TEST_CASE("prompts that leave one token to compute") {  // fault 17
    for (std::uint32_t length : {31u, 32u, 33u, 34u}) {
        const auto how = small_oracle(0);
        driver d(small_options(), how);
        const auto prompt = some_tokens(length, 4);
        d.complete(a, spec_of(prompt, 3));
        const auto end = d.last_point();
        CHECK(d.bind(b, spec_of(prompt, 3), lane(0), end.checkpoint, length).outcome == bind_outcome::refused);
        d.complete(b, spec_of(prompt, 3), end.checkpoint, length - 1);
        CHECK(d.answers[b].tokens == d.answers[a].tokens);
        CHECK(d.answers[b].computed == 1 + 2);
    }
}

TEST_CASE("the same prompt again, from every kind of point, any number of times") {  // fault 29
    for (std::size_t state_bytes : {0u, 64u}) {
        const auto how = small_oracle(state_bytes);
        driver d(small_options(), how);
        const auto prompt = some_tokens(33, 4);
        const auto right = oracle::expected(how, prompt, 8);
        for (std::uint32_t i = 1; i <= 6; ++i) {
            std::optional<checkpoint_id> source;
            std::uint32_t position = 0;
            for (const auto& [id, point] : d.points) {
                if (point.coverage.value > 32 && point.exact_only) continue;
                source = id;
                position = std::min(point.coverage.value, 32u);
            }
            d.complete(ticket(i), spec_of(prompt, 8), source, position);
            CHECK(d.answers[ticket(i)].tokens == right);
        }
        CHECK(d.points.size() <= d.done.room.pages_cached);
    }
}

TEST_CASE("what a plan says about a source is checked, not trusted") {  // F1, architecture 2
    driver d(small_options(), small_oracle(0));
    const history past = finished(d, a, 40, 9);
    const auto id = past.end.checkpoint;
    const auto other = some_tokens(60, 77);
    const auto outcome = [&](std::vector<token_id> prompt, std::optional<checkpoint_id> source, std::uint32_t position) {
        const bind_result got = d.bind(b, spec_of(std::move(prompt), 3), lane(0), source, position);
        if (got.outcome == bind_outcome::bound || got.outcome == bind_outcome::copying) d.cancel(b);
        d.finish_copies();
        return got;
    };
    CHECK(outcome(other, id, 32).outcome == bind_outcome::stale);             // other tokens
    CHECK(outcome(past.all, checkpoint_id(99), 32).outcome == bind_outcome::stale);
    CHECK(outcome(past.all, id, 0).text == "position 0: the source serves 1 to 48");
    CHECK(outcome(joined(past.all, other), id, 49).outcome == bind_outcome::refused);
    CHECK(outcome(past.all, {}, 16).text == "root serves position 0 alone");
    auto almost = past.all;
    almost[31] ^= 1;
    CHECK(outcome(almost, id, 32).outcome == bind_outcome::stale);
    CHECK(outcome(almost, id, 31).outcome == bind_outcome::copying);  // the first difference lies behind the position
    d.drop(id);
    CHECK(outcome(past.all, id, 32).outcome == bind_outcome::stale);
    CHECK(d.free_pages() == d.done.room.pages_total);
}

TEST_CASE("what a plan says about lanes, tickets and prompts is checked too") {
    auto options = small_options();
    driver d(options, small_oracle(0));
    CHECK(d.bind(a, spec_of(some_tokens(5, 1), 3), lane(4)).text == "lane 4 of 4 lanes");
    CHECK(d.bind(a, spec_of(some_tokens(5, 1), 3), lane(2)).outcome == bind_outcome::bound);
    CHECK(d.bind(b, spec_of(some_tokens(5, 1), 3), lane(2)).text == "lane 2 is taken by ticket 1");
    CHECK(d.bind(a, spec_of(some_tokens(5, 1), 3), lane(1)).text == "the ticket is known already: a resume carries no spec");
    CHECK(d.resume(b, lane(1)).text == "a resume of a sequence that is not paused");
    CHECK(d.resume(a, lane(1)).text == "a resume of a sequence that is not paused");
    CHECK(d.bind(b, spec_of({}, 3), lane(1)).text == "the prompt is empty");
    CHECK(d.bind(b, spec_of({1, 1024}, 3), lane(1)).text == "token 1024 in the prompt: the vocabulary has ids 0 to 1023");
    CHECK(d.bind(b, spec_of({-1}, 3), lane(1)).outcome == bind_outcome::refused);
    CHECK(d.bind(b, spec_of(some_tokens(513, 1), 3), lane(1)).text == "a prompt of 513 tokens: max_context is 512");
    auto odd = spec_of({1}, 3);
    odd->sampling.temperature = NAN;
    CHECK(d.bind(b, odd, lane(1)).outcome == bind_outcome::refused);
}

TEST_CASE("an input point lets others share the prompt while its owner still answers") {  // choices, equal prompts
    const auto how = small_oracle(0);
    driver d(small_options(), how);
    const auto prompt = some_tokens(40, 6);
    d.bind(a, spec_of(prompt, 20), lane(0));
    d.run_until(a, 1);
    REQUIRE(d.points.size() == 1);
    const auto input = d.last_point();
    CHECK(input.coverage.value == 32);  // the page still being written stays out of it
    CHECK(d.done.room.pages_cached == 0);  // its pages are the owner's too
    d.bind(b, spec_of(prompt, 20), lane(1), input.checkpoint, 32);
    d.run_until(b, 20);
    d.run_until(a, 20);
    CHECK(d.answers[a].tokens == oracle::expected(how, prompt, 20));
    CHECK(d.answers[b].tokens == d.answers[a].tokens);
    CHECK(d.answers[b].computed == 8 + 19);
}

TEST_CASE("no input point without a full page, for a hybrid, or where one exists") {
    driver small(small_options(), small_oracle(0));
    small.bind(a, spec_of(some_tokens(15, 6), 5), lane(0));
    small.run_until(a, 1);
    CHECK(small.points.empty());
    driver hybrid(small_options(), small_oracle(64));
    hybrid.bind(a, spec_of(some_tokens(40, 6), 5), lane(0));
    hybrid.run_until(a, 1);
    CHECK(hybrid.points.empty());
    driver twice(small_options(), small_oracle(0));
    const auto prompt = some_tokens(40, 6);
    twice.bind(a, spec_of(prompt, 20), lane(0));
    twice.run_until(a, 1);
    twice.bind(b, spec_of(prompt, 20), lane(1), twice.last_point().checkpoint, 32);
    twice.run_until(b, 1);
    CHECK(twice.points.size() == 1);
}

TEST_CASE("a newer point of the same descent replaces what it covers") {  // B4, B5
    driver d(small_options(), small_oracle(0));
    std::vector<token_id> talk;
    for (std::uint32_t turn = 1; turn <= 10; ++turn) {
        talk = joined(talk, some_tokens(11, turn));
        std::optional<checkpoint_id> source;
        std::uint32_t position = 0;
        if (!d.points.empty()) {
            source = d.last_point().checkpoint;
            position = d.last_point().coverage.value;
        }
        talk = joined(talk, d.complete(ticket(turn), spec_of(talk, 10), source, position).tokens);
        CHECK(d.points.size() == 1);  // one conversation, one endpoint
        CHECK(d.last_point().coverage.value == talk.size() - 1);
        CHECK(d.done.room.pages_cached == pages_for(talk.size() - 1, 16));
        if (turn > 1) CHECK(d.answers[ticket(turn)].computed == 1 + 11 + 9);  // fault 23: prefill is the suffix
    }
}

TEST_CASE("a point resumed before its end stays: it has more to offer") {
    driver d(small_options(), small_oracle(0));
    const history past = finished(d, a, 40, 9);
    const auto prompt = joined({past.all.begin(), past.all.begin() + 20}, some_tokens(30, 8));
    d.complete(b, spec_of(prompt, 5), past.end.checkpoint, 20);
    CHECK(d.points.count(past.end.checkpoint) == 1);
    CHECK(d.points.size() == 2);
}

TEST_CASE("the view names points, their pages and who else holds them; steady decoding leaves it alone") {  // K10
    driver d(small_options(), small_oracle(0));
    d.bind(a, spec_of(some_tokens(40, 6), 60), lane(0));
    CHECK(d.done.view != nullptr);  // the first answer always carries one
    d.run_until(a, 1);
    REQUIRE(d.done.view != nullptr);
    REQUIRE(d.done.view->points.size() == 1);
    CHECK(d.done.view->points[0].coverage.value == 32);
    CHECK(d.done.view->points[0].other_holders == std::vector<std::uint32_t>{1, 1});
    CHECK(d.done.view->page_tokens == 16);
    const epoch before = d.done.at;
    for (int i = 0; i < 40; ++i) {  // crosses page borders
        d.decode({a});
        CHECK(d.done.view == nullptr);
        CHECK(d.done.at == before);
    }
    d.bind(b, spec_of(some_tokens(40, 6), 60), lane(1), d.last_point().checkpoint, 32);
    REQUIRE(d.done.view != nullptr);
    CHECK(d.done.view->points[0].other_holders == std::vector<std::uint32_t>{2, 2});
    CHECK(d.done.at > before);
    CHECK(d.done.view->at == d.done.at);
    d.cancel(a);
    REQUIRE(d.done.view != nullptr);
    CHECK(d.done.view->points[0].other_holders == std::vector<std::uint32_t>{1, 1});
}

TEST_CASE("dropping a point frees what nobody else holds") {
    driver d(small_options(), small_oracle(0));
    const history past = finished(d, a, 40, 9);
    d.bind(b, spec_of(past.all, 30), lane(0), past.end.checkpoint, 32);
    CHECK(d.done.room.pages_cached == 1);  // the point's tail
    d.drop(past.end.checkpoint);
    CHECK(d.points.empty());
    CHECK(d.done.room.pages_cached == 0);
    d.run_until(b, 30);
    CHECK(d.answers[b].tokens == oracle::expected(small_oracle(0), past.all, 30));
    d.drop(checkpoint_id(12345));  // unknown: passed over
}

TEST_CASE("a ragged batch captures for each row what a run alone captures") {  // fault 16
    const auto how = small_oracle(64, 64);
    auto options = small_options();
    options.batch_tokens = 512;
    options.prefill_chunk_tokens = 512;
    driver d(options, how);
    const std::uint32_t lengths[] = {63, 64, 65, 129};
    cycle_plan binds, chunks;
    for (std::uint32_t i = 0; i < 4; ++i) {
        binds.binds.push_back({ticket(i + 1), lane(i), spec_of(some_tokens(lengths[i], i), 1), {}, token_pos(0),
                               token_pos(0)});
        chunks.prefills.push_back({ticket(i + 1), token_pos(512)});
    }
    d.run(binds);
    REQUIRE(d.run(chunks).rows.size() == 4);
    REQUIRE(d.points.size() == 4);
    for (const auto& point : std::map(d.points)) {
        const auto covered = point.second.tokens.span();
        const auto prompt = joined({covered.begin(), covered.end()}, some_tokens(7, 50));
        const ticket who(100 + point.first.value);
        d.complete(who, spec_of(prompt, 6), point.first, static_cast<std::uint32_t>(covered.size()));
        CHECK(d.answers[who].tokens == oracle::expected(how, prompt, 6));
    }
}

// The oracle run by hand, without Program, against its reference: any cut into units, any pages; and any wrong byte
// shows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>

#include "native/models/oracle/oracle.hpp"

using namespace fermata;

namespace {

// A model with memory of its own and one sequence on scattered pages.
struct bench {
    explicit bench(oracle::options how, std::size_t pages = 8) : how_(how), family(oracle::make(how)) {
        kv.resize(pages * family->layout().pools[0].page_bytes);
        states.resize(4 * how.state_bytes + 1);
        std::mt19937 random(1);
        for (auto& b : kv) b = static_cast<std::byte>(random());
        for (auto& b : states) b = static_cast<std::byte>(random());
        for (std::size_t i = pages; i > 0; --i) table.emplace_back(static_cast<std::uint32_t>(i - 1));
        family->prepare(512, 4);
        family->attach({{kv.data()}, states.data()});
    }

    // Feeds tokens [first, first + n) and gives the logits of the last one.
    std::vector<float> run(const std::vector<token_id>& tokens, std::size_t first, std::size_t n, std::uint32_t rows = 1) {
        std::vector<float> logits(rows * how_.vocabulary);
        unit_row row;
        row.first = token_pos(static_cast<std::uint32_t>(first));
        row.tokens = {tokens.data() + first, n};
        row.pages = table;
        row.state = state_slot(2);
        row.fresh_state = first == 0;
        row.logit_rows = rows;
        row.logits = logits.data();
        const unit_status status = family->run({{&row, 1}, nullptr});
        REQUIRE(status == unit_status::done);
        return logits;
    }

    oracle::options how_;
    std::unique_ptr<model> family;
    std::vector<std::byte> kv, states;
    std::vector<page_id> table;
};

std::vector<token_id> tokens_of(std::size_t n) {
    std::vector<token_id> out(n);
    std::iota(out.begin(), out.end(), 3);
    for (auto& t : out) t = (t * 37) % 500;
    return out;
}

std::vector<oracle::options> kinds() {
    std::vector<oracle::options> out;
    for (std::size_t state_bytes : {0u, 8u, 72u})
        for (auto verify : {oracle::verify_mode::all, oracle::verify_mode::tail}) {
            oracle::options how;
            how.state_bytes = state_bytes;
            how.verify = verify;
            how.vocabulary = 500;
            how.page_tokens = 16;
            how.kv_bytes = state_bytes == 8 ? 24 : 8;
            out.push_back(how);
        }
    return out;
}

std::size_t best(std::span<const float> logits) {
    return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

TEST_CASE("every cut of the tokens gives the reference's logits to the bit") {
    const auto tokens = tokens_of(100);
    for (const auto& how : kinds())
        for (std::size_t cut : {1u, 5u, 16u, 33u, 100u}) {
            bench b(how);
            oracle::reference known(how);
            std::vector<float> right(how.vocabulary);
            for (std::size_t at = 0; at < tokens.size(); at += cut) {
                const std::size_t n = std::min(cut, tokens.size() - at);
                const auto got = b.run(tokens, at, n, static_cast<std::uint32_t>(n));
                for (std::size_t i = 0; i < n; ++i) {
                    known.feed(tokens[at + i]);
                    known.logits(right);
                    REQUIRE(std::memcmp(right.data(), got.data() + i * how.vocabulary, right.size() * 4) == 0);
                    REQUIRE(best(right) == static_cast<std::size_t>(known.next()));
                }
            }
        }
}

TEST_CASE("one wrong bit in any covered page changes the output") {
    const auto tokens = tokens_of(40);
    for (const auto& how : kinds()) {
        bench b(how);
        b.run(tokens, 0, 39);
        const auto right = b.run(tokens, 39, 1);
        for (std::size_t position : {0u, 17u, 38u}) {
            if (how.verify == oracle::verify_mode::tail && position < 16) continue;
            b.run(tokens, 0, 39);
            const std::size_t page = b.table[position / 16].value;
            b.kv[page * b.family->layout().pools[0].page_bytes + position % 16 * how.kv_bytes + 3] ^= std::byte{4};
            CHECK(b.run(tokens, 39, 1) != right);
        }
    }
}

TEST_CASE("one wrong bit in the image changes the output; a fresh state ignores what the slot held") {
    for (const auto& how : kinds()) {
        if (how.state_bytes == 0) continue;
        const auto tokens = tokens_of(20);
        bench b(how);
        b.run(tokens, 0, 19);  // the slot was full of noise
        const auto right = b.run(tokens, 19, 1);
        for (std::size_t byte : {std::size_t{0}, how.state_bytes - 1}) {
            b.run(tokens, 0, 19);
            b.states[2 * how.state_bytes + byte] ^= std::byte{1};
            CHECK(b.run(tokens, 19, 1) != right);
        }
    }
}

TEST_CASE("a stopped unit leaves every image as it was") {
    bench b(kinds()[2]);
    const auto tokens = tokens_of(20);
    b.run(tokens, 0, 10);
    const auto before = b.states;
    std::atomic<bool> stop{true};
    unit_row row;
    row.first = token_pos(10);
    row.tokens = {tokens.data() + 10, 5};
    row.pages = b.table;
    row.state = state_slot(2);
    CHECK(b.family->run({{&row, 1}, &stop}) == unit_status::stopped);
    CHECK(b.states == before);
}

TEST_CASE("a specification is read, and what is wrong is named") {
    CHECK(oracle::is_spec("oracle"));
    CHECK(oracle::is_spec("oracle:layers=3"));
    CHECK_FALSE(oracle::is_spec("oracles"));
    CHECK_FALSE(oracle::is_spec("models/oracle.gguf"));
    CHECK(oracle::parse("oracle").state_bytes > 0);  // a hybrid unless told otherwise
    const auto how = oracle::parse("oracle:state_bytes=0,layers=3,kv_bytes=16,delay_us=250,verify=tail,vocab=300,context=900");
    CHECK(how.state_bytes == 0);
    CHECK(how.layers == 3);
    CHECK(how.kv_bytes == 16);
    CHECK(how.delay_us == 250);
    CHECK(how.verify == oracle::verify_mode::tail);
    CHECK(how.vocabulary == 300);
    CHECK(how.context_tokens == 900);
    const auto says = [](std::string_view spec) -> std::string {
        try {
            oracle::parse(spec);
        } catch (const std::invalid_argument& fault) {
            return fault.what();
        }
        return "";
    };
    CHECK(says("oracle:") == "oracle: key=value is needed behind `oracle:`");
    CHECK(says("oracle:layers") == "oracle: `layers`: key=value is needed");
    CHECK(says("oracle:layers=0") == "oracle: layers=0: a number from 1 to 1024 is needed");
    CHECK(says("oracle:state_bytes=12") ==
          "oracle: state_bytes=12: a number from 0 to 1073741824, a multiple of 8 is needed");
    CHECK(says("oracle:verify=some") == "oracle: verify=some: `all` or `tail` is needed");
    CHECK(says("oracle:depth=3") ==
          "oracle: `depth` is no key; known are state_bytes, layers, kv_bytes, delay_us, verify, vocab, context");
    CHECK(says("oracle:layers=1,,") == "oracle: ``: key=value is needed");
    CHECK(says("oracle:layers=99999999999999999999").find("layers=") != std::string::npos);
}

TEST_CASE("a row that its pages cannot hold is refused by the family") {
    bench b(kinds()[0], 1);
    const auto tokens = tokens_of(40);
    CHECK_THROWS_AS(b.run(tokens, 0, 17), std::logic_error);
}

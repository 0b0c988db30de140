// The debug printer and the schema: their text is fixed, because people and peers read it.
#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "messages/wire/print.hpp"
#include "messages/wire/schema.hpp"
#include "random_content.hpp"

using namespace fermata;
using namespace fermata::wire;

TEST_CASE("a message prints as its fields, lists shortened") {
    cycle_plan plan;
    plan.cycle = cycle_no(7);
    for (std::uint64_t i = 1; i <= 10; ++i) plan.decodes.push_back(ticket(i));
    plan.prefills.push_back({ticket(3), token_pos(512)});
    CHECK(print(plan) == "cycle_plan{cycle: 7, cancels: [], drops: [], pauses: [], binds: [], "
                         "decodes: [1, 2, 3, 4, 5, 6, 7, 8, ... 2 more], "
                         "prefills: [prefill_order{who: 3, tokens_max: 512}]}");
    CHECK(print(plan, print_limits::none()).find("8, 9, 10]") != std::string::npos);
}

TEST_CASE("values print so that they can be told apart") {
    CHECK(print(token_logprob{5, 0.1f}) == "token_logprob{token: 5, logprob: 0.1}");
    CHECK(print(token_logprob{5, std::numeric_limits<float>::quiet_NaN()}) == "token_logprob{token: 5, logprob: nan(0x7fc00000)}");
    CHECK(print(source_chosen{cycle_no(1), ticket(2), std::nullopt, token_pos(0)}) ==
          "source_chosen{turn: 1, who: 2, source: none, position: 0}");
    CHECK(print(copy_done{copy_id(4), false, "line\n\"quoted\" \x01"}) ==
          "copy_done{copy: 4, complete: false, error: \"line\\n\\\"quoted\\\" \\x01\"}");
    CHECK(print(bind_result{ticket(1), bind_outcome::short_of_room, token_pos(0), std::string(100, 'a')}) ==
          "bind_result{who: 1, outcome: short_of_room, position: 0, text: \"" + std::string(80, 'a') + "\" ... 20 more bytes}");
    CHECK(print(bus_message(cancel_request{request_id(9)})) == "cancel_request{request: 9}");
    CHECK(print(detokenize_tokens{token_run({1, 2, 3}).part(1, 2)}) == "detokenize_tokens{tokens: [2, 3]}");
}

TEST_CASE("enumerators are known by name") {
    CHECK(enum_size<finish_reason> == 5);
    CHECK(enum_size<bind_outcome> == 5);
    CHECK(enum_size<failure_kind> == 7);
    CHECK(enum_size<prompt_kind> == 3);
    CHECK(enum_name(finish_reason::cancelled) == "cancelled");
    CHECK(enum_name(failure_kind::internal) == "internal");
    CHECK(enum_name(static_cast<finish_reason>(9)) == "?");
}

TEST_CASE("the schema names every type once, with every field in order") {
    const auto& text = schema_text();
    CHECK(text.find("prefill_order{who:ticket_tag/u64,tokens_max:pos_tag/u32,}\n") != std::string::npos);
    CHECK(text.find("row_result{who:ticket_tag/u64,") != std::string::npos);
    CHECK(text.find("finish:(none|stop|length|cancelled|error|)") != std::string::npos);
    CHECK(text.find("source:checkpoint_tag/u64?") != std::string::npos);
    CHECK(text.find("choices:[sequence_spec*]") != std::string::npos);
    CHECK(text.find("prompt_top_logprobs:[[token_logprob]]") != std::string::npos);
    std::set<std::string_view> names;
    std::size_t types = 0;
    auto count = [&]<class T>(std::type_identity<T>) {
        ++types;
        names.insert(T::type_name);
        std::set<std::string_view> fields;
        std::set<std::size_t> offsets;
        T x;
        for_each_field<T>([&](const auto& each) {
            fields.insert(each.name);
            offsets.insert(static_cast<std::size_t>(reinterpret_cast<const char*>(&(x.*each.member)) - reinterpret_cast<const char*>(&x)));
        });
        CHECK(fields.size() == field_count<T>);   // no name twice
        CHECK(offsets.size() == field_count<T>);  // no member twice
    };
    for_each_type(message_parts{}, count);
    for_each_type(bus_messages{}, count);
    CHECK(names.size() == types);
}

TEST_CASE("the hash is FNV-1a of the schema") {
    // Check values of FNV-1a: the hash of "a" is af63dc4c8601ec8c (reference: the authors' test suite).
    auto fnv = [](std::string_view s) {
        std::uint64_t h = 14695981039346656037u;
        for (char c : s) {
            h ^= static_cast<unsigned char>(c);
            h *= 1099511628211u;
        }
        return h;
    };
    REQUIRE(fnv("a") == 0xaf63dc4c8601ec8cu);
    CHECK(schema_hash() == fnv(schema_text()));
}

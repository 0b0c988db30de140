// The JSON reader: accepts and refuses the same texts as nlohmann's, gives the same values, keeps places, holds limits.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/openai/json.hpp"
#include "frontend/openai/text.hpp"

using namespace fermata::openai;
using json = nlohmann::ordered_json;

namespace {

// The value as nlohmann's type, built through the reader's own access functions.
json copy_of(json_value v) {
    switch (v.kind()) {
        case json_kind::null: return nullptr;
        case json_kind::boolean: return v.boolean();
        case json_kind::number: return v.number();
        case json_kind::string: return v.string();
        case json_kind::array: {
            json out = json::array();
            v.for_each_element([&](json_value e) { out.push_back(copy_of(e)); });
            return out;
        }
        case json_kind::object: {
            json out = json::object();
            v.for_each_member([&](json_value name, json_value value) { out[name.string()] = copy_of(value); });
            return out;
        }
    }
    return {};
}

}  // namespace

TEST_CASE("valid texts mean what nlohmann's reader says") {
    for (std::string const text : {
             R"(null)", R"( [ ] )", R"({})", R"([1,2.5,-0,1e3,-1.5E-2,0.1,123456789012])", R"({"a":{"b":[true,false,null]},"c":""})",
             R"("\u00e9\n\t\"\\\/\b\f\r\ud83d\ude00")", "\"\xC3\xA9 \xF0\x9F\x98\x80 \x7F\"", R"({"a":1,"a":2})", "\t[\n1\r]",
             R"({"\u0061":1})", R"("\u0000")"}) {
        json_document const d(text);
        CHECK_MESSAGE(copy_of(d.root()) == json::parse(text), text);
    }
}

TEST_CASE("invalid texts are refused, as nlohmann's reader does") {
    for (std::string const text :
         {"", " ", "{", "[", "[1,]", "{\"a\":1,}", "{\"a\"}", "{a:1}", "{'a':1}", "[1 2]", "01", "1.", ".5", "+1", "-", "1e", "nul", "truE",
          "NaN", "Infinity", "-Infinity", "\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\ud83d",
          "\"\x01\"", "\"\n\"", "\"\xC3\"", "\"\xC0\xAF\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xFF\"", "[1]]", "{} x", "\"\\\"", "[\"a\"", "\xC3\xA9"}) {
        CHECK_THROWS_AS(json_document{text}, json_error);
        CHECK_FALSE(json::accept(text));
    }
}

TEST_CASE("errors name the byte") {
    try {
        json_document d(R"({"a": tru})");
        FAIL("accepted");
    } catch (json_error const& e) {
        CHECK(e.offset() == 6);
    }
}

TEST_CASE("limits bound depth, values and members") {
    auto const nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
    CHECK_NOTHROW(json_document(nested(128)));
    CHECK_THROWS_WITH(json_document(nested(129)), "nested deeper than 128 levels");
    CHECK_THROWS(json_document(std::string(1'000'000, '[')));
    json_limits few;
    few.values_max = 4;
    CHECK_NOTHROW(json_document("[1,2,3]", few));
    CHECK_THROWS(json_document("[1,2,3,4]", few));
    few = {};
    few.members_max = 1;
    CHECK_THROWS(json_document(R"({"a":1,"b":2})", few));
}

TEST_CASE("whole numbers and large ones") {
    auto const integer = [](std::string const& t) { return json_document(t).root().integer(); };
    CHECK(integer("5") == 5);
    CHECK(integer("5.0") == 5);
    CHECK(integer("5e0") == 5);
    CHECK(integer("-9223372036854775808") == INT64_MIN);
    CHECK_FALSE(integer("9223372036854775808"));
    CHECK_FALSE(integer("5.5"));
    CHECK_FALSE(integer("1e300"));
    CHECK(std::isinf(json_document("1e999").root().number()));
    CHECK(json_document("1e-999").root().number() == 0);
}

TEST_CASE("raw bytes, repeated members, equality") {
    std::string const text = R"({ "x" : [1.0, {"b":2, "a":1}] , "x": "last", "\u0079": "\u0041"})";
    json_document const d(text);
    CHECK(d.root().find("x")->string() == "last");
    CHECK(d.root().find("y")->equals("A"));
    CHECK_FALSE(d.root().find("z"));
    std::vector<std::string> raw;
    d.root().for_each_member([&](json_value, json_value v) { raw.emplace_back(v.raw()); });
    CHECK(raw[0] == R"([1.0, {"b":2, "a":1}])");
}

TEST_CASE("strings are written as JSON that reads back the same") {
    std::string all;
    for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
    all += "\xC3\xA9\xE2\x80\xA8\xF0\x9F\x98\x80";
    auto const written = json_string(all);
    CHECK(json::parse(written) == all);
    CHECK(json_document(written).root().string() == all);
    CHECK(json_string("a\xC3") == "\"a\xEF\xBF\xBD\"");  // never invalid UTF-8 on the wire
    CHECK(json_string("\xFF\xFE") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
    CHECK(printable_token("a\xF0\x9F") == "a\\xf0\\x9f");
    CHECK(printable_token("\xC3\xA9") == "\xC3\xA9");
}

TEST_CASE("numbers are written so that they read back the same") {
    auto const written = [](auto v) {
        std::string out;
        append_json_number(out, v);
        return out;
    };
    for (float v : {0.0f, -1.5f, -0.1f, 1e-30f, -12.345678f, 3e8f}) CHECK(std::stof(written(v)) == v);
    CHECK(written(-2.0f) == "-2.0");
    CHECK(written(std::nanf("")) == "null");
    CHECK(written(-INFINITY) == "-9999.0");
    CHECK(written(std::uint64_t{18446744073709551615u}) == "18446744073709551615");
}

// Request bodies of the OpenAI routes. Any bytes end in a request or in a 4xx, and the reader agrees with nlohmann's about
// what JSON is and what it means.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "frontend/openai/request.hpp"
#include "frontend/openai/text.hpp"

namespace {

using namespace fermata;
using namespace fermata::openai;

void require(bool holds) {
    if (!holds) std::abort();
}

// Whether every number fits a double; nlohmann refuses those that don't.
bool all_finite(json_value v) {
    bool good = !v.is(json_kind::number) || std::isfinite(v.number());
    if (v.is(json_kind::array)) v.for_each_element([&](json_value e) { good = good && all_finite(e); });
    if (v.is(json_kind::object)) v.for_each_member([&](json_value, json_value e) { good = good && all_finite(e); });
    return good;
}

void compare(json_value mine, nlohmann::json const& other) {
    switch (mine.kind()) {
        case json_kind::null: return require(other.is_null());
        case json_kind::boolean: return require(other.is_boolean() && other.get<bool>() == mine.boolean());
        case json_kind::number: return require(other.is_number() && other.get<double>() == mine.number());
        case json_kind::string: {
            auto const text = mine.string();
            require(other.is_string() && other.get_ref<std::string const&>() == text);
            return require(nlohmann::json::parse(json_string(text)) == other);
        }
        case json_kind::array: {
            std::size_t i = 0;
            require(other.is_array() && other.size() == mine.size());
            return mine.for_each_element([&](json_value e) { compare(e, other[i++]); });
        }
        case json_kind::object:
            require(other.is_object());
            return mine.for_each_member([&](json_value name, json_value) {
                auto const key = name.string();
                compare(*mine.find(key), other.at(key));
            });
    }
}

void check_reader(std::string_view text) {
    json_limits few;
    few.members_max = 64;  // comparing looks members up one by one
    try {
        json_document const document(text, few);
        if (!all_finite(document.root())) return;
        compare(document.root(), nlohmann::json::parse(text));
    } catch (json_error const& e) {
        require(e.offset() <= text.size());
        std::string_view const what = e.what();
        bool const limit = what.starts_with("more than") || what.starts_with("nested deeper");
        bool const zero = text.find('\0') != text.npos;  // nlohmann takes a zero byte for the end of the text
        require(limit || zero || !nlohmann::json::accept(text));
    }
}

void check_json(std::string const& text) { require(text.empty() || nlohmann::json::accept(text)); }

template <class Parse>
void check_route(Parse parse) {
    try {
        parse();
    } catch (request_error const& e) {
        require(e.error().status == 400 || e.error().status == 404);
        require(!e.error().message.empty() && e.error().message.size() < 10'000'000);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const body(reinterpret_cast<char const*>(data), size);
    model_facts const model{"m", 1000};
    request_limits const limits;
    check_reader(body);
    check_route([&] {
        for (auto const& part : parse_chat(body, model, limits).parts) {
            check_json(part.messages_json);
            check_json(part.tools_json);
            check_json(part.template_arguments_json);
        }
    });
    check_route([&] { require(!parse_completion(body, model, limits).parts.empty()); });
    check_route([&] { check_json(parse_tokenize(body, model, limits).text.messages_json); });
    check_route([&] { parse_detokenize(body, model, limits); });
    return 0;
}

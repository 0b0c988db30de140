#include "native/weights/json_text.hpp"

#include <nlohmann/json.hpp>

#include "native/weights/error.hpp"
#include "native/weights/limits.hpp"

namespace fermata::weights {
namespace {

template <typename Json>
Json parse(std::string_view text, std::string_view file) {
    try {
        return Json::parse(text);
    } catch (const typename Json::parse_error& error) {
        fail_at(file, error.byte == 0 ? 0 : error.byte - 1, "isn't valid JSON");
    } catch (const typename Json::exception&) {
        fail(file, "holds a number that is out of range");
    }
}

}  // namespace

void check_json_size(std::string_view text, std::string_view file, std::uint64_t keys_max) {
    unsigned nesting = 0;
    std::uint64_t keys = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;
            if (c == '"') in_string = false;
            continue;
        }
        if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++nesting > limits::json_nesting_max)
                fail_at(file, i, "JSON nests deeper than " + std::to_string(limits::json_nesting_max));
        } else if ((c == '}' || c == ']') && nesting != 0) {
            --nesting;
        } else if (c == ':' && ++keys > keys_max) {
            fail_at(file, i, "JSON has more than " + std::to_string(keys_max) + " members");
        }
    }
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view file) {
    // Members of an ordered object are searched one after the other.
    check_json_size(text, file, limits::config_keys_max);
    return parse<nlohmann::ordered_json>(text, file);
}

nlohmann::json parse_json(std::string_view text, std::string_view file, std::uint64_t keys_max) {
    check_json_size(text, file, keys_max);
    return parse<nlohmann::json>(text, file);
}

}  // namespace fermata::weights

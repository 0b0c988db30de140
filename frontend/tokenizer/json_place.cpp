#include "frontend/tokenizer/json_place.hpp"

#include <algorithm>

namespace fermata::text {

std::string json_position(std::string_view text, std::size_t byte) {
    const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto start = before.rfind('\n');
    const auto column = before.size() - (start == before.npos ? 0 : start + 1) + 1;
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

nlohmann::json parse_json_file(std::string_view text, std::string_view file_name) {
    const std::string name(file_name);
    if (text.size() > token_bytes_max) throw tokenizer_error(name + ": " + too_many("bytes", text.size(), token_bytes_max));
    const auto check_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        if (depth > static_cast<int>(json_depth_max)) {
            throw tokenizer_error(name + ": more than " + std::to_string(json_depth_max) + " levels deep");
        }
        return true;
    };
    try {
        return nlohmann::json::parse(text.begin(), text.end(), check_depth);
    } catch (const nlohmann::json::parse_error& error) {
        throw tokenizer_error(name + ": " + json_position(text, error.byte) +
                              ": this is not valid JSON");
    } catch (const nlohmann::json::exception& error) {
        throw tokenizer_error(name + ": this is not valid JSON (" + shown(error.what()) + ")");
    }
}

}  // namespace fermata::text

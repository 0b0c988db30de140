// JSON files of a model folder (config.json, the index of shards), read within limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace fermata::weights {

// Looks over a JSON text before it is parsed: nesting at most limits::json_nesting_max, at most `keys_max` members.
// Throws model_file_error. Says nothing about whether the text is valid JSON.
void check_json_size(std::string_view text, std::string_view file, std::uint64_t keys_max);

// Throws model_file_error naming the byte of a syntax error. Of duplicate keys the last counts, as in Python.
nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view file);
nlohmann::json parse_json(std::string_view text, std::string_view file, std::uint64_t keys_max);

}  // namespace fermata::weights

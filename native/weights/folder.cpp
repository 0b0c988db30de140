#include "native/weights/folder.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "native/weights/error.hpp"
#include "native/weights/json_text.hpp"

namespace fermata {
namespace fs = std::filesystem;

bool read_text_file(const std::string& folder, std::string_view name, std::string& text, std::uint64_t bytes_max) {
    const std::string path = weights::join_path(folder, name);
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) return false;
    if (status.type() != fs::file_type::regular) weights::fail(path, "isn't a regular file");
    const std::uintmax_t size = fs::file_size(path, error);
    if (error) weights::fail(path, "can't be read: " + error.message());
    if (size > bytes_max)
        weights::fail(path, "has " + std::to_string(size) + " bytes; at most " + std::to_string(bytes_max) +
                                " are allowed");
    std::ifstream stream(path, std::ios::binary);
    text.resize(static_cast<std::size_t>(size));
    if (!stream.read(text.data(), static_cast<std::streamsize>(size)) && size != 0) weights::fail(path, "can't be read");
    return true;
}

std::vector<std::string> list_folder(const std::string& folder) {
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    if (error) weights::fail(folder, "can't be listed: " + error.message());
    std::vector<std::string> names;
    for (const fs::directory_iterator end; entries != end; entries.increment(error)) {
        if (error) weights::fail(folder, "can't be listed: " + error.message());
        std::error_code unreadable;
        if (entries->is_regular_file(unreadable)) names.push_back(entries->path().filename().string());
    }
    std::ranges::sort(names);
    return names;
}

namespace weights {
namespace {

constexpr std::string_view single_name = "model.safetensors";
constexpr std::string_view index_name = "model.safetensors.index.json";

// A shard must lie in the folder itself: the name is a name, not a path.
void check_shard_name(const std::string& name, const std::string& place) {
    const bool plain = name.find('/') == std::string::npos && name.find('\\') == std::string::npos &&
                       name.find('\0') == std::string::npos && !name.starts_with('.');
    if (!plain) fail(place, "names the shard " + shown(name) + "; it should be the plain name of a file in the folder");
    if (!name.ends_with(".safetensors"))
        fail(place, "names the shard " + shown(name) + "; only .safetensors files can be read");
}

shard_index read_index(const std::string& text, const std::string& place) {
    const nlohmann::json index = parse_json(text, place, limits::tensors_max);
    const auto map = index.is_object() ? index.find("weight_map") : index.end();
    if (!index.is_object() || map == index.end() || !map->is_object())
        fail(place, "needs a member weight_map, an object of tensor name to file name");
    shard_index result;
    result.place = place;
    std::map<std::string, std::size_t> positions;
    for (const auto& [tensor, file] : map->items()) {
        if (!file.is_string()) fail(place, "gives tensor " + shown(tensor) + " no file name");
        const auto& name = file.get_ref<const std::string&>();
        const auto [position, fresh] = positions.emplace(name, result.files.size());
        if (fresh) {
            check_shard_name(name, place);
            if (result.files.size() == limits::shards_max)
                fail(place, "names more than " + std::to_string(limits::shards_max) + " shards");
            result.files.push_back(name);
        }
        result.tensors.emplace_back(tensor, position->second);
    }
    if (result.files.empty()) fail(place, "names no shard");
    return result;
}

// Says what a folder without safetensors holds instead.
[[noreturn]] void no_weights(const std::string& folder) {
    const std::vector<std::string> names = list_folder(folder);
    const auto with_ending = [&](std::string_view ending) {
        return std::ranges::find_if(names, [&](const std::string& name) { return name.ends_with(ending); });
    };
    if (const auto other = with_ending(".safetensors"); other != names.end())
        fail(folder, "has neither model.safetensors nor model.safetensors.index.json, only " + shown(*other) +
                         "; rename it or add the index");
    if (const auto torch = with_ending(".bin"); torch != names.end())
        fail(folder, "holds weights as " + shown(*torch) + ", which can run code when read; convert it to safetensors");
    fail(folder, "has neither model.safetensors nor model.safetensors.index.json");
}

}  // namespace

std::string join_path(const std::string& folder, std::string_view name) {
    return folder.ends_with('/') ? folder + std::string(name) : folder + "/" + std::string(name);
}

shard_index find_shards(const std::string& folder) {
    std::error_code ignored;
    if (fs::exists(join_path(folder, single_name), ignored)) return {{std::string(single_name)}, {}, folder};
    std::string text;
    if (!read_text_file(folder, index_name, text, limits::index_bytes_max)) no_weights(folder);
    return read_index(text, join_path(folder, index_name));
}

}  // namespace weights
}  // namespace fermata

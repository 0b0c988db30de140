#include "cli/machine_memory.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace fermata::cli {
namespace {

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return file ? text.str() : std::string();
}

std::optional<std::uint64_t> number_at(const std::string& text, std::size_t at) {
    at = text.find_first_not_of(" \t", at);
    if (at == std::string::npos) return std::nullopt;
    std::uint64_t value = 0;
    const auto [rest, problem] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (problem != std::errc()) return std::nullopt;
    return value;
}

// The folder of this process' group; the root's files aren't there.
std::string group_folder() {
    const std::string mark = "0::", groups = text_of("/proc/self/cgroup");
    const std::size_t at = groups.rfind(mark, 0) == 0 ? 0 : groups.find("\n" + mark);
    if (at == std::string::npos) return {};
    const std::size_t begin = groups.find(mark, at) + mark.size();
    return "/sys/fs/cgroup" + groups.substr(begin, groups.find('\n', begin) - begin);
}

std::optional<std::uint64_t> named(const std::string& text, const std::string& name) {
    const std::size_t at = text.rfind(name, 0) == 0 ? 0 : text.find("\n" + name);
    if (at == std::string::npos) return std::nullopt;
    return number_at(text, text.find(name, at) + name.size());
}

}  // namespace

std::optional<std::uint64_t> available_bytes(const memory_texts& texts) {
    std::optional<std::uint64_t> result;
    if (const auto kib = named(texts.machine, "MemAvailable:")) result = *kib * 1024;
    const auto most = number_at(texts.group_max, 0), taken = number_at(texts.group_current, 0);  // "max": no limit
    if (!most || !taken) return result;
    // What the group holds of files can be dropped for us.
    const std::uint64_t files = named(texts.group_stat, "active_file ").value_or(0) +
                                named(texts.group_stat, "inactive_file ").value_or(0);
    const std::uint64_t fixed = *taken - std::min(*taken, files);
    const std::uint64_t left = *most - std::min(*most, fixed);
    return result ? std::min(*result, left) : left;
}

std::optional<std::uint64_t> available_bytes() {
    memory_texts texts;
    texts.machine = text_of("/proc/meminfo");
    if (const std::string folder = group_folder(); !folder.empty()) {
        texts.group_max = text_of(folder + "/memory.max");
        texts.group_current = text_of(folder + "/memory.current");
        texts.group_stat = text_of(folder + "/memory.stat");
    }
    return available_bytes(texts);
}

}  // namespace fermata::cli

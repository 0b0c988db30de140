#include "cli/io.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "cli/options.hpp"

namespace fermata::cli {

std::string read_bytes(const std::string& path) {
    const bool standard = path.empty() || path == "-";
    std::FILE* file = standard ? stdin : std::fopen(path.c_str(), "rb");
    if (!file) throw std::runtime_error(path + ": " + std::strerror(errno));
    std::string bytes;
    char block[65536];
    std::size_t n = 0;
    while ((n = std::fread(block, 1, sizeof block, file)) > 0) bytes.append(block, n);
    const bool broken = std::ferror(file) != 0;
    const int cause = errno;
    if (!standard) std::fclose(file);
    if (broken) throw std::runtime_error((standard ? "standard input" : path) + ": " + std::strerror(cause));
    return bytes;
}

namespace {

[[noreturn]] void output_failed() {
    throw std::runtime_error(std::string("standard output: ") + std::strerror(errno != 0 ? errno : EIO));
}

}  // namespace

void write_bytes(const std::string& bytes) {
    errno = 0;
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() || std::fflush(stdout) != 0) output_failed();
}

void flush_output() {
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) output_failed();
}

std::vector<token_id> parse_tokens(const std::string& option, const std::string& text) {
    std::vector<token_id> tokens;
    const char* at = text.data();
    const char* end = at + text.size();
    const auto skip_space = [&] { while (at != end && (*at == ' ' || *at == '\n' || *at == '\t')) ++at; };
    skip_space();
    while (at != end) {
        token_id id = 0;
        const auto [next, problem] = std::from_chars(at, end, id);
        if (problem != std::errc() || id < 0)
            throw usage_error{option + ": '" + std::string(at, end) + "' does not start with a token id; 1,2,3 would be right"};
        tokens.push_back(id);
        at = next;
        skip_space();
        if (at != end && *at == ',') ++at;
        skip_space();
    }
    return tokens;
}

}  // namespace fermata::cli

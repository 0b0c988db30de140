// Reads the oracle's specification from a command line.
#include <charconv>
#include <stdexcept>
#include <string>

#include "native/models/oracle/oracle.hpp"

namespace fermata::oracle {

namespace {

constexpr std::string_view family = "oracle";

[[noreturn]] void wrong(const std::string& what) {
    std::string text = "oracle: ";
    text += what;
    throw std::invalid_argument(text);
}

std::string quoted(std::string_view text) {
    std::string out(1, '`');
    out += text;
    out += '`';
    return out;
}

std::uint64_t number(std::string_view key, std::string_view text, std::uint64_t low, std::uint64_t high,
                     std::uint64_t multiple = 1) {
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || end != text.data() + text.size() || value < low || value > high || value % multiple)
        wrong(std::string(key) + "=" + std::string(text) + ": a number from " + std::to_string(low) + " to " +
              std::to_string(high) + (multiple > 1 ? ", a multiple of " + std::to_string(multiple) : "") +
              " is needed");
    return value;
}

void set(options& how, std::string_view key, std::string_view value) {
    if (key == "state_bytes") how.state_bytes = number(key, value, 0, std::uint64_t{1} << 30, 8);
    else if (key == "layers") how.layers = static_cast<std::uint32_t>(number(key, value, 1, 1024));
    else if (key == "kv_bytes") how.kv_bytes = static_cast<std::uint32_t>(number(key, value, 8, 1 << 20, 8));
    else if (key == "delay_us") how.delay_us = static_cast<std::uint32_t>(number(key, value, 0, 60'000'000));
    else if (key == "vocab") how.vocabulary = static_cast<std::uint32_t>(number(key, value, 2, 1 << 24));
    else if (key == "context") how.context_tokens = static_cast<std::uint32_t>(number(key, value, 1, 1 << 24));
    else if (key == "verify" && value == "all") how.verify = verify_mode::all;
    else if (key == "verify" && value == "tail") how.verify = verify_mode::tail;
    else if (key == "verify") wrong(std::string(key) + "=" + std::string(value) + ": `all` or `tail` is needed");
    else
        wrong(quoted(key) + " is no key; known are state_bytes, layers, kv_bytes, delay_us, verify, vocab, context");
}

}  // namespace

bool is_spec(std::string_view spec) {
    return spec == family || (spec.starts_with(family) && spec.size() > family.size() && spec[family.size()] == ':');
}

options parse(std::string_view spec, options how) {
    if (!is_spec(spec)) wrong(quoted(spec) + " is not `oracle` or `oracle:key=value,...`");
    if (spec == family) return how;
    std::string_view rest = spec.substr(family.size() + 1);
    if (rest.empty()) wrong("key=value is needed behind `oracle:`");
    while (true) {
        const std::size_t comma = rest.find(',');
        const std::string_view part = rest.substr(0, comma);
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) wrong(quoted(part) + ": key=value is needed");
        set(how, part.substr(0, equals), part.substr(equals + 1));
        if (comma == std::string_view::npos) return how;
        rest.remove_prefix(comma + 1);
    }
}

}  // namespace fermata::oracle

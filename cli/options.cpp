#include "cli/options.hpp"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace fermata::cli {
namespace {

std::string environment_name(std::string name) {
    std::string result = "FERMATA_";
    for (char c : name) result += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return result;
}

// The long name without dashes; options without one aren't configurable.
std::string key_of(const CLI::Option& option) {
    const auto& names = option.get_lnames();
    return names.empty() ? std::string() : names.front();
}

void set(CLI::Option& option, const std::string& value, const std::string& where) {
    try {
        option.clear();
        option.add_result(value);
        option.run_callback();
    } catch (const CLI::Error& e) {
        throw usage_error{where + ": " + e.what()};
    }
}

std::string to_text(const toml::node& node, const std::string& where) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
    if (const auto* real = node.as_floating_point()) {
        std::ostringstream out;
        out.precision(17);
        out << real->get();
        return out.str();
    }
    throw usage_error{where + ": a string, a number or a boolean would be right"};
}

CLI::Option* find_option(CLI::App& app, const std::string& key) {
    for (CLI::Option* option : app.get_options())
        if (key_of(*option) == key && key != "help" && key != "config") return option;
    return nullptr;
}

void apply_file(CLI::App& app, const std::string& table, const std::string& path) {
    toml::table file;
    try {
        file = toml::parse_file(path);
    } catch (const toml::parse_error& e) {
        std::ostringstream where;
        where << path;
        if (e.source().begin.line != 0)
            where << ", line " << e.source().begin.line << ", column " << e.source().begin.column;
        throw usage_error{where.str() + ": " + std::string(e.description())};
    }
    const toml::table* section = file[table].as_table();
    if (!section) return;
    for (const auto& [name, node] : *section) {
        const std::string key(name.str());
        const std::string where = path + ", [" + table + "] " + key;
        CLI::Option* option = find_option(app, key);
        if (!option) throw usage_error{where + ": no such option"};
        if (option->count() == 0) set(*option, to_text(node, where), where);
    }
}

void apply_environment(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
        const std::string key = key_of(*option);
        if (key.empty() || key == "help") continue;
        const std::string name = environment_name(key);
        const char* value = std::getenv(name.c_str());
        if (value && *value && option->count() == 0) set(*option, value, name);
    }
}

[[noreturn]] void not_in_this_version(const std::string& option) {
    throw usage_error{option + " is not in this version"};
}

}  // namespace

void declare(CLI::App& app, engine_options& o) {
    app.add_option("--model,-m", o.model, "GGUF file, Hugging Face folder, or oracle[:state_bytes=N,...]");
    app.add_option("--max-context", o.max_context, "tokens of one request (default: the model's, at most 8192)");
    app.add_option("--kv-capacity", o.kv_capacity, "Main pool in tokens, or auto")->capture_default_str();
    app.add_option("--max-concurrency", o.max_concurrency, "lanes")->capture_default_str();
    app.add_option("--device-state-slots", o.device_state_slots, "extra StateImages (default: max-concurrency)");
    app.add_option("--host-capacity", o.host_capacity, "host arena, for example 8GiB");
    app.add_option("--kv-dtype", o.kv_dtype, "f32, f16 or bf16")->capture_default_str();
    app.add_option("--chat-template", o.chat_template, "Jinja template file (default: the model's)");
    app.add_option("--page-size", o.page_size, "tokens of a page: 16, 32, 64 or 128")->capture_default_str();
    app.add_option("--prefill-chunk", o.prefill_chunk, "tokens of one prefill chunk")->capture_default_str();
    app.add_option("--batch-tokens", o.batch_tokens, "tokens of one unit")->capture_default_str();
    app.add_option("--itl-target-ms", o.itl_target_ms, "bound on the mixed batch");
    app.add_option("--spec", o.spec, "drafts: off, mtp, dflash, ngram")->capture_default_str();
    app.add_option("--draft-tokens", o.draft_tokens, "drafted tokens a round")->capture_default_str();
    app.add_option("--max-pending", o.max_pending, "waiting requests")->capture_default_str();
    app.add_option("--pending-timeout-ms", o.pending_timeout_ms, "longest wait for a lane")->capture_default_str();
    app.add_option("--tau-high", o.tau_high, "admission gate closes")->capture_default_str();
    app.add_option("--tau-admit", o.tau_admit, "admission gate opens again")->capture_default_str();
    app.add_option("--tau-low", o.tau_low, "background reclaim")->capture_default_str();
    app.add_option("--threads", o.threads, "compute threads (default: physical cores)");
    app.add_option("--compute", o.compute, "activations of quantised layers: int8 or f32")->capture_default_str();
    app.add_option("--simd", o.simd, "best, scalar, avx2, avx512 or neon; same results")->capture_default_str();
    app.add_option("--seed", o.seed, "default seed (default: random)");
    app.add_option("--journal", o.journal, "record bus messages to FILE");
    app.add_flag("--journal-text", o.journal_text, "with token ids and text");
    app.add_option("--log-level", o.log_level, "trace, debug, info, warn, error or off")->capture_default_str();
    app.add_flag("--log-json", o.log_json, "log lines as JSON");
}

void declare(CLI::App& app, serve_options& o) {
    declare(app, o.engine);
    app.add_option("--host", o.host, "address to listen on")->capture_default_str();
    app.add_option("--port", o.port, "HTTP port; 0: any free one")->capture_default_str();
    app.add_option("--caf-port", o.caf_port, "typed CAF endpoint for remote actors (default: off)");
    app.add_option("--caf-host", o.caf_host, "address of the CAF endpoint; it asks for no key")->capture_default_str();
    app.add_option("--api-key-file", o.api_key_file, "one key a line");
    app.add_flag("--insecure", o.insecure, "allow a non-loopback host without keys, and a non-loopback caf-host");
    app.add_option("--model-id", o.model_id, "name in /v1/models (default: the file's name)");
    app.add_option("--disk-path", o.disk_path, "third tier");
    app.add_option("--disk-capacity", o.disk_capacity, "bytes of the third tier");
    app.add_option("--kv-events", o.kv_events, "ZeroMQ endpoint of KV events");
    app.add_flag("--request-log", o.request_log, "one JSON object a finished request");
    app.add_option("--grace-ms", o.grace_ms, "time for accepted work after SIGTERM")->capture_default_str();
    app.add_option("--config", o.config, "TOML file; its [serve] table holds the same names");
}

void declare(CLI::App& app, sampling_options& o) {
    app.add_option("--temperature", o.temperature, "0: the most likely token")->capture_default_str();
    app.add_option("--top-p", o.top_p)->capture_default_str();
    app.add_option("--top-k", o.top_k, "0: all")->capture_default_str();
    app.add_option("--min-p", o.min_p)->capture_default_str();
    app.add_option("--repetition-penalty", o.repetition_penalty)->capture_default_str();
    app.add_option("--frequency-penalty", o.frequency_penalty)->capture_default_str();
    app.add_option("--presence-penalty", o.presence_penalty)->capture_default_str();
    app.add_option("--stop", o.stop, "stop string; may be given several times");
    app.add_flag("--ignore-eos", o.ignore_eos, "go on after an end-of-answer token");
}

void apply_fallbacks(CLI::App& app, const std::string& table, const std::string& toml_path) {
    apply_environment(app);
    if (!toml_path.empty()) apply_file(app, table, toml_path);
}

std::uint64_t parse_bytes(const std::string& option, const std::string& text) {
    std::size_t used = 0;
    double value = 0;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    const std::string unit = text.substr(used);
    static const std::pair<const char*, double> units[] = {
        {"", 1}, {"B", 1},
        {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.}, {"TiB", 1099511627776.},
        {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    if (used != 0 && value >= 0)
        for (const auto& [name, factor] : units)
            if (unit == name && value * factor < 9e18) return static_cast<std::uint64_t>(value * factor);
    throw usage_error{option + ": '" + text + "' is no size; 8GiB, 512MiB or a number of bytes would be right"};
}

std::uint64_t parse_number(const std::string& option, const std::string& text) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, problem] = std::from_chars(text.data(), end, value);
    if (problem == std::errc() && rest == end) return value;
    const std::string most = std::to_string(std::numeric_limits<std::uint64_t>::max());
    throw usage_error{option + ": '" + text + "' is " +
                      (problem == std::errc::result_out_of_range ? "too large; at most " + most + " would be right"
                                                                 : "no whole number; 0 to " + most + " would be right")};
}

std::optional<std::uint64_t> seed_of(const engine_options& options) {
    if (options.seed.empty()) return std::nullopt;
    return parse_number("--seed", options.seed);
}

std::optional<std::uint64_t> kv_capacity_of(const engine_options& options) {
    if (options.kv_capacity == "auto") return std::nullopt;
    return parse_number("--kv-capacity (tokens, or auto)", options.kv_capacity);
}

void check(const engine_options& o) {
    if (o.model.empty())
        throw usage_error{"--model is missing; get the demo model with: bash tools/model.sh"};
    const auto one_of = [](const std::string& option, const std::string& value,
                           std::initializer_list<const char*> allowed) {
        std::string list;
        for (const char* a : allowed) {
            if (value == a) return;
            list += list.empty() ? a : std::string(", ") + a;
        }
        throw usage_error{option + ": '" + value + "' is not one of " + list};
    };
    const auto range = [](const std::string& option, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
        if (value < low || value > high)
            throw usage_error{option + ": " + std::to_string(value) + " lies outside " + std::to_string(low) +
                              " to " + std::to_string(high)};
    };
    one_of("--kv-dtype", o.kv_dtype, {"f32", "f16", "bf16", "fp8", "int8"});
    if (o.kv_dtype == "fp8" || o.kv_dtype == "int8") not_in_this_version("--kv-dtype " + o.kv_dtype);
    one_of("--compute", o.compute, {"int8", "f32"});
    one_of("--simd", o.simd, {"best", "scalar", "avx2", "avx512", "neon"});
    one_of("--spec", o.spec, {"off", "mtp", "dflash", "ngram"});
    if (o.spec != "off") not_in_this_version("--spec " + o.spec);
    if (o.itl_target_ms != 0) not_in_this_version("--itl-target-ms");
    if (!o.host_capacity.empty() && parse_bytes("--host-capacity", o.host_capacity) != 0)
        not_in_this_version("--host-capacity (the host arena)");
    if (o.page_size != 16 && o.page_size != 32 && o.page_size != 64 && o.page_size != 128)
        throw usage_error{"--page-size: " + std::to_string(o.page_size) + " is not one of 16, 32, 64, 128"};
    range("--max-concurrency", o.max_concurrency, 1, 256);
    range("--prefill-chunk", o.prefill_chunk, 1, 65536);
    range("--batch-tokens", o.batch_tokens, 1, 65536);
    if (o.batch_tokens < o.max_concurrency)
        throw usage_error{"--batch-tokens: " + std::to_string(o.batch_tokens) + " is less than --max-concurrency " +
                          std::to_string(o.max_concurrency) + "; each lane needs one token a unit"};
    range("--max-pending", o.max_pending, 1, 1000000);
    range("--threads", o.threads, 0, 1024);
    one_of("--log-level", o.log_level, {"trace", "debug", "info", "warn", "error", "off"});
    kv_capacity_of(o);
    seed_of(o);
}

void check(const serve_options& o) {
    check(o.engine);
    if (!o.disk_path.empty() || !o.disk_capacity.empty()) not_in_this_version("--disk-path (the disk tier)");
    if (!o.kv_events.empty()) not_in_this_version("--kv-events");
    if (o.caf_port != -1 && (o.caf_port < 0 || o.caf_port > 65535))
        throw usage_error{"--caf-port: " + std::to_string(o.caf_port) + " lies outside 0 to 65535"};
}

}  // namespace fermata::cli

// Options of the program: one declaration each, whatever they come from. Flags win over FERMATA_… variables, these over
// the TOML file, that over defaults. Names are those users, scripts and files rely on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fermata::cli {

// Wrong usage or configuration (exit 2).
struct usage_error {
    std::string message;
};

// The engine: what `serve`, `chat`, `run`, `bench` and `perplexity` share.
struct engine_options {
    std::string model;
    std::uint32_t max_context = 0;        // 0: the model's, at most 8192
    std::string kv_capacity = "auto";     // tokens, or auto
    std::uint32_t max_concurrency = 8;
    std::int64_t device_state_slots = -1; // -1: as max_concurrency
    std::string host_capacity;            // empty: default
    std::string kv_dtype = "f16";
    std::string chat_template;
    std::uint32_t page_size = 64;
    std::uint32_t prefill_chunk = 512;
    std::uint32_t batch_tokens = 1024;
    std::uint32_t itl_target_ms = 0;
    std::string spec = "off";
    std::uint32_t draft_tokens = 3;
    std::uint32_t max_pending = 256;
    std::uint32_t pending_timeout_ms = 600000;
    double tau_high = 0.88, tau_admit = 0.80, tau_low = 0.05;
    std::uint32_t threads = 0;            // 0: physical cores
    std::string compute = "int8";
    std::string simd = "best";
    std::string seed;                     // empty: random
    std::string journal;
    bool journal_text = false;
    std::string log_level = "info";
    bool log_json = false;
};

struct serve_options {
    engine_options engine;
    std::string host = "127.0.0.1";
    std::uint16_t port = 8080;
    int caf_port = -1;                    // -1: no CAF endpoint
    std::string caf_host = "127.0.0.1";
    std::string api_key_file;
    bool insecure = false;
    std::string model_id;
    std::string disk_path, disk_capacity;
    std::string kv_events;
    bool request_log = false;
    std::uint32_t grace_ms = 30000;
    std::string config;
};

struct sampling_options {
    float temperature = 0;
    float top_p = 1;
    std::uint32_t top_k = 0;
    float min_p = 0;
    float repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
    std::vector<std::string> stop;
    bool ignore_eos = false;
};

// Declare the options on a subcommand. `defaults` of the environment and the file are applied by apply_fallbacks
// after parsing.
void declare(CLI::App& app, engine_options& options);
void declare(CLI::App& app, serve_options& options);
void declare(CLI::App& app, sampling_options& options);

// Fills options not given as flags from FERMATA_NAME variables, then from [table] of the TOML file (empty path: none).
// Throws usage_error that names the variable, or file and key.
void apply_fallbacks(CLI::App& app, const std::string& table, const std::string& toml_path);

// "8GiB", "512MiB", "1000000", "2GB" -> bytes. Throws usage_error naming `option`.
std::uint64_t parse_bytes(const std::string& option, const std::string& text);

// A whole number without sign. Throws usage_error naming `option`.
std::uint64_t parse_number(const std::string& option, const std::string& text);
// What --seed and --kv-capacity say; nothing where they are random or auto. Throw usage_error.
std::optional<std::uint64_t> seed_of(const engine_options& options);
std::optional<std::uint64_t> kv_capacity_of(const engine_options& options);

// Checks ranges and what this version doesn't do yet. Throws usage_error that names the option.
void check(const engine_options& options);
void check(const serve_options& options);

}  // namespace fermata::cli

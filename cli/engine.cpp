#include "cli/engine.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <utility>

#include <spdlog/spdlog.h>

#include "actors/node.hpp"
#include "cli/log.hpp"
#include "cli/machine_memory.hpp"
#include "cli/resident.hpp"
#include "native/cpu/cpu_backend.hpp"
#include "native/models/load.hpp"
#include "native/models/oracle/oracle.hpp"
#include "native/weights/model_file.hpp"

namespace fermata::cli {
namespace {

constexpr std::uint32_t default_context_max = 8192;  // tokens of one request where --max-context says nothing

std::shared_ptr<backend> open_device(const engine_options& options) {
    try {
        return make_cpu_backend({.threads = options.threads,
                                 .simd = options.simd,
                                 .compute = parse_compute_mode(options.compute)});
    } catch (const backend_error& e) {
        throw usage_error{std::string("--simd: ") + e.what()};
    }
}

std::unique_ptr<model> load_oracle(const engine_options& options) {
    try {
        oracle::options defaults;
        defaults.page_tokens = options.page_size;
        return oracle::make(oracle::parse(options.model, defaults));
    } catch (const std::invalid_argument& e) {
        throw usage_error{std::string("--model: ") + e.what()};
    }
}

std::unique_ptr<model> load_file(const engine_options& options, const std::shared_ptr<backend>& device) {
    try {
        const model_file file = model_file::open(options.model);
        return load_model(file, device,
                          {.kv = parse_kv_dtype(options.kv_dtype),
                           .page_tokens = options.page_size,
                           .context_tokens_max = options.max_context != 0 ? options.max_context : default_context_max});
    } catch (const model_file_error& e) {
        throw model_error{e.what()};
    } catch (const backend_error& e) {
        throw model_error{options.model + ": " + e.what()};
    }
}

std::uint64_t random_seed() {
    std::random_device source;
    return (std::uint64_t{source()} << 32) ^ source();
}

node_options node_options_of(const engine_options& options, const engine_extras& extras,
                             const std::shared_ptr<const text_model>& text, std::unique_ptr<model> first,
                             const std::shared_ptr<backend>& device) {
    node_options o;
    const std::uint32_t trained = first->layout().max_context_tokens;
    o.program.max_context_tokens =
        options.max_context != 0 ? options.max_context : std::min(trained, default_context_max);
    o.program.kv_capacity_tokens = kv_capacity_of(options).value_or(0);
    // The pool is taken page by page as it is used: more than there is would end in a kill, long after the start.
    if (const auto available = available_bytes()) o.program.kv_bytes_max = *available / 10 * 9;
    o.program.max_concurrency = options.max_concurrency;
    o.program.device_state_slots = options.device_state_slots < 0
                                       ? options.max_concurrency
                                       : static_cast<std::uint32_t>(options.device_state_slots);
    o.program.prefill_chunk_tokens = options.prefill_chunk;
    o.program.batch_tokens = options.batch_tokens;
    o.scheduler.max_pending = options.max_pending;
    o.scheduler.pending_timeout = time_ns{options.pending_timeout_ms} * 1'000'000;
    o.scheduler.tau_high = options.tau_high;
    o.scheduler.tau_admit = options.tau_admit;
    o.scheduler.tau_low = options.tau_low;
    const auto seed = seed_of(options);
    o.frontend.seed = seed ? *seed : random_seed();
    o.planning.rendering.now = local_now;
    o.text = text;
    o.model_id = extras.model_id.empty() ? model_id_of(options.model) : extras.model_id;
    o.model_root = file_name(options.model);
    o.caf_publish = extras.caf_port >= 0;
    if (o.caf_publish) {
        o.caf_port = static_cast<std::uint16_t>(extras.caf_port);
        o.caf_host = extras.caf_host;
    }
    o.journal.file = options.journal;
    o.journal.text = options.journal_text;
    o.log = [](const std::string& line) { spdlog::warn("{}", line); };
    // The model read for its layout serves the first start; a later one (the device failed) reads the file again.
    auto held = std::make_shared<std::unique_ptr<model>>(std::move(first));
    o.load_model = [held, options, device]() -> std::unique_ptr<model> {
        if (*held) return std::move(*held);
        return is_oracle(options.model) ? load_oracle(options) : load_file(options, device);
    };
    return o;
}

class node_engine final : public engine {
public:
    node_engine(node_options options, std::shared_ptr<const text_model> text, std::uint32_t threads)
        : text_(std::move(text)), threads_(threads), node_(std::move(options)) {
        node_.start();
        plan_ = node_.plan();
        layout_ = node_.layout();
    }

    gateway& door() override { return node_; }
    const text_model& text() const override { return *text_; }
    const model_layout& layout() const override { return layout_; }
    const memory_plan& plan() const override { return plan_; }
    std::uint32_t threads() const override { return threads_; }
    std::uint16_t caf_port() const override { return node_.published_port(); }
    bool stop(std::uint32_t grace_ms) override {
        const stop_report report = node_.stop(std::chrono::milliseconds(grace_ms));
        if (report.cut_short != 0) spdlog::warn("{} requests were cut short", report.cut_short);
        return report.cut_short == 0 && report.in_order;
    }

private:
    std::shared_ptr<const text_model> text_;
    std::uint32_t threads_;
    node node_;
    memory_plan plan_;
    model_layout layout_;
};

// A node says in std::invalid_argument which option doesn't fit the model.
std::unique_ptr<engine> start_node(node_options options, std::shared_ptr<const text_model> text,
                                   std::uint32_t threads) {
    try {
        return std::make_unique<node_engine>(std::move(options), std::move(text), threads);
    } catch (const std::invalid_argument& e) {
        throw usage_error{e.what()};
    }
}

}  // namespace

std::string file_name(const std::string& model) {
    if (is_oracle(model)) return model;
    std::filesystem::path path(model);
    if (!path.has_filename()) path = path.parent_path();
    return path.filename().string();
}

std::string model_id_of(const std::string& model) {
    if (is_oracle(model)) return "oracle";
    const std::string name = file_name(model);
    const std::string ending = ".gguf";
    return name.size() > ending.size() && name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

std::unique_ptr<engine> start_engine(const engine_options& options, const engine_extras& extras) {
    set_up_log(options.log_level, options.log_json);
    const auto begin = std::chrono::steady_clock::now();
    const auto text = open_text(options.model, options.chat_template);
    std::shared_ptr<backend> device;
    std::unique_ptr<model> first;
    std::uint32_t threads = 1;
    if (is_oracle(options.model)) {
        first = load_oracle(options);
    } else {
        device = open_device(options);
        threads = options.threads != 0 ? options.threads : physical_cores();
        first = load_file(options, device);
    }
    if (text->has_text() && text->words()->vocabulary_size() > first->layout().vocabulary)
        throw model_error{options.model + ": the tokenizer has " + std::to_string(text->words()->vocabulary_size()) +
                          " tokens, the model's output only " + std::to_string(first->layout().vocabulary)};
    auto result = start_node(node_options_of(options, extras, text, std::move(first), device), text, threads);
    if (extras.progress) {
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        spdlog::info("{} ready after {:.1f} s", result->door().model().id, took.count());
    }
    return result;
}

}  // namespace fermata::cli

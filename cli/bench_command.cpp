// bench: speed of prefill and decode of the whole node, as its own clients see it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/client.hpp"
#include "cli/command.hpp"
#include "cli/engine.hpp"
#include "cli/io.hpp"
#include "cli/options.hpp"
#include "messages/telemetry.hpp"

namespace fermata::cli {
namespace {

struct bench_options {
    engine_options engine;
    std::uint32_t prompt = 512, gen = 128;
    std::string concurrency = "1,2,4,8";
    bool json = false;
};

struct result {
    std::uint32_t concurrency = 0;
    double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;
    double ttft_ms_p50 = 0, itl_ms_p50 = 0, itl_ms_p99 = 0, control_us_per_cycle_p50 = 0;
};

std::vector<std::uint32_t> parse_levels(const std::string& text) {
    std::vector<std::uint32_t> levels;
    for (const token_id value : parse_tokens("--concurrency", text)) {
        if (value < 1) throw usage_error{"--concurrency: levels start at 1"};
        levels.push_back(static_cast<std::uint32_t>(value));
    }
    if (levels.empty()) throw usage_error{"--concurrency: 1,2,4,8 would be right"};
    return levels;
}

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double at = q * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

// Quantile of a histogram's growth since `before`, interpolated inside its bucket.
double quantile_us(const latency_histogram& now, const std::vector<std::uint64_t>& before, double q) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < now.buckets.size(); ++i) total += now.buckets[i] - before[i];
    if (total == 0) return 0;
    double left = q * static_cast<double>(total);
    double low_s = 0;
    for (std::size_t i = 0; i < now.buckets.size(); ++i) {
        const auto count = static_cast<double>(now.buckets[i] - before[i]);
        const double high_s = i < now.bounds_s.size() ? now.bounds_s[i] : low_s;
        if (left <= count && count > 0) return (low_s + (high_s - low_s) * left / count) * 1e6;
        left -= count;
        low_s = high_s;
    }
    return low_s * 1e6;
}

std::vector<std::uint64_t> snapshot(const latency_histogram& histogram) {
    return {histogram.buckets.begin(), histogram.buckets.end()};
}

class bencher {
public:
    bencher(engine& node, const bench_options& options) : node_(node), options_(options) {}

    result measure(std::uint32_t level) {
        result r;
        r.concurrency = level;
        const auto prompts = fresh_prompts(level);
        measure_prefill(prompts, r);
        measure_decode(prompts, r);
        return r;
    }

private:
    using prompts_list = std::vector<std::vector<token_id>>;

    prompts_list fresh_prompts(std::uint32_t count) {
        prompts_list prompts(count);
        for (auto& prompt : prompts) {
            prompt.resize(options_.prompt);
            for (token_id& token : prompt) {
                random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
                token = static_cast<token_id>((random_ >> 33) % node_.layout().vocabulary);
            }
        }
        return prompts;
    }

    std::shared_ptr<pending_answer> start(const std::vector<token_id>& prompt, std::uint32_t tokens) {
        submit request;
        request.kind = prompt_kind::tokens;
        request.prompt_tokens = token_run(prompt);
        request.max_tokens = tokens;
        request.ignore_eos = true;
        request.sampling.temperature = 0;
        return ask(node_.door(), request);
    }

    static void check_answer(pending_answer& pending) {
        pending.wait();
        if (const auto& error = pending.error()) throw std::runtime_error(describe(*error));
    }

    // Cold prompts: all at once, one token each.
    void measure_prefill(const prompts_list& prompts, result& r) {
        std::vector<std::shared_ptr<pending_answer>> running;
        const auto begin = std::chrono::steady_clock::now();
        for (const auto& prompt : prompts) running.push_back(start(prompt, 1));
        std::vector<double> ttft_ms;
        auto last = begin;
        for (const auto& pending : running) {
            check_answer(*pending);
            const auto at = pending->choices().front().token_times.front();
            last = std::max(last, at);
            ttft_ms.push_back(std::chrono::duration<double, std::milli>(at - begin).count());
        }
        const double seconds = std::chrono::duration<double>(last - begin).count();
        r.prefill_tokens_per_s = static_cast<double>(prompts.size()) * options_.prompt / seconds;
        r.ttft_ms_p50 = quantile(ttft_ms, 0.5);
    }

    // The same prompts, cached by now: tokens while every stream is decoding.
    void measure_decode(const prompts_list& prompts, result& r) {
        const auto numbers = node_.door().numbers();
        std::vector<std::shared_ptr<pending_answer>> running;
        for (const auto& prompt : prompts) running.push_back(start(prompt, options_.gen));
        for (const auto& pending : running) pending->first_token_wait();
        const auto gaps_before = snapshot(numbers->control_gap);
        for (const auto& pending : running) check_answer(*pending);
        r.control_us_per_cycle_p50 = quantile_us(numbers->control_gap, gaps_before, 0.5);

        auto from = running.front()->choices().front().token_times.front();
        auto to = running.front()->choices().front().token_times.back();
        for (const auto& pending : running) {
            const auto& times = pending->choices().front().token_times;
            from = std::max(from, times.front());
            to = std::min(to, times.back());
        }
        std::size_t tokens = 0;
        std::vector<double> gaps_ms;
        for (const auto& pending : running) {
            const auto& times = pending->choices().front().token_times;
            for (std::size_t i = 1; i < times.size(); ++i) {
                gaps_ms.push_back(std::chrono::duration<double, std::milli>(times[i] - times[i - 1]).count());
                if (times[i] > from && times[i] <= to) ++tokens;
            }
        }
        const double seconds = std::chrono::duration<double>(to - from).count();
        r.decode_tokens_per_s = seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
        r.itl_ms_p50 = quantile(gaps_ms, 0.5);
        r.itl_ms_p99 = quantile(gaps_ms, 0.99);
    }

    engine& node_;
    const bench_options& options_;
    std::uint64_t random_ = 1;
};

nlohmann::ordered_json to_json(const result& r, const bench_options& options) {
    return {{"concurrency", r.concurrency},
            {"prompt_tokens", options.prompt},
            {"gen_tokens", options.gen},
            {"prefill_tokens_per_s", r.prefill_tokens_per_s},
            {"decode_tokens_per_s", r.decode_tokens_per_s},
            {"ttft_ms_p50", r.ttft_ms_p50},
            {"itl_ms_p50", r.itl_ms_p50},
            {"itl_ms_p99", r.itl_ms_p99},
            {"control_us_per_cycle_p50", r.control_us_per_cycle_p50}};
}

void print_row(const result& r) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%11u %12.1f %12.1f %10.1f %10.2f %10.2f %10.1f\n", r.concurrency,
                  r.prefill_tokens_per_s, r.decode_tokens_per_s, r.ttft_ms_p50, r.itl_ms_p50, r.itl_ms_p99,
                  r.control_us_per_cycle_p50);
    write_bytes(line.data());
}

int bench(bench_options options) {
    check(options.engine);
    const auto levels = parse_levels(options.concurrency);
    if (options.prompt < 1 || options.gen < 2) throw usage_error{"--prompt starts at 1, --gen at 2"};
    const std::uint32_t widest = *std::max_element(levels.begin(), levels.end());
    options.engine.max_concurrency = std::max(options.engine.max_concurrency, widest);
    if (options.engine.max_context == 0) options.engine.max_context = options.prompt + options.gen;
    const auto node = start_engine(options.engine, {.progress = !options.json});
    bencher measurements(*node, options);
    if (!options.json)
        write_bytes("concurrency  prefill t/s   decode t/s    ttft ms     itl ms itl p99 ms control us\n");
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    for (const std::uint32_t level : levels) {
        const result r = measurements.measure(level);
        if (options.json) results.push_back(to_json(r, options));
        else print_row(r);
    }
    if (options.json) {
        nlohmann::ordered_json out{{"model", node->door().model().id}, {"threads", node->threads()}};
        out["results"] = std::move(results);
        write_bytes(out.dump() + "\n");
    }
    node->stop(1000);
    return 0;
}

}  // namespace

action declare_bench(CLI::App& app) {
    auto options = std::make_shared<bench_options>();
    declare(app, options->engine);
    app.add_option("--prompt", options->prompt, "tokens of each prompt")->capture_default_str();
    app.add_option("--gen", options->gen, "tokens to generate")->capture_default_str();
    app.add_option("--concurrency", options->concurrency, "streams at once, levels")->capture_default_str();
    app.add_flag("--json", options->json, "one JSON object");
    CLI::App* command = &app;
    return [options, command] {
        apply_fallbacks(*command, "bench", {});
        return bench(*options);
    };
}

}  // namespace fermata::cli

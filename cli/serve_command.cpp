// serve: the node behind HTTP, until a signal.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "cli/command.hpp"
#include "cli/engine.hpp"
#include "cli/heap.hpp"
#include "cli/log.hpp"
#include "cli/machine_memory.hpp"
#include "cli/options.hpp"
#include "cli/resident.hpp"
#include "cli/signal_watch.hpp"
#include "frontend/http/server.hpp"
#include "frontend/late_gateway.hpp"
#include "messages/telemetry.hpp"

namespace fermata::cli {
namespace {

http::server_options http_options_of(const serve_options& options) {
    http::server_options o;
    o.host = options.host;
    o.port = options.port;
    o.insecure = options.insecure;
    if (!options.api_key_file.empty()) {
        try {
            o.api_keys = http::read_api_keys(options.api_key_file);
        } catch (const std::exception& e) {
            throw usage_error{std::string("--api-key-file: ") + e.what()};
        }
        if (o.api_keys.empty()) throw usage_error{"--api-key-file: " + options.api_key_file + " holds no key"};
    }
    if (!http::is_loopback(o.host) && o.api_keys.empty() && !o.insecure)
        throw usage_error{"--host " + o.host +
                          " can be reached from other machines: give --api-key-file FILE, or --insecure to serve anybody"};
    if (options.request_log)
        o.request_log = [](std::string_view line) { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); };
    o.warn = [](std::string_view line) { spdlog::warn("{}", line); };
    return o;
}

// Whoever reaches the CAF door speaks for clients without a key: keys belong to HTTP.
void check_caf_door(const serve_options& options) {
    if (options.caf_port == -1 || http::is_loopback(options.caf_host) || options.insecure) return;
    throw usage_error{"--caf-host " + options.caf_host +
                      " can be reached from other machines, and the CAF endpoint asks for no key: give --insecure to serve anybody"};
}

std::string human(std::uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / 1048576.0);
    return text;
}

void print_plan(const engine& node) {
    const memory_plan& p = node.plan();
    const std::uint64_t sum = p.weights + p.kv + p.states + p.workspace + p.logits;
    spdlog::info("memory: weights {}, KV {} ({} pages of {} tokens), states {}, workspace {}, logits {}; in all {}",
                 human(p.weights), human(p.kv), p.pages, p.page_tokens, human(p.states), human(p.workspace),
                 human(p.logits), human(sum));
    if (const auto available = available_bytes(); available && p.kv > *available)
        spdlog::warn("the KV pool of {} is more than the {} that are available: the system may end this process once its pages are in "
                     "use; a smaller --kv-capacity avoids it", human(p.kv), human(*available));
    spdlog::info("smallest reusable prefix {} tokens, largest request {} tokens", p.smallest_reusable_prefix_tokens,
                 p.largest_request_tokens);
}

// What /v1/models can say while the model is loading.
model_card card_before_loading(const serve_options& options) {
    model_card card;
    card.root = file_name(options.engine.model);
    card.id = options.model_id.empty() ? model_id_of(options.engine.model) : options.model_id;
    return card;
}

int serve(const serve_options& options) {
    check(options);
    set_up_log(options.engine.log_level, options.engine.log_json);
    const http::server_options http_options = http_options_of(options);
    check_caf_door(options);
    signal_watch signals([] { spdlog::info("stopped while the model was being loaded"); });  // before any other thread
    // Listening comes first: a port in use is said before a long load, and probes see a node that loads.
    std::unique_ptr<engine> node;
    late_gateway door(card_before_loading(options));
    http::server server(http_options, door);
    server.start();
    spdlog::info("listening on {}:{}; loading the model", options.host, server.port());
    node = start_engine(options.engine, {.model_id = options.model_id,
                                         .caf_port = options.caf_port,
                                         .caf_host = options.caf_host,
                                         .progress = true});
    signals.started();
    print_plan(*node);
    door.open(node->door());
    spdlog::info("http://{}:{}", options.host, server.port());
    if (node->caf_port() != 0) spdlog::info("CAF endpoint {}:{}", options.caf_host, node->caf_port());

    heap_keeper heap;
    signals.wait(std::chrono::seconds(10), [&] {
        const auto numbers = node->door().numbers();
        const auto freed = heap.look(numbers->lanes_used == 0 && numbers->queue_length == 0);
        if (freed > 0) spdlog::debug("{} of unused memory given back", human(freed));
    });
    spdlog::info("stopping: accepted requests have {} ms", options.grace_ms);
    const bool whole = node->stop(options.grace_ms);
    const std::size_t cut = server.stop(std::chrono::milliseconds(1000));
    spdlog::info(whole && cut == 0 ? "stopped" : "stopped; some requests were cut short");
    return 0;
}

}  // namespace

action declare_serve(CLI::App& app) {
    auto options = std::make_shared<serve_options>();
    declare(app, *options);
    CLI::App* command = &app;
    return [options, command] {
        apply_fallbacks(*command, "serve", options->config);
        try {
            return serve(*options);
        } catch (const http::listen_error& e) {
            throw usage_error{e.what()};
        }
    };
}

}  // namespace fermata::cli

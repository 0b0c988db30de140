// The node object: start, stop, gateway.
#include "actors/node.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <caf/actor_system.hpp>

#include "actors/client_table.hpp"
#include "actors/node_impl.hpp"
#include "actors/spawn.hpp"
#include "frontend/client_errors.hpp"
#include "frontend/planning/request_bytes.hpp"
#include "messages/wire/schema.hpp"

namespace fermata {
namespace {

time_ns monotonic_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

client_error too_much() { return overloaded("the server holds as many bytes of requests as it can"); }

// What the warm-up counted is no request's.
void forget_counts(telemetry& n) {
    for (counter* each : {&n.requests_stop, &n.requests_length, &n.requests_cancelled, &n.requests_failed,
                          &n.requests_rejected, &n.prompt_tokens, &n.reused_tokens_device, &n.prefill_tokens,
                          &n.replayed_tokens, &n.generated_tokens, &n.transfer_bytes_device_device,
                          &n.preemptions_replay, &n.reclaims_pages_shortage, &n.reclaims_pages_background,
                          &n.reclaims_records_shortage, &n.reclaims_records_background, &n.captures_natural_end,
                          &n.captures_input_point, &n.captures_input_point_skipped, &n.bypasses, &n.device_wait_ns})
        *each = 0;
    for (latency_histogram* each : {&n.ttft, &n.inter_token, &n.queue, &n.cycle, &n.control_gap}) {
        for (counter& bucket : each->buckets) bucket = 0;
        each->sum_ns = 0;
    }
    n.last_commit_ns = 0;
}

// One small sequence through prefill and decode: touches weights and buffers, finds a broken model before a client does.
void warm_up(program_seat& seat) {
    const auto& layout = seat.core->layout();
    auto spec = std::make_shared<sequence_spec>();
    std::vector<token_id> prompt;
    for (std::size_t i = 0; i < 8; ++i) prompt.push_back(static_cast<token_id>(i % std::max<std::size_t>(layout.vocabulary, 1)));
    spec->prompt = token_run(std::move(prompt));
    spec->guard.max_new_tokens = token_pos(2);
    spec->guard.ignore_eos = true;
    spec->sampling.temperature = 0;

    cycle_plan plan;
    const ticket who(1);
    plan.binds.push_back({who, lane(0), spec, std::nullopt, token_pos(0), token_pos(8)});
    plan.prefills.push_back({who, token_pos(8)});
    seat.run(plan);
    plan = {};
    plan.decodes.push_back(who);
    if (!seat.done.device_failed) seat.run(plan);
    for (const row_result& row : seat.done.rows)
        if (row.finish == finish_reason::error) throw std::runtime_error("warm-up: " + row.error);
    if (seat.done.device_failed) throw std::runtime_error("warm-up: the device failed: " + seat.done.error);
    if (auto fault = seat.sweep(); !fault.empty()) throw std::runtime_error("after the warm-up: " + fault);
}

// Options of the parts that follow from the model and from each other.
void complete_options(node_state& state) {
    auto& o = state.options;
    const auto& engine = state.seat->core->options();
    const auto facts = state.facts();
    o.program.max_context_tokens = engine.max_context_tokens;
    o.scheduler.max_concurrency = engine.max_concurrency;
    o.scheduler.prefill_chunk_tokens = engine.prefill_chunk_tokens;
    o.scheduler.batch_tokens = engine.batch_tokens;
    o.scheduler.page_tokens = facts->layout.page_tokens;
    o.scheduler.attention_only = facts->layout.state_bytes == 0;
    o.scheduler.request_tokens_max = facts->plan.largest_request_tokens;
    o.scheduler.numbers = state.context->numbers;
    o.resource_manager.page_tokens = facts->layout.page_tokens;
    o.planning.max_context_tokens = engine.max_context_tokens;
    o.planning.vocabulary = static_cast<std::uint32_t>(facts->layout.vocabulary);
}

void fill_card(node_state& state) {
    auto& card = state.card;
    card.id = state.options.model_id;
    card.root = state.options.model_root;
    card.max_model_len = state.options.program.max_context_tokens;
    card.created_s =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    card.vocabulary = static_cast<std::uint32_t>(state.facts()->layout.vocabulary);
    card.has_text = state.text->has_text();
    card.has_chat_template = state.text->has_chat_template();
}

}  // namespace

std::shared_ptr<program_seat> make_seat(node_state& state) {
    auto& o = state.options;
    auto family = o.load_model();
    if (!family) throw std::invalid_argument("node: load_model gave no model");
    program_options engine = o.program;
    if (engine.max_context_tokens == 0)
        engine.max_context_tokens = std::min<std::uint32_t>(8192, family->layout().max_context_tokens);
    if (!engine.tokens && state.text->has_text()) {
        const auto ends = state.text->words()->end_of_generation();
        engine.tokens = std::make_shared<const token_table>(
            token_table{state.text->answer_bytes(), {ends.begin(), ends.end()}});
    }
    engine.numbers = state.context->numbers;
    engine.clock = state.context->clock;
    auto seat = std::make_shared<program_seat>(std::make_unique<program>(std::move(engine), std::move(family)));
    seat_facts facts{seat->core->plan(), seat->core->layout()};
    // Below a page a copy of its tail does, from this many tokens on.
    facts.plan.smallest_reusable_prefix_tokens =
        std::min(facts.plan.smallest_reusable_prefix_tokens, o.resource_manager.tail_copy_tokens_min);
    state.set_facts(std::make_shared<const seat_facts>(std::move(facts)));
    if (o.warm_up) {
        warm_up(*seat);
        if (state.phase == node_phase::loading) forget_counts(*state.context->numbers);
    }
    return seat;
}

journal_header header_of(const node_state& state) {
    const auto& s = state.options.scheduler;
    journal_header header;
    header.schema = wire::schema_hash();
    header.text = state.options.journal.text;
    header.vocabulary = static_cast<std::uint32_t>(state.facts()->layout.vocabulary);
    header.max_concurrency = s.max_concurrency;
    header.page_tokens = s.page_tokens;
    header.prefill_chunk_tokens = s.prefill_chunk_tokens;
    header.batch_tokens = s.batch_tokens;
    header.request_tokens_max = s.request_tokens_max;
    header.attention_only = s.attention_only;
    header.max_pending = s.max_pending;
    header.tail_copy_tokens_min = state.options.resource_manager.tail_copy_tokens_min;
    header.pending_timeout = s.pending_timeout;
    header.copy_timeout = s.copy_timeout;
    header.tau_high = s.tau_high;
    header.tau_admit = s.tau_admit;
    header.tau_low = s.tau_low;
    header.view = state.seat->core->view();
    return header;
}

node::node(node_options options, caf::actor_system* embedded) : impl_(std::make_unique<impl>()) {
    auto& state = *impl_->state;
    impl_->embedded = embedded;
    state.options = std::move(options);
    state.text = state.options.text ? state.options.text : std::make_shared<const text_model>(nullptr, "");
    state.context = std::make_shared<node_context>();
    state.context->clock = state.options.clock ? state.options.clock : monotonic_ns;
    state.context->numbers = std::make_shared<telemetry>();
    state.context->requests_bytes = std::make_shared<byte_budget>(state.options.frontend.requests_bytes_max);
    impl_->early_card.id = state.options.model_id;
    impl_->early_card.root = state.options.model_root;
}

node::~node() { stop(std::chrono::milliseconds(0)); }

void node::start() {
    auto& state = *impl_->state;
    if (impl_->started) throw std::logic_error("node: started twice");
    state.seat = make_seat(state);
    complete_options(state);
    fill_card(state);
    if (!state.options.journal.file.empty()) {
        if (!state.options.journal.warn) state.options.journal.warn = state.options.log;
        state.context->journal = std::make_shared<journal_writer>(state.options.journal, header_of(state));
    }

    if (impl_->embedded == nullptr) {
        const std::size_t workers = std::max<std::size_t>({4, state.options.workers, state.options.preparers + 3});
        impl_->config = bus::make_config(workers, state.options.caf_publish);
        impl_->own = std::make_unique<caf::actor_system>(*impl_->config);
    }
    state.system = impl_->embedded != nullptr ? impl_->embedded : impl_->own.get();
    bus::unties_this_thread when_left;  // whoever calls stop() need not be who called start()
    auto spawned = state.spawned.get_future();
    impl_->supervisor = spawn_supervisor(impl_->state);
    try {
        spawned.get();
    } catch (...) {
        impl_->supervisor = supervisor_actor{};
        throw;
    }
    impl_->started = true;
    if (!state.options.caf_publish) return;
    impl_->gate = spawn_gate(*state.system, state.context, [state = impl_->state]() -> frontend_actor {
        if (state->phase != node_phase::running) return {};
        return state->frontend();
    });
    std::string error;
    const auto port = bus::publish(*state.system, impl_->gate, state.options.caf_host, state.options.caf_port, error);
    if (port == 0)
        throw std::runtime_error("can't publish the CAF endpoint on " + state.options.caf_host + ":" +
                                 std::to_string(state.options.caf_port) + ": " + error);
    impl_->port = port;
}

stop_report node::stop(std::chrono::milliseconds grace) {
    std::lock_guard lock(impl_->stop_mutex);
    auto& state = *impl_->state;
    if (impl_->stop_called) return impl_->report;
    impl_->stop_called = true;
    if (impl_->supervisor) {
        if (impl_->gate) {
            bus::unpublish(*state.system, impl_->gate, impl_->port);
            caf::anon_send_exit(impl_->gate, caf::exit_reason::user_shutdown);
        }
        auto stopped = state.stopped.get_future();
        bus::tell_from_outside(impl_->supervisor,
                               begin_stop{std::chrono::duration_cast<std::chrono::nanoseconds>(grace).count()});
        impl_->report = stopped.get();
    }
    state.phase = node_phase::stopped;
    impl_->supervisor = supervisor_actor{};
    impl_->gate = gate_actor{};
    if (state.context->journal) state.context->journal->flush();
    impl_->own.reset();
    impl_->config.reset();
    return impl_->report;
}

// -- gateway -----------------------------------------------------------------------------------------------------

request_id node::next_request() { return request_id(++impl_->requests); }

void node::submit_request(submit request, std::shared_ptr<client_sink> sink) {
    const request_id id = request.request;
    auto frontend = impl_->state->frontend();
    if (!frontend) {
        impl_->state->context->numbers->requests_rejected.fetch_add(1, std::memory_order_relaxed);
        const auto report = health();
        sink->on(rejected{id, unavailable(report.reason.empty() ? "the node is not running" : report.reason)});
        return;
    }
    auto room = impl_->room_for(bytes_of(request));
    if (!room) {
        impl_->state->context->numbers->requests_rejected.fetch_add(1, std::memory_order_relaxed);
        return sink->on(rejected{id, too_much()});
    }
    bus::tell_from_outside(frontend, submit_local{std::make_shared<submit>(std::move(request)),
                                                  std::make_shared<guarded_sink>(id, std::move(sink)), std::move(room)});
}

void node::cancel(request_id request) {
    if (auto frontend = impl_->state->frontend()) bus::tell_from_outside(frontend, cancel_request{request});
}

void node::tokenize(tokenize_text text, std::function<void(tokenized)> done) {
    auto frontend = impl_->state->frontend();
    if (!frontend) {
        tokenized none;
        none.error = unavailable("the node is not running");
        return done(std::move(none));
    }
    auto room = impl_->room_for(bytes_of(text));
    if (!room) return done(tokenized{{}, too_much()});
    bus::tell_from_outside(frontend, tokenize_local{std::make_shared<const tokenize_text>(std::move(text)),
                                                    answered_once(std::move(done)), std::move(room), nullptr});
}

void node::detokenize(detokenize_tokens tokens, std::function<void(detokenized)> done) {
    auto frontend = impl_->state->frontend();
    if (!frontend) {
        detokenized none;
        none.error = unavailable("the node is not running");
        return done(std::move(none));
    }
    auto room = impl_->room_for(bytes_of(tokens));
    if (!room) return done(detokenized{{}, too_much()});
    bus::tell_from_outside(
        frontend, detokenize_local{std::move(tokens), answered_once(std::move(done)), std::move(room), nullptr});
}

const model_card& node::model() const { return impl_->started ? impl_->state->card : impl_->early_card; }

health_report node::health() const {
    const auto& state = *impl_->state;
    const telemetry& n = *state.context->numbers;
    health_report report;
    switch (state.phase.load()) {
        case node_phase::loading: report.reason = "the model is being loaded"; return report;
        case node_phase::restarting: report.reason = "restarting: " + state.trouble(); return report;
        case node_phase::broken: report.reason = state.trouble(); return report;
        case node_phase::stopping: report.reason = "the server is shutting down"; return report;
        case node_phase::stopped: report.reason = "the server has stopped"; return report;
        case node_phase::running: break;
    }
    const time_ns since = n.work_since_ns.load();
    if (since != 0) {
        const time_ns idle_s = (state.context->clock() - std::max(since, n.last_commit_ns.load())) / 1'000'000'000;
        if (idle_s > state.options.stall_limit_s) {
            report.reason = "work is waiting, but nothing was computed for " + std::to_string(idle_s) + " s (limit " +
                            std::to_string(state.options.stall_limit_s) + " s)";
            return report;
        }
    }
    report.accepting = true;
    const auto limit = n.queue_limit.load();
    report.ready = limit == 0 || n.queue_length.load() < limit;
    if (!report.ready) report.reason = "the queue is full";
    return report;
}

std::shared_ptr<const telemetry> node::numbers() const { return impl_->state->context->numbers; }
memory_plan node::plan() const {
    const auto facts = impl_->state->facts();
    return facts ? facts->plan : memory_plan{};
}
model_layout node::layout() const {
    const auto facts = impl_->state->facts();
    return facts ? facts->layout : model_layout{};
}
std::uint16_t node::published_port() const { return impl_->port; }
std::uint32_t node::restarts() const { return impl_->state->restarts; }

}  // namespace fermata

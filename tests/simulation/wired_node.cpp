#include "wired_node.hpp"

#include <utility>

namespace fermata::simulation {

wired_node::wired_node(const node_options& options, node_timing timing, bus& transport)
    : timing_(std::move(timing)), bus_(transport), numbers_(std::make_shared<telemetry>()),
      transfer_({options.parallel_copies}) {
    program_options device = options.device;
    device.numbers = numbers_;
    device.clock = [this] { return now_; };
    program_ = std::make_unique<program>(device, oracle::make(options.model));
    scheduler_options scheduling = options.scheduling;
    scheduling.max_concurrency = device.max_concurrency;
    scheduling.page_tokens = program_->layout().page_tokens;
    scheduling.prefill_chunk_tokens = device.prefill_chunk_tokens;
    scheduling.batch_tokens = device.batch_tokens;
    scheduling.request_tokens_max = program_->plan().largest_request_tokens;
    scheduling.attention_only = program_->layout().state_bytes == 0;
    scheduling.numbers = numbers_;
    scheduler_ = std::make_unique<scheduler>(scheduling, program_->view());
    resource_manager_options remembering;
    remembering.page_tokens = program_->layout().page_tokens;
    remembering.tail_copy_tokens_min = options.tail_copy_tokens_min;
    resources_ = std::make_unique<resource_manager>(remembering);
    engine_ = program_->copies();
    if (!options.text) return;
    text_ = options.text;
    limits_.max_context_tokens = device.max_context_tokens;
    limits_.vocabulary = options.model.vocabulary;
    frontend_ = std::make_unique<frontend_core>(frontend_options{options.requests_max, 1}, text_, numbers_);
}

void wired_node::send(peer from, peer to, bus_message message, time_ns extra) {
    bus_.send(from, to, std::move(message), now_ + extra + timing_.hop(from, to));
}

template <class Event>
void wired_node::to_scheduler(const Event& event) {
    scheduler::commands out;
    scheduler_->on(event, now_, out);
    for (auto& command : out)
        std::visit(
            [&](auto& each) {
                using type = std::decay_t<decltype(each)>;
                if constexpr (std::is_same_v<type, cycle_plan>)
                    send(peer::scheduler, peer::program, std::move(each));
                else if constexpr (std::is_same_v<type, choose_source> || std::is_same_v<type, choose_victims>)
                    send(peer::scheduler, peer::resources, std::move(each));
                else if constexpr (std::is_same_v<type, drained>)
                    send(peer::scheduler, peer::node, each);
                else if constexpr (std::is_same_v<type, wake_at>)
                    bus_.set_timer(peer::scheduler, tick{}, each.when);
                else
                    send(peer::scheduler, peer::frontend, std::move(each));
            },
            command);
}

void wired_node::run_cycle(const cycle_plan& plan) {
    cycle_done done;
    program_->run_cycle(plan, done);
    check();
    send_context_events();
    send_copies();
    const time_ns duration = timing_.unit(plan);
    program_busy_until_ = now_ + duration;
    send(peer::program, peer::scheduler, std::move(done), duration);
}

void wired_node::complete_copy(const copy_done& done) {
    program_notice notice;
    const bool news = program_->complete(done, notice);
    check();
    send_context_events();
    send_copies();
    if (news) send(peer::program, peer::scheduler, std::move(notice));
}

void wired_node::send_context_events() {
    program_->take_events(events_);
    for (auto& each : events_)
        std::visit([&](auto& event) { send(peer::program, peer::resources, std::move(event)); }, each);
}

void wired_node::send_copies() {
    copy_order order;
    while (program_->next_copy(order)) send(peer::program, peer::transfer, order);
}

void wired_node::start(const transfer::commands& commands) {
    for (const auto& command : commands) {
        if (const auto* begin = std::get_if<start_copy>(&command)) {
            const copy_order& order = begin->order;
            if (timing_.copy_fails(order)) {
                copies_made_[order.copy] = {order.copy, false, "injected"};
            } else if (timing_.copies_late(order)) {
                copies_running_[order.copy] = order;
            } else {
                copies_made_[order.copy] = engine_->run(order);
            }
            bus_.send(peer::transfer, peer::copier, order, now_ + timing_.copy(order));
        } else {
            send(peer::transfer, peer::program, std::get<copy_done>(command));
        }
    }
}

void wired_node::check() {
    const std::string fault = program_->check_integrity();
    if (!fault.empty()) throw broken_node("integrity: " + fault);
}

// False when there is no Frontend here.
bool wired_node::to_frontend(const envelope& m) {
    if (!frontend_) return false;
    frontend_commands out;
    if (const auto* a = std::get_if<submit>(&m.message)) frontend_->on(*a, out);
    else if (const auto* b = std::get_if<prepared>(&m.message)) frontend_->on(*b, out);
    else if (const auto* c = std::get_if<enqueue_result>(&m.message)) frontend_->on(*c, out);
    else if (const auto* d = std::get_if<outputs>(&m.message)) frontend_->on(*d, out);
    else if (const auto* e = std::get_if<cancel_request>(&m.message)) frontend_->on(*e, out);
    else if (std::holds_alternative<drain>(m.message)) frontend_->drain();
    else throw std::logic_error("the Frontend doesn't take this message");
    carry_out(out);
    return true;
}

void wired_node::carry_out(frontend_commands& commands) {
    for (auto& command : commands) {
        if (auto* work = std::get_if<hand_to_preparer>(&command))
            bus_.set_timer(peer::preparer, std::move(*work), now_ + timing_.preparing());
        else if (auto* order = std::get_if<send_to_scheduler>(&command))
            std::visit([&](auto& each) { send(peer::frontend, peer::scheduler, std::move(each)); }, order->message);
        else
            std::visit([&](auto& each) { send(peer::frontend, peer::client, std::move(each)); },
                       std::get<send_to_client>(command).message);
    }
}

bool wired_node::handle(const envelope& m) {
    switch (m.to) {
        case peer::frontend: return to_frontend(m);
        case peer::preparer: {
            const auto& work = std::get<hand_to_preparer>(m.message);
            send(peer::preparer, peer::frontend, prepare(*work.request, *text_, limits_, work.drawn_seed, now_));
            return true;
        }
        case peer::scheduler:
            std::visit(
                [&](const auto& each) {
                    if constexpr (requires(scheduler::commands & out) { scheduler_->on(each, now_, out); })
                        to_scheduler(each);
                    else
                        throw std::logic_error("the Scheduler doesn't take this message");
                },
                m.message);
            return true;
        case peer::resources:
            if (const auto* a = std::get_if<choose_source>(&m.message))
                send(peer::resources, peer::scheduler, resources_->on(*a));
            else if (const auto* b = std::get_if<choose_victims>(&m.message))
                send(peer::resources, peer::scheduler, resources_->on(*b));
            else if (const auto* c = std::get_if<checkpoint_published>(&m.message)) resources_->on(*c);
            else if (const auto* d = std::get_if<checkpoint_dropped>(&m.message)) resources_->on(*d);
            else resources_->on(std::get<checkpoint_adopted>(m.message));
            return true;
        case peer::program:
            if (const auto* plan = std::get_if<cycle_plan>(&m.message)) run_cycle(*plan);
            else complete_copy(std::get<copy_done>(m.message));
            return true;
        case peer::transfer: {
            transfer::commands out;
            if (const auto* order = std::get_if<copy_order>(&m.message)) transfer_.on(*order, out);
            else transfer_.on(std::get<copy_done>(m.message), out);
            start(out);
            return true;
        }
        case peer::copier: {  // the copy's time is over
            const copy_id id = std::get<copy_order>(m.message).copy;
            copy_done result;
            if (const auto made = copies_made_.find(id); made != copies_made_.end()) {
                result = made->second;
                copies_made_.erase(made);
            } else {
                result = engine_->run(copies_running_.at(id));
                copies_running_.erase(id);
            }
            send(peer::copier, peer::transfer, result);
            return true;
        }
        default: return false;
    }
}

envelope wired_node::deliver(peer from, peer to) {
    envelope m = bus_.take(from, to);
    now_ = std::max(now_, m.due);
    handle(m);
    return m;
}

void wired_node::settle() {
    constexpr peer actors[] = {peer::frontend, peer::scheduler, peer::resources, peer::program, peer::transfer,
                               peer::copier};
    for (bool moved = true; moved;) {
        moved = false;
        for (const peer from : actors)
            for (const peer to : actors)
                while (to != peer::frontend && bus_.waiting(from, to)) deliver(from, to), moved = true;
    }
}

}  // namespace fermata::simulation

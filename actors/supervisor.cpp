// The supervisor: spawns the actors of a node, watches each, and acts when one is gone.
//
// Restart: the node is unready at once; every request ends with an error; what still lives of the core actors is told
// to leave; when all have left, Program's core is swept clean (or built anew, if the device failed), fresh actors are
// spawned and meet the Frontend, which stays unless it was the one that died. A try that fails is followed by another,
// up to `restarts_max` in a row (restart_budget.hpp); then the node stays broken and says why. Stop: drain, then
// ingress, Scheduler, ResourceManager, Transfer, Program, preparers, each after the one before has left.
#include <array>
#include <functional>
#include <vector>

#include <caf/actor_system.hpp>

#include "actors/node_state.hpp"
#include "actors/restart_budget.hpp"
#include "actors/spawn.hpp"

namespace fermata {
namespace {

using namespace std::chrono_literals;

constexpr auto leave_limit = 10s;  // for one actor to finish what it does; beyond, it is left behind

class supervisor_shell final : public shell<supervisor_actor> {
public:
    supervisor_shell(caf::actor_config& config, node_state_ptr state)
        : shell(config, state->context, bus_party::node),
          state_(std::move(state)),
          budget_(state_->options.restarts_max, time_ns{state_->options.restart_forgiven_s} * 1'000'000'000) {}

    behavior_type make_behavior() override {
        try {
            spawn_core_actors();
            state_->phase = node_phase::running;
            budget_.running(context_->clock());
            state_->spawned.set_value();
        } catch (...) {
            state_->spawned.set_exception(std::current_exception());
            leave();
        }
        return {
            [this](const begin_stop& m) { on_stop(m); },
            [this](const drained& m) { on_drained(m); },
            [this](const stop_timer& m) { on_timer(m); },
            [this](const try_again&) {
                if (state_->phase == node_phase::restarting) go_on_restarting();
            },
        };
    }
    // Also when it was a fault of its own that ended it: then nobody watches the others any more, so they go too, and
    // whoever waits for the stop is told.
    void on_exit() override {
        if (!told_) {
            const auto words = context_->take_last_words();
            if (state_->phase != node_phase::loading) {
                context_->numbers->ready = false;
                state_->set_trouble("the node's supervisor ended" + (words.empty() ? std::string() : ": " + words));
                state_->phase = node_phase::broken;
            }
            for (const member& each : parts_) dismiss(each);
            report_.in_order = false;
            state_->stopped.set_value(report_);
        }
        peers_.reset();
        parts_ = {};
        state_->set_frontend({});
        state_->set_peers(nullptr);
    }

private:
    enum part : std::size_t { frontend, scheduler_, resource_manager_, transfer_, program_, preparers, part_count };
    static constexpr std::array<const char*, part_count> names = {"Frontend", "Scheduler", "ResourceManager",
                                                                  "Transfer", "Program", "a preparer"};
    struct member {
        std::vector<caf::actor> actors;
        std::size_t alive = 0;
    };

    // -- spawning ------------------------------------------------------------------------------------------------

    void spawn_core_actors() {
        auto& system = *state_->system;
        const auto& options = state_->options;
        auto fresh = std::make_shared<peer_handles>();
        ++life_;
        fresh->supervisor = supervisor_actor(this);
        fresh->scheduler = spawn_scheduler(
            system, context_, std::make_shared<scheduler>(options.scheduler, state_->seat->core->view()));
        fresh->resource_manager =
            spawn_resource_manager(system, context_, std::make_shared<resource_manager>(options.resource_manager));
        fresh->transfer = spawn_transfer(system, context_, state_->seat);
        fresh->program = spawn_program(system, context_, state_->seat);
        for (std::uint32_t i = 0; i < std::max(1u, options.preparers); ++i)
            fresh->preparers.push_back(spawn_preparer(system, context_, {state_->text, options.planning}));
        auto frontend_setup = options.frontend;
        frontend_setup.life = life_;
        const bool keeps_frontend = parts_[frontend].alive > 0;
        fresh->frontend = keeps_frontend ? peers_->frontend
                                         : spawn_frontend(system, context_,
                                                          std::make_shared<frontend_core>(frontend_setup, state_->text,
                                                                                          context_->numbers));
        peers_ = fresh;
        if (!keeps_frontend) watch(frontend, fresh->frontend);
        watch(scheduler_, fresh->scheduler);
        watch(resource_manager_, fresh->resource_manager);
        watch(transfer_, fresh->transfer);
        watch(program_, fresh->program);
        for (const auto& each : fresh->preparers) watch(preparers, each);

        // Whoever sends first has met the others first: the Frontend, where work comes in, is last.
        bus::tell(this, fresh->program, meet{fresh, nullptr});
        bus::tell(this, fresh->transfer, meet{fresh, nullptr});
        bus::tell(this, fresh->resource_manager, meet{fresh, nullptr});
        bus::tell(this, fresh->scheduler, meet{fresh, nullptr});
        for (const auto& each : fresh->preparers) bus::tell(this, each, meet{fresh, nullptr});
        auto life = life_ > 1 && context_->journal ? std::make_shared<const journal_header>(header_of(*state_)) : nullptr;
        bus::tell(this, fresh->frontend, meet{fresh, std::move(life)});
        state_->set_peers(fresh);
        state_->set_frontend(fresh->frontend);
        context_->numbers->ready = true;
    }

    template <class Handle>
    void watch(part which, const Handle& handle) {
        parts_[which].actors.push_back(caf::actor_cast<caf::actor>(handle));
        ++parts_[which].alive;
        watches_.add(this, handle, [this, which, life = which == frontend ? 0 : life_](const std::string& reason) {
            if (life == 0 || life == life_) on_gone(which, reason);
        });
    }

    // -- an actor is gone ----------------------------------------------------------------------------------------

    void on_gone(part which, const std::string& reason) {
        auto& gone = parts_[which];
        if (gone.alive > 0) --gone.alive;
        if (gone.alive == 0) gone.actors.clear();
        if (which == frontend && gone.alive == 0) state_->set_frontend({});  // requests hear why from the node
        switch (state_->phase.load()) {
            case node_phase::running: begin_restart(which, reason); break;
            case node_phase::restarting:
                if (which == program_ && !exit_sent_) device_failed_ = true;
                go_on_restarting();
                break;
            case node_phase::stopping: go_on_stopping(which); break;
            default: break;
        }
    }

    void begin_restart(part which, const std::string& reason) {
        state_->phase = node_phase::restarting;
        budget_.stopped(context_->clock());
        context_->numbers->ready = false;
        auto words = context_->take_last_words();
        trouble_ = std::string(names[which]) + " ended: " + (words.empty() ? reason : words);
        state_->set_trouble(trouble_);
        state_->say(trouble_ + "; restarting");
        device_failed_ = which == program_;
        lose_scheduler_now();
        exit_sent_ = true;
        state_->seat->core->stop_flag() = true;
        for (std::size_t each = scheduler_; each < part_count; ++each) dismiss(parts_[each]);
        go_on_restarting();
    }

    void lose_scheduler_now() {
        if (parts_[frontend].alive == 0) return;
        bus::tell(this, peers_->frontend,
                  lose_scheduler{error_of(failure_kind::internal, "the server had to restart a part of itself: " + trouble_)});
    }

    void dismiss(const member& which) {
        for (const auto& each : which.actors) caf::anon_send_exit(each, caf::exit_reason::kill);
    }

    void go_on_restarting() {
        for (std::size_t each = scheduler_; each < part_count; ++each)
            if (parts_[each].alive > 0) return;
        exit_sent_ = false;
        if (!budget_.take()) return break_down("after " + std::to_string(budget_.used()) + " tries (restarts_max)");
        ++state_->restarts;
        try {
            refresh_device();
            spawn_core_actors();
        } catch (const std::exception& error) {
            return wait_for_another_try(error.what());
        }
        state_->set_trouble({});
        state_->phase = node_phase::running;
        budget_.running(context_->clock());
        state_->say("restarted; requests are taken again");
    }

    // The device may come back; every try counts against restarts_max.
    void wait_for_another_try(const std::string& why) {
        device_failed_ = true;
        state_->set_trouble(trouble_ + "; the last try: " + why);
        state_->say("could not restart: " + why);
        bus::tell_self_after(this, std::chrono::milliseconds(state_->options.restart_delay_ms), try_again{});
    }

    // Program's core goes on when it can be swept clean: only a failed device is built anew.
    void refresh_device() {
        if (state_->seat) state_->seat->core->stop_flag() = false;
        std::string fault = device_failed_ || !state_->seat ? "the device failed" : state_->seat->sweep();
        if (fault.empty()) return;
        device_failed_ = true;
        state_->say("building Program anew: " + fault);
        state_->seat.reset();  // its memory first
        state_->seat = make_seat(*state_);
        device_failed_ = false;
    }

    void break_down(const std::string& why) {
        const std::string text = trouble_ + "; not restarted: " + why;
        state_->set_trouble(text);
        state_->phase = node_phase::broken;
        state_->say(text);
        lose_scheduler_now();
        state_->set_frontend({});  // new requests hear why from the node
    }

    // -- stopping ------------------------------------------------------------------------------------------------

    void on_stop(const begin_stop& order) {
        const auto phase = state_->phase.load();
        if (phase == node_phase::stopping || phase == node_phase::stopped) return;
        state_->phase = node_phase::stopping;
        context_->numbers->ready = false;
        if (parts_[frontend].alive > 0) bus::tell(this, peers_->frontend, close_ingress{});
        if (phase != node_phase::running || parts_[scheduler_].alive == 0) return finish_hard();
        const auto grace = std::chrono::nanoseconds(order.grace);
        bus::tell(this, peers_->scheduler, drain{context_->clock() + order.grace});
        draining_ = true;
        set_timer(grace + leave_limit);
    }

    void on_drained(const drained& result) {
        note(bus_party::scheduler, result);
        if (!draining_) return;
        draining_ = false;
        report_.cut_short = result.cut_short;
        send_next_away();
    }

    // `stop_at_` is the part told to leave, or left.
    void send_next_away() {
        while (stop_at_ < part_count && parts_[stop_at_].alive == 0) ++stop_at_;
        if (stop_at_ == part_count) return finish();
        switch (stop_at_) {
            case frontend: bus::tell(this, peers_->frontend, halt{}); break;
            case scheduler_: bus::tell(this, peers_->scheduler, halt{}); break;
            case resource_manager_: bus::tell(this, peers_->resource_manager, halt{}); break;
            case transfer_: bus::tell(this, peers_->transfer, halt{}); break;
            case program_: bus::tell(this, peers_->program, halt{}); break;
            default:
                for (const auto& each : peers_->preparers) bus::tell(this, each, halt{});
        }
        set_timer(leave_limit);
    }

    void go_on_stopping(part which) {
        if (draining_) {
            // One that died under way: nothing will be drained any more.
            if (which == frontend || which == preparers) return;
            draining_ = false;
            report_.in_order = false;
            trouble_ = std::string(names[which]) + " ended while stopping";
            lose_scheduler_now();
        }
        send_next_away();
    }

    void set_timer(std::chrono::nanoseconds delay) { bus::tell_self_after(this, delay, stop_timer{++timer_}); }
    // Only the last timer set means something; those before it may come before or after it.
    void on_timer(const stop_timer& timer) {
        if (timer.number != timer_ || state_->phase != node_phase::stopping) return;
        report_.in_order = false;
        state_->say("an actor did not leave in time");
        finish_hard();
    }

    void finish_hard() {
        draining_ = false;
        if (state_->seat) state_->seat->core->stop_flag() = true;
        if (parts_[frontend].alive > 0) {
            trouble_ = "the server is shutting down";
            bus::tell(this, peers_->frontend, lose_scheduler{error_of(failure_kind::shutting_down, {})});
            bus::tell(this, peers_->frontend, halt{});
        }
        for (std::size_t each = scheduler_; each < part_count; ++each) dismiss(parts_[each]);
        finish();
    }

    void finish() {
        state_->phase = node_phase::stopped;
        told_ = true;
        state_->stopped.set_value(report_);
        leave();
    }

    node_state_ptr state_;
    std::shared_ptr<const peer_handles> peers_;
    std::array<member, part_count> parts_{};
    bus::watches watches_;
    std::uint64_t life_ = 0;  // of the core actors; news of an earlier one is old news
    std::string trouble_;
    bool device_failed_ = false, exit_sent_ = false;
    bool draining_ = false;
    restart_budget budget_;
    std::size_t stop_at_ = frontend;
    std::uint32_t timer_ = 0;  // the last one set
    bool told_ = false;        // whoever waits for the stop
    stop_report report_;
};

}  // namespace

// It may load a model inside a handler, after a failed device: no other actor of the node is alive then. Not detached: the
// thread of a detached actor would keep a system from ending for as long as anybody holds a handle.
supervisor_actor spawn_supervisor(node_state_ptr state) {
    auto& system = *state->system;
    return system.spawn<supervisor_shell>(std::move(state));
}

}  // namespace fermata

// Frontend as an actor: the clients on one side, preparers and Scheduler on the other. The core decides what is said;
// this shell knows to whom.
#include <atomic>
#include <set>

#include "actors/client_table.hpp"
#include "actors/spawn.hpp"

namespace fermata {
namespace {

client_error unavailable(const char* message) {
    client_error error;
    error.status = 503;
    error.type = "server_error";
    error.code = "unavailable";
    error.message = message;
    return error;
}

class frontend_shell final : public shell<frontend_inner> {
public:
    frontend_shell(caf::actor_config& config, context_ptr context, std::shared_ptr<frontend_core> core)
        : shell(config, std::move(context), bus_party::frontend), core_(std::move(core)) {}

    behavior_type make_behavior() override {
        return {
            [this](submit& m, const client_actor& client) { on_actor_submit(m, client); },
            [this](const cancel_request& m, const client_actor& client) {
                cancel(clients_.inner(client, m.request));
            },
            [this](tokenize_text& m) { return bus::hand_on(this, next_preparer(), std::move(m)); },
            [this](detokenize_tokens& m) { return bus::hand_on(this, next_preparer(), std::move(m)); },
            [this](const submit_local& m) {
                clients_.add(m.request->request, m.sink);
                start(*m.request);
            },
            [this](const cancel_request& m) { cancel(m.request); },
            [this](tokenize_local& m) { bus::tell(this, next_preparer(), std::move(m)); },
            [this](detokenize_local& m) { bus::tell(this, next_preparer(), std::move(m)); },
            [this](prepared& m) {
                note(bus_party::preparer, m);
                core_->on(std::move(m), commands_);
                carry_out();
            },
            [this](const enqueue_result& m) { take_from_scheduler(m); },
            [this](const outputs& m) { take_from_scheduler(m); },
            [this](const lose_scheduler& m) { on_loss(m); },
            [this](const close_ingress&) { core_->drain(); },
            [this](const meet& m) { on_meet(m); },
            [this](const halt&) { leave(); },
        };
    }
    void on_exit() override {
        // Sinks hear it from their guards; actors from here.
        for (request_id id : clients_.all()) {
            auto* client = clients_.find(id);
            if (client->actor)
                bus::tell_from_outside(client->actor, failed{client->own, unavailable("the node's Frontend ended"), {}});
        }
        clients_ = {};
        peers_.reset();
    }

private:
    // Ids of in-process clients come from the node and stay below; those of actors are named here.
    static constexpr std::uint64_t actor_requests = std::uint64_t{1} << 62;

    void on_actor_submit(submit& request, const client_actor& client) {
        const request_id own = request.request;
        const request_id id(actor_requests + ++actor_submits_);
        if (!clients_.add(id, client, own)) {
            client_error error;
            error.status = 400;
            error.type = "invalid_request_error";
            error.param = "request";
            error.message = "request id " + std::to_string(own.value) + " of this client is in use";
            bus::tell(this, client, rejected{own, std::move(error)});
            return;
        }
        if (watched_.insert(client.address()).second)
            watches_.add(this, client, [this, address = client.address()](const std::string&) {
                watched_.erase(address);
                for (request_id each : clients_.of(address)) cancel(each);
            });
        request.request = id;
        start(request);
    }
    void start(submit request) {
        note(bus_party::client, request);
        if (scheduler_lost_ || !peers_) {
            const request_id id = request.request;
            deliver(id, rejected{id, unavailable("the node is restarting; try again")});
            return;
        }
        core_->on(std::move(request), commands_);
        carry_out();
    }
    void cancel(request_id id) {
        if (id == request_id{}) return;
        take(bus_party::client, cancel_request{id});
    }
    template <message M>
    void take(bus_party from, const M& message) {
        note(from, message);
        core_->on(message, commands_);
        carry_out();
    }
    // What a Scheduler said that is gone since is void: its requests have ended here.
    template <message M>
    void take_from_scheduler(const M& message) {
        if (!scheduler_lost_) take(bus_party::scheduler, message);
    }
    // Everything of the life before has been taken or dropped; the journal turns the page here.
    void on_meet(const meet& m) {
        if (m.life && context_->journal) context_->journal->begin_life(*m.life);
        peers_ = m.peers;
        scheduler_lost_ = false;
    }
    void on_loss(const lose_scheduler& m) {
        scheduler_lost_ = true;
        core_->fail_all(m.error, commands_);
        carry_out();
    }
    void carry_out() {
        for (auto& command : commands_) std::visit([&](auto& each) { put(each); }, command);
        commands_.clear();
    }
    void put(hand_to_preparer& command) { bus::tell(this, next_preparer(), prepare_job{std::move(command)}); }
    void put(send_to_scheduler& command) {
        if (scheduler_lost_) return;
        std::visit([&](auto& each) { bus::tell(this, peers_->scheduler, std::move(each)); }, command.message);
    }
    void put(send_to_client& command) {
        std::visit([&](auto& each) { deliver(command.request, std::move(each)); }, command.message);
    }
    template <message M>
    void deliver(request_id id, M message) {
        auto* client = clients_.find(id);
        if (client == nullptr) return;
        if (client->sink) {
            client->sink->on(message);
        } else {
            message.request = client->own;
            bus::tell(this, client->actor, std::move(message));
        }
        constexpr bool last = std::same_as<M, rejected> || std::same_as<M, finished> || std::same_as<M, failed>;
        if (last) clients_.remove(id);
    }
    const preparer_actor& next_preparer() { return peers_->preparers[turn_++ % peers_->preparers.size()]; }

    std::shared_ptr<frontend_core> core_;
    std::shared_ptr<const peer_handles> peers_;
    frontend_commands commands_;
    client_table clients_;
    bus::watches watches_;
    std::set<caf::actor_addr> watched_;
    std::size_t turn_ = 0;
    std::uint64_t actor_submits_ = 0;
    bool scheduler_lost_ = false;
};

}  // namespace

frontend_inner spawn_frontend(caf::actor_system& system, context_ptr context, std::shared_ptr<frontend_core> core) {
    return system.spawn<frontend_shell>(std::move(context), std::move(core));
}

}  // namespace fermata

// Frontend as an actor: the clients on one side, preparers and Scheduler on the other. The core decides what is said;
// this shell knows to whom.
//
// No exception of one request, whatever throws it (a sink, memory that is not there), leaves a handler: it would end the
// Frontend and every other request with it. The request is given up instead.
#include <atomic>
#include <set>

#include "actors/client_table.hpp"
#include "actors/preparer_loads.hpp"
#include "actors/spawn.hpp"
#include "frontend/client_errors.hpp"
#include "frontend/planning/request_bytes.hpp"

namespace fermata {
namespace {

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
            [this](tokenize_text& m) { return bus::hand_on(this, preparer_for(bytes_of(m)), std::move(m)); },
            [this](detokenize_tokens& m) { return bus::hand_on(this, preparer_for(bytes_of(m)), std::move(m)); },
            [this](submit_local& m) {
                const request_id id = m.request->request;
                alone(id, [&] {
                    clients_.add(id, std::move(m.sink));
                    start(std::move(*m.request), m.room ? std::move(*m.room) : byte_lease());
                });
                carry_out();
            },
            [this](const cancel_request& m) { cancel(m.request); },
            [this](tokenize_local& m) { alone({}, [&] { send_to_preparer(std::move(m), bytes_of(*m.text)); }); },
            [this](detokenize_local& m) { alone({}, [&] { send_to_preparer(std::move(m), bytes_of(m.tokens)); }); },
            [this](prepared& m) {
                alone({}, [&] { note(bus_party::preparer, m); });
                alone(m.request, [&] { core_->on(std::move(m), commands_); });
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
        const request_id id(actor_requests + ++actor_submits_);
        const request_id own = request.request;
        bool known = false;
        if (!alone(id, [&] { admit(request, id, client, known); }) && !known)
            alone({}, [&] { bus::tell(this, client, rejected{own, unavailable("the node could not take the request")}); });
        carry_out();
    }
    void admit(submit& request, request_id id, const client_actor& client, bool& known) {
        const request_id own = request.request;
        if (!clients_.add(id, client, own)) {
            auto error = make_error(400, {}, "request id " + std::to_string(own.value) + " of this client is in use", "request");
            bus::tell(this, client, rejected{own, std::move(error)});
            return;
        }
        known = true;
        if (watched_.insert(client.address()).second)
            watches_.add(this, client, [this, address = client.address()](const std::string&) {
                watched_.erase(address);
                for (request_id each : clients_.of(address)) cancel(each);
            });
        request.request = id;
        byte_lease room(context_->requests_bytes);
        if (!room.resize(bytes_of(request)))
            return deliver(id, rejected{id, overloaded("the server holds as many bytes of requests as it can")});
        start(std::move(request), std::move(room));
    }
    void start(submit&& request, byte_lease room) {
        note(bus_party::client, request);
        if (scheduler_lost_ || !peers_) {
            const request_id id = request.request;
            deliver(id, rejected{id, unavailable("the node is restarting; try again")});
            return;
        }
        core_->on(std::move(request), commands_, std::move(room));
    }
    void cancel(request_id id) {
        if (id == request_id{}) return;
        take(bus_party::client, cancel_request{id});
    }
    template <message M>
    void take(bus_party from, const M& message) {
        alone({}, [&] { note(from, message); });
        alone({}, [&] { core_->on(message, commands_); });
        carry_out();
    }

    // False: `work` threw. Whose request it was is given up: its client hears an end, the Scheduler a cancel.
    template <class Work>
    bool alone(request_id id, Work&& work) noexcept {
        try {
            work();
            return true;
        } catch (...) {
        }
        try {
            if (id != request_id{}) give_up(id);
        } catch (...) {  // its guard, or the Scheduler's own timeouts, are what is left
        }
        return false;
    }
    void give_up(request_id id) {
        core_->forget(id, commands_);
        auto* client = clients_.find(id);
        if (client == nullptr) return;
        // A sink hears it from its guard.
        const auto [sink, actor, own, was_accepted] = *client;
        clients_.remove(id);
        if (!actor) return;
        auto error = unavailable("the node could not go on with the request");
        if (was_accepted) bus::tell(this, actor, failed{own, std::move(error), {}});
        else bus::tell(this, actor, rejected{own, std::move(error)});
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
        loads_ = preparer_loads(peers_->preparers.size());
        scheduler_lost_ = false;
    }
    void on_loss(const lose_scheduler& m) {
        scheduler_lost_ = true;
        core_->fail_all(m.error, commands_);
        carry_out();
    }
    // A command that can't be carried out adds some that end its request; so the list may grow meanwhile.
    void carry_out() {
        for (std::size_t i = 0; i < commands_.size(); ++i) {
            const request_id id = std::visit([](const auto& each) { return request_of(each); }, commands_[i]);
            alone(id, [&] { std::visit([&](auto& each) { put(each); }, commands_[i]); });
        }
        commands_.clear();
    }
    static request_id request_of(const hand_to_preparer& command) { return command.request->request; }
    static request_id request_of(const send_to_client& command) { return command.request; }
    static request_id request_of(const send_to_scheduler& command) {
        return std::visit([](const auto& each) { return each.request; }, command.message);
    }
    void put(hand_to_preparer& command) {
        const auto bytes = bytes_of(*command.request);
        send_to_preparer(prepare_job{std::move(command), nullptr}, bytes);
    }
    template <class Job>
    void send_to_preparer(Job job, std::uint64_t bytes) {
        const std::size_t whom = loads_.pick(bytes);
        job.load = loads_.ticket(whom, bytes);
        bus::tell(this, peers_->preparers[whom], std::move(job));
    }
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
        if constexpr (std::same_as<M, accepted>) client->was_accepted = true;
        if (client->sink) {
            client->sink->on(message);
        } else {
            message.request = client->own;
            bus::tell(this, client->actor, std::move(message));
        }
        constexpr bool last = std::same_as<M, rejected> || std::same_as<M, finished> || std::same_as<M, failed>;
        if (last) clients_.remove(id);
    }
    const preparer_actor& preparer_for(std::uint64_t bytes) { return peers_->preparers[loads_.pick(bytes)]; }

    std::shared_ptr<frontend_core> core_;
    std::shared_ptr<const peer_handles> peers_;
    frontend_commands commands_;
    client_table clients_;
    bus::watches watches_;
    std::set<caf::actor_addr> watched_;
    preparer_loads loads_;
    std::uint64_t actor_submits_ = 0;
    bool scheduler_lost_ = false;
};

}  // namespace

frontend_inner spawn_frontend(caf::actor_system& system, context_ptr context, std::shared_ptr<frontend_core> core) {
    return system.spawn<frontend_shell>(std::move(context), std::move(core));
}

}  // namespace fermata

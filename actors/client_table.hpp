// Whose request is whose: the ids inside a node and the clients behind them, in process (a sink) or elsewhere (an
// actor with ids of its own). Used by the Frontend's shell only.
//
// Nobody is left without a last word: a sink that is dropped before its request ended hears `failed` (or `rejected`)
// from its guard, whatever dropped it - a restart, a message that never arrived, a node that is gone.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/handles.hpp"

namespace fermata {

// A sink that always hears an end.
class guarded_sink final : public client_sink {
public:
    guarded_sink(request_id request, std::shared_ptr<client_sink> sink) : request_(request), sink_(std::move(sink)) {}
    ~guarded_sink() override {
        if (ended_) return;
        try {
            const auto error = error_of(failure_kind::internal, "the server restarted while the request was under way");
            if (accepted_) sink_->on(failed{request_, error, {}});
            else sink_->on(rejected{request_, error});
        } catch (...) {  // a sink that fails at its last word has nobody left to tell
        }
    }
    guarded_sink(const guarded_sink&) = delete;
    guarded_sink& operator=(const guarded_sink&) = delete;

    void on(const accepted& m) override { accepted_ = true, sink_->on(m); }
    void on(const text_delta& m) override { sink_->on(m); }
    void on(const rejected& m) override { ended_ = true, sink_->on(m); }
    void on(const finished& m) override { ended_ = true, sink_->on(m); }
    void on(const failed& m) override { ended_ = true, sink_->on(m); }

private:
    request_id request_;
    std::shared_ptr<client_sink> sink_;
    bool accepted_ = false, ended_ = false;
};

// A call back that always happens: when it is dropped unused, with an error in place of the answer.
template <class Answer>
std::function<void(Answer)> answered_once(std::function<void(Answer)> done) {
    struct guard {
        std::function<void(Answer)> done;
        bool used = false;
        ~guard() {
            if (used) return;
            try {
                Answer none;
                none.error = error_of(failure_kind::internal, "the server restarted while the request was under way");
                done(std::move(none));
            } catch (...) {  // as above
            }
        }
    };
    auto once = std::make_shared<guard>();
    once->done = std::move(done);
    return [once](Answer answer) {
        once->used = true;
        once->done(std::move(answer));
    };
}

class client_table {
public:
    struct client {
        std::shared_ptr<client_sink> sink;  // in process
        client_actor actor;                 // or an actor,
        request_id own{};                   // which calls the request this
        bool was_accepted = false;
    };

    void add(request_id id, std::shared_ptr<client_sink> sink) { clients_[id].sink = std::move(sink); }
    // False: this actor has a request of that name already.
    bool add(request_id id, const client_actor& actor, request_id own) {
        clients_[id] = {nullptr, actor, own};
        if (names_.try_emplace({actor.address(), own}, id).second) return true;
        clients_.erase(id);
        return false;
    }
    client* find(request_id id) {
        auto found = clients_.find(id);
        return found == clients_.end() ? nullptr : &found->second;
    }
    // The node's id of an actor's request; none: {0}.
    request_id inner(const client_actor& actor, request_id own) const {
        auto found = names_.find({actor.address(), own});
        return found == names_.end() ? request_id{} : found->second;
    }
    void remove(request_id id) {
        auto found = clients_.find(id);
        if (found == clients_.end()) return;
        if (found->second.actor) names_.erase({found->second.actor.address(), found->second.own});
        clients_.erase(found);
    }
    // All requests of an actor that left.
    std::vector<request_id> of(const caf::actor_addr& actor) const {
        std::vector<request_id> ids;
        for (auto at = names_.lower_bound({actor, request_id{0}}); at != names_.end() && at->first.first == actor; ++at)
            ids.push_back(at->second);
        return ids;
    }
    std::vector<request_id> all() const {
        std::vector<request_id> ids;
        for (const auto& each : clients_) ids.push_back(each.first);
        return ids;
    }

private:
    std::unordered_map<request_id, client> clients_;
    std::map<std::pair<caf::actor_addr, request_id>, request_id> names_;
};

}  // namespace fermata

// Everything that depends on the version of CAF: 0.17 (Debian 12) or 1.x. The rest of actors/ is the same source for
// both: it writes signatures with `takes` and `answers`, sends with `tell`, and watches with `watches`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "messages/wire/inspect.hpp"

#define FERMATA_CAF_1 (CAF_VERSION >= 10000)

#if FERMATA_CAF_1
#include <caf/anon_mail.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <caf/type_id.hpp>
#else
#include <caf/replies_to.hpp>
#endif

namespace fermata::wire {

// A value no enumerator has, found in bytes from a peer (CAF 0.17; 1.x has a way of its own).
template <>
struct inspect_failure<caf::error> {
    static caf::error make() { return caf::make_error(caf::sec::invalid_argument); }
};

}  // namespace fermata::wire

namespace fermata::bus {

#if FERMATA_CAF_1
template <class... In>
using takes = caf::result<void>(In...);
template <class Out, class... In>
using answers = caf::result<Out>(In...);
#else
template <class... In>
using takes = caf::reacts_to<In...>;
template <class Out, class... In>
using answers = typename caf::replies_to<In...>::template with<Out>;
#endif

// -- sending ---------------------------------------------------------------------------------------------------

template <class Self, class Handle, class... Message>
void tell(Self* self, const Handle& to, Message&&... message) {
#if FERMATA_CAF_1
    self->mail(std::forward<Message>(message)...).send(to);
#else
    self->send(to, std::forward<Message>(message)...);
#endif
}

// From a thread that is no actor.
template <class Handle, class... Message>
void tell_from_outside(const Handle& to, Message&&... message) {
#if FERMATA_CAF_1
    caf::anon_mail(std::forward<Message>(message)...).send(to);
#else
    caf::anon_send(to, std::forward<Message>(message)...);
#endif
}

// To itself, later.
template <class Self, class Message>
void tell_self_after(Self* self, std::chrono::nanoseconds delay, Message&& message) {
#if FERMATA_CAF_1
    self->mail(std::forward<Message>(message)).delay(delay).send(caf::actor_cast<typename Self::actor_hdl>(self));
#else
    self->delayed_send(self, delay, std::forward<Message>(message));
#endif
}

// The receiver answers in place of this actor.
template <class Self, class Handle, class Message>
auto hand_on(Self* self, const Handle& to, Message&& message) {
#if FERMATA_CAF_1
    return self->mail(std::forward<Message>(message)).delegate(to);
#else
    return self->delegate(to, std::forward<Message>(message));
#endif
}

// Asks and blocks the calling thread (no actor's) until the answer or the deadline. `on_error` gets one line.
template <class Answer, class Handle, class... Message>
std::optional<Answer> ask(caf::actor_system& system, const Handle& to, std::chrono::nanoseconds deadline,
                          std::string& error, Message&&... message) {
    caf::scoped_actor self{system};
    std::optional<Answer> result;
    auto good = [&](Answer& answer) { result.emplace(std::move(answer)); };
    auto bad = [&](caf::error& reason) { error = to_string(reason); };
#if FERMATA_CAF_1
    self->mail(std::forward<Message>(message)...).request(to, deadline).receive(good, bad);
#else
    self->request(to, deadline, std::forward<Message>(message)...).receive(good, bad);
#endif
    return result;
}

// -- watching --------------------------------------------------------------------------------------------------

// Calls back with the reason when a watched actor is gone. A member of the watching actor.
class watches {
public:
    template <class Self, class Handle>
    void add(Self* self, const Handle& whom, std::function<void(const std::string&)> gone) {
#if FERMATA_CAF_1
        self->monitor(whom, [gone = std::move(gone)](const caf::error& reason) { gone(to_string(reason)); });
#else
        if (!installed_) {
            installed_ = true;
            self->set_down_handler([this](caf::down_msg& down) {
                auto found = entries_.find(down.source);
                if (found == entries_.end()) return;
                auto call = std::move(found->second);
                entries_.erase(found);
                call(to_string(down.reason));
            });
        }
        entries_[whom.address()] = std::move(gone);
        self->monitor(whom);
#endif
    }

private:
#if !FERMATA_CAF_1
    bool installed_ = false;
    std::map<caf::actor_addr, std::function<void(const std::string&)>> entries_;
#endif
};

// -- systems ---------------------------------------------------------------------------------------------------

// Workers, and the policy that keeps a hop short while one worker is busy: sharing.
inline void configure_scheduler(caf::actor_system_config& config, std::size_t workers) {
#if FERMATA_CAF_1
    config.set("caf.scheduler.policy", "sharing");
    config.set("caf.scheduler.max-threads", static_cast<std::int64_t>(workers));
#else
    config.set("scheduler.policy", caf::atom("sharing"));
    config.set("scheduler.max-threads", workers);
#endif
}

// Defined in caf_systems.cpp, the one place that includes CAF's I/O module beside embed.cpp.
std::unique_ptr<caf::actor_system_config> make_config(std::size_t workers, bool with_network);

// The port; 0 with `error`.
template <class Handle>
std::uint16_t publish(caf::actor_system& system, const Handle& whom, const std::string& host, std::uint16_t port,
                      std::string& error);
template <class Handle>
void unpublish(caf::actor_system& system, const Handle& whom, std::uint16_t port);
template <class Handle>
std::optional<Handle> connect(caf::actor_system& system, const std::string& host, std::uint16_t port,
                              std::chrono::nanoseconds deadline, std::string& error);

}  // namespace fermata::bus

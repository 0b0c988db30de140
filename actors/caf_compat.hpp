// Everything that depends on the version of CAF: 0.17 (Debian 12) or 1.x. The rest of actors/ is the same source for
// both: it writes signatures with `takes` and `answers`, sends with `tell`, watches with `watches`, and names what
// travels once, in `FERMATA_BUS_TYPES`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "messages/wire/inspect.hpp"

// Not CAF_VERSION: 1.1.0 writes it as 0100.
#define FERMATA_CAF_1 (CAF_MAJOR_VERSION >= 1)

#if FERMATA_CAF_1
#include <caf/anon_mail.hpp>
#include <caf/byte_buffer.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <caf/type_id.hpp>
#else
#include <caf/logger.hpp>
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

// -- what travels ----------------------------------------------------------------------------------------------
// CAF 0.17 looks a type up by a name given to the configuration, 1.x by a number fixed at compile time. Both follow
// from two lists: types that may go to other processes, and types that never do.

// The name on the wire: the same from every compiler.
template <class T>
inline constexpr std::string_view wire_name = wire::detail::after(wire::detail::pretty_type<T>(), "T = ");

template <class T, class List>
inline constexpr std::size_t place_in = 0;
template <class T, class... Ts>
inline constexpr std::size_t place_in<T, type_list<Ts...>> = [] {
    std::size_t place = 0;
    (void)((std::is_same_v<T, Ts> ? false : (++place, true)) && ...);
    return place;  // the size of the list: not in it
}();
template <class T, class List>
concept is_in = place_in<T, List> < List::size;

template <std::size_t I, class List>
struct element;
template <std::size_t I, class T, class... Ts>
struct element<I, type_list<T, Ts...>> : element<I - 1, type_list<Ts...>> {};
template <class T, class... Ts>
struct element<0, type_list<T, Ts...>> {
    using type = T;
};

template <class A, class B>
struct joined;
template <class... A, class... B>
struct joined<type_list<A...>, type_list<B...>> {
    using type = type_list<A..., B...>;
};

#if FERMATA_CAF_1
// An application that embeds a node numbers its own types from caf::first_custom_type_id, as CAF's manual says, and has
// room for a thousand.
inline constexpr caf::type_id_t first_number = caf::first_custom_type_id + 1000;

template <class List>
struct numbers {
    static constexpr caf::type_id_t begin = first_number;
    static constexpr caf::type_id_t end = first_number + static_cast<caf::type_id_t>(List::size);
};

// Specialises, for each type of the two lists, what CAF's macros would write out one by one. To be used once, before
// CAF sees the first of the types.
#define FERMATA_BUS_TYPES(remote, local)                                                              \
    namespace fermata::bus {                                                                          \
    using all_types = joined<remote, local>::type;                                                    \
    }                                                                                                 \
    namespace caf {                                                                                   \
    template <class T>                                                                                \
        requires fermata::bus::is_in<T, local>                                                        \
    struct allowed_unsafe_message_type<T> : std::true_type {};                                        \
    template <class T>                                                                                \
        requires fermata::bus::is_in<T, fermata::bus::all_types>                                      \
    struct type_id<T> {                                                                               \
        static constexpr type_id_t value =                                                            \
            fermata::bus::first_number +                                                              \
            static_cast<type_id_t>(fermata::bus::place_in<T, fermata::bus::all_types>);               \
    };                                                                                                \
    template <class T>                                                                                \
        requires fermata::bus::is_in<T, fermata::bus::all_types>                                      \
    struct type_name<T> {                                                                             \
        static constexpr std::string_view value = fermata::bus::wire_name<T>;                         \
    };                                                                                                \
    template <type_id_t I>                                                                            \
        requires(I >= fermata::bus::first_number &&                                                   \
                 I < fermata::bus::numbers<fermata::bus::all_types>::end)                             \
    struct type_by_id<I> : fermata::bus::element<I - fermata::bus::first_number, fermata::bus::all_types> {}; \
    template <type_id_t I>                                                                            \
        requires(I >= fermata::bus::first_number &&                                                   \
                 I < fermata::bus::numbers<fermata::bus::all_types>::end)                             \
    struct type_name_by_id<I> : type_name<type_by_id_t<I>> {};                                        \
    }
#else
#define FERMATA_BUS_TYPES(remote, local)                       \
    namespace caf {                                            \
    template <class T>                                         \
        requires fermata::bus::is_in<T, local>                 \
    struct allowed_unsafe_message_type<T> : std::true_type {}; \
    }
#endif

// Before an actor system is made; again and again does no harm. 1.x keeps its table beside all configurations.
template <class Remote, class Local>
void register_types([[maybe_unused]] caf::actor_system_config& config) {
#if FERMATA_CAF_1
    caf::init_global_meta_objects<numbers<typename joined<Remote, Local>::type>>();
#else
    wire::for_each_type(Remote{}, [&]<class T>(std::type_identity<T>) {
        config.add_message_type<T>(std::string(wire_name<T>));
    });
#endif
}

// CAF's own types, which 1.x wants in its table before the first configuration is made. Middleman: caf::io::middleman,
// whose header is heavy.
template <class Middleman>
void register_types_of_caf() {
#if FERMATA_CAF_1
    caf::core::init_global_meta_objects();
    Middleman::init_global_meta_objects();
#endif
}

// What a peer gets: CAF's own binary format. False: these bytes are no such value.
#if FERMATA_CAF_1
using byte_buffer = caf::byte_buffer;
#else
using byte_buffer = std::vector<char>;
#endif

template <class T>
bool save(caf::actor_system& system, T& x, byte_buffer& bytes) {
    caf::binary_serializer to{system, bytes};
#if FERMATA_CAF_1
    return to.apply(x);
#else
    return !to(x);
#endif
}

template <class T>
bool load(caf::actor_system& system, const byte_buffer& bytes, T& x) {
    caf::binary_deserializer from{system, bytes};
#if FERMATA_CAF_1
    return from.apply(x);
#else
    return !from(x);
#endif
}

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

// Asks and blocks the calling thread (no actor's) until the answer, for `good`, or the deadline; `error` gets one line.
template <class Good, class Handle, class... Message>
void ask_then(caf::actor_system& system, const Handle& to, std::chrono::nanoseconds deadline, std::string& error,
              Good good, Message&&... message) {
    caf::scoped_actor self{system};
    auto bad = [&](caf::error& reason) { error = to_string(reason); };
#if FERMATA_CAF_1
    self->mail(std::forward<Message>(message)...).request(to, deadline).receive(good, bad);
#else
    self->request(to, deadline, std::forward<Message>(message)...).receive(good, bad);
#endif
}

// The same for an answer of one part.
template <class Answer, class Handle, class... Message>
std::optional<Answer> ask(caf::actor_system& system, const Handle& to, std::chrono::nanoseconds deadline,
                          std::string& error, Message&&... message) {
    std::optional<Answer> result;
    auto good = [&](Answer& answer) { result.emplace(std::move(answer)); };
    ask_then(system, to, deadline, error, good, std::forward<Message>(message)...);
    return result;
}

// The word that asks CAF's middleman for a connection.
inline auto connect_word() {
#if FERMATA_CAF_1
    return caf::connect_atom_v;
#else
    return caf::connect_atom::value;
#endif
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

// At the end of a scope that made a system or spawned: from there on any thread may end the system. CAF 0.17 leaves a
// reference to its logger with the thread that did either, and the end of a system waits for that to go.
struct unties_this_thread {
    ~unties_this_thread() {
#if !FERMATA_CAF_1
        caf::logger::set_current_actor_system(nullptr);
#endif
    }
};

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

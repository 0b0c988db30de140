// The typed interfaces of the actors, and the few messages that never leave a process.
//
// Messages between the five actors are one-way: a plan goes out, a result comes in; nobody blocks on an answer. What a
// client calls (`tokenize_text`, the schema check) is answered, with a deadline at the caller.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/caf_compat.hpp"
#include "actors/cores/frontend.hpp"
#include "actors/cores/scheduler.hpp"
#include "actors/journal/journal.hpp"
#include "frontend/gateway.hpp"
#include "messages/all.hpp"

namespace fermata {

struct peer_handles;

// -- messages within a process ---------------------------------------------------------------------------------

struct meet {  // who the others are; sent once after all are spawned, and again after a restart
    std::shared_ptr<const peer_handles> peers;
    std::shared_ptr<const journal_header> life;  // after a restart: what the journal says of the new cores
};
struct halt {};  // leave, after what is in the mailbox before it
struct submit_local {
    std::shared_ptr<submit> request;  // the Frontend moves it out: a prompt may be large
    std::shared_ptr<client_sink> sink;
    std::shared_ptr<byte_lease> room;
};
struct prepare_job {
    hand_to_preparer work;
    std::shared_ptr<const void> load;  // counts for its preparer while it lives
};
struct tokenize_local {
    std::shared_ptr<const tokenize_text> text;
    std::function<void(tokenized)> done;
    std::shared_ptr<byte_lease> room;
    std::shared_ptr<const void> load;
};
struct detokenize_local {
    detokenize_tokens tokens;
    std::function<void(detokenized)> done;
    std::shared_ptr<byte_lease> room;
    std::shared_ptr<const void> load;
};
struct lose_scheduler {  // the Scheduler is gone: end every request with this error, refuse new ones until `meet`
    client_error error;
};
struct close_ingress {};  // no new requests from now on
struct begin_stop {       // to the supervisor
    time_ns grace = 0;
};
struct tick_message {};
struct stop_timer {  // to the supervisor, by itself
    std::uint32_t number = 0;
};
struct try_again {};  // to the supervisor, by itself

// -- interfaces for clients ------------------------------------------------------------------------------------

// What a client that is an actor understands.
using client_actor = caf::typed_actor<bus::takes<accepted>, bus::takes<rejected>, bus::takes<text_delta>,
                                      bus::takes<finished>, bus::takes<failed>>;

// What clients may ask of a node. A `submit` names the client; ids are the client's own, unique per client. Watch the
// handle: when it goes down, requests under way have ended.
using frontend_actor =
    caf::typed_actor<bus::takes<submit, client_actor>, bus::takes<cancel_request, client_actor>,
                     bus::answers<tokenized, tokenize_text>, bus::answers<detokenized, detokenize_tokens>>;

// The published door of a node: gives the Frontend out to peers that speak the same messages. The question and the
// refusal are made of types that never change.
using gate_actor = caf::typed_actor<bus::answers<frontend_actor, std::uint64_t>>;

// -- what travels ----------------------------------------------------------------------------------------------

// Between processes: all messages, and the handles inside them.
using bus_remote_types = bus::joined<bus_messages, type_list<client_actor, frontend_actor, gate_actor>>::type;
// Within one: pointers and functions, which no peer could use.
using bus_local_types = type_list<meet, halt, submit_local, prepare_job, tokenize_local, detokenize_local, lose_scheduler,
                                  close_ingress, begin_stop, tick_message, stop_timer, try_again>;

namespace bus {
template <>
inline constexpr std::string_view wire_name<client_actor> = "fermata::client_actor";
template <>
inline constexpr std::string_view wire_name<frontend_actor> = "fermata::frontend_actor";
template <>
inline constexpr std::string_view wire_name<gate_actor> = "fermata::gate_actor";
}  // namespace bus

}  // namespace fermata

FERMATA_BUS_TYPES(fermata::bus_remote_types, fermata::bus_local_types)

namespace fermata {

// -- interfaces within a node ----------------------------------------------------------------------------------

using frontend_inner =
    caf::typed_actor<bus::takes<submit, client_actor>, bus::takes<cancel_request, client_actor>,
                     bus::answers<tokenized, tokenize_text>, bus::answers<detokenized, detokenize_tokens>,
                     bus::takes<submit_local>, bus::takes<cancel_request>, bus::takes<tokenize_local>,
                     bus::takes<detokenize_local>, bus::takes<prepared>, bus::takes<enqueue_result>,
                     bus::takes<outputs>, bus::takes<lose_scheduler>, bus::takes<close_ingress>, bus::takes<meet>,
                     bus::takes<halt>>;
using preparer_actor =
    caf::typed_actor<bus::takes<prepare_job>, bus::answers<tokenized, tokenize_text>,
                     bus::answers<detokenized, detokenize_tokens>, bus::takes<tokenize_local>,
                     bus::takes<detokenize_local>, bus::takes<meet>, bus::takes<halt>>;
using scheduler_actor =
    caf::typed_actor<bus::takes<enqueue>, bus::takes<cancel_request>, bus::takes<cycle_done>,
                     bus::takes<program_notice>, bus::takes<source_chosen>, bus::takes<victims_chosen>,
                     bus::takes<drain>, bus::takes<tick_message>, bus::takes<meet>, bus::takes<halt>>;
using resource_manager_actor =
    caf::typed_actor<bus::takes<choose_source>, bus::takes<choose_victims>, bus::takes<checkpoint_published>,
                     bus::takes<checkpoint_dropped>, bus::takes<checkpoint_adopted>, bus::takes<meet>,
                     bus::takes<halt>>;
using program_actor = caf::typed_actor<bus::takes<cycle_plan>, bus::takes<copy_done>, bus::takes<meet>, bus::takes<halt>>;
using transfer_actor = caf::typed_actor<bus::takes<copy_order>, bus::takes<meet>, bus::takes<halt>>;
using supervisor_actor =
    caf::typed_actor<bus::takes<begin_stop>, bus::takes<drained>, bus::takes<stop_timer>, bus::takes<try_again>>;

struct peer_handles {
    frontend_inner frontend;
    std::vector<preparer_actor> preparers;
    scheduler_actor scheduler;
    resource_manager_actor resource_manager;
    program_actor program;
    transfer_actor transfer;
    supervisor_actor supervisor;
};

// Tells a configuration about the messages; before its actor system is made.
void register_messages(caf::actor_system_config& config);

}  // namespace fermata

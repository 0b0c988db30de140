// What the thin shells share: the node's context, the journal tap, last words. A shell turns messages into events of
// its core and the core's commands into messages; it decides nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "actors/byte_budget.hpp"
#include "actors/handles.hpp"
#include "actors/journal/journal.hpp"
#include "messages/telemetry.hpp"

namespace fermata {

// Shared by all actors of a node; fixed before the first is spawned.
struct node_context {
    std::function<time_ns()> clock;
    std::shared_ptr<telemetry> numbers;
    std::shared_ptr<journal_writer> journal;  // may be null
    std::shared_ptr<byte_budget> requests_bytes;  // of all requests taken; null: no bound

    // Why an actor died, when it was an exception. For the log and /health.
    void last_words(bus_party who, std::string text) {
        std::lock_guard lock(mutex_);
        words_ = std::string(wire::enum_name(who)) + ": " + std::move(text);
    }
    std::string take_last_words() {
        std::lock_guard lock(mutex_);
        return std::exchange(words_, {});
    }

private:
    std::mutex mutex_;
    std::string words_;
};

using context_ptr = std::shared_ptr<node_context>;

template <class Handle>
class shell : public Handle::base {
public:
    using behavior_type = typename Handle::base::behavior_type;

    shell(caf::actor_config& config, context_ptr context, bus_party part)
        : Handle::base(config), context_(std::move(context)), part_(part) {
        this->set_exception_handler([context = context_, part](std::exception_ptr& error) -> caf::error {
            try {
                std::rethrow_exception(error);
            } catch (const std::exception& each) {
                context->last_words(part, each.what());
            } catch (...) {
                context->last_words(part, "an exception of an unknown kind");
            }
            return caf::make_error(caf::sec::runtime_error);
        });
    }

protected:
    // The time this event is taken to happen at; in the journal with the message.
    template <message M>
    time_ns note(bus_party from, const M& message) {
        const time_ns now = context_->clock();
        if (context_->journal) context_->journal->record(now, from, part_, bus_message(message));
        return now;
    }
    void leave() { this->quit(caf::exit_reason::normal); }

    context_ptr context_;
    bus_party part_;
};

}  // namespace fermata

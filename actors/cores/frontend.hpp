// Core of the Frontend actor: the life of a request between its client and the Scheduler. It hands preparation out,
// turns committed tokens into text, and decides what text leaves.
//
// Invariants: a client gets `accepted` or `rejected` once, then deltas, then `finished` or `failed` once; nothing
// after that. Text leaves in whole characters and never contains a part of a stop string. A request is forgotten when
// its last choice ended, whatever the client does. Whatever is thrown while one request is worked on ends that request
// alone: no `on` lets an exception out.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/byte_budget.hpp"
#include "frontend/planning/planner.hpp"
#include "frontend/tokenizer/detokenizer.hpp"
#include "messages/ingress.hpp"
#include "messages/serving.hpp"
#include "messages/telemetry.hpp"

namespace fermata {

// Commands, in the order in which they are to be carried out.
struct hand_to_preparer {
    std::shared_ptr<const submit> request;
    std::uint64_t drawn_seed = 0;
    std::shared_ptr<const std::atomic<bool>> given_up;  // true: nobody waits for it any more
};
using client_message = std::variant<accepted, rejected, text_delta, finished, failed>;
struct send_to_client {
    request_id request{};
    client_message message;
};
struct send_to_scheduler {
    std::variant<enqueue, cancel_request> message;
};
using frontend_command = std::variant<hand_to_preparer, send_to_client, send_to_scheduler>;
using frontend_commands = std::vector<frontend_command>;

struct frontend_options {
    std::uint32_t requests_max = 4096;  // being prepared, queued or answered at once
    std::uint64_t seed = 0;             // of the seeds drawn for requests without one
    std::uint64_t requests_bytes_max = std::uint64_t{256} << 20;  // what all of them keep in memory together
    std::uint64_t life = 0;             // of the core: another life draws other seeds
};

class frontend_core {
public:
    frontend_core(frontend_options options, std::shared_ptr<const text_model> model,
                  std::shared_ptr<telemetry> numbers = nullptr);

    // `room`: what the request holds of the node's memory; follows what it really keeps.
    void on(submit request, frontend_commands& commands, byte_lease room = {});
    void on(prepared result, frontend_commands& commands);
    void on(const enqueue_result& result, frontend_commands& commands);
    void on(const outputs& rows, frontend_commands& commands);
    void on(const cancel_request& cancel, frontend_commands& commands);
    // No new requests from now on; accepted ones go on.
    void drain() noexcept { draining_ = true; }
    // Its client can't be reached, or its work can't be handed on: the request is given up without another word.
    void forget(request_id id, frontend_commands& commands);
    // The Scheduler is gone: every request ends with this error.
    void fail_all(const client_error& error, frontend_commands& commands);

    std::size_t requests() const noexcept { return requests_.size(); }

private:
    struct choice_state {
        std::unique_ptr<text::incremental_detokenizer> characters;  // null: the model has no text
        std::unique_ptr<text::stop_text_filter> stops;
        std::vector<token_report> held_tokens;    // committed, not yet reported
        std::vector<token_report> prompt_tokens;  // scored, not yet reported
        std::size_t prompt_scored = 0;            // of the prompt's tokens, reported or not
        std::vector<float> held_logits;
        bool started = false;
        bool ended = false;
    };
    enum class phase : std::uint8_t { preparing, queueing, running };
    struct request_state {
        phase at = phase::preparing;
        bool cancelled = false;
        byte_lease room;
        std::shared_ptr<std::atomic<bool>> given_up = std::make_shared<std::atomic<bool>>(false);
        request_state() = default;
        request_state(request_state&&) = default;
        ~request_state() {
            if (given_up) *given_up = true;
        }
        bool echo = false;
        report_spec report;
        std::vector<std::string> stop;
        std::string echo_text;
        token_run prompt;
        std::vector<choice_state> choices;
        std::uint32_t running_choices = 0;
        request_usage usage;
        failure_kind failure = failure_kind::none;
        std::string failure_text;
    };

    void take(submit request, frontend_commands& commands, byte_lease room);
    void take(prepared result, frontend_commands& commands);
    void take(const enqueue_result& result, frontend_commands& commands);
    template <class Work>
    void alone(request_id id, frontend_commands& commands, Work&& work);
    void drop(request_id id, const char* why, frontend_commands& commands);
    void add_row(request_id id, request_state& request, const choice_output& row, frontend_commands& commands);
    void take_token(choice_state& choice, const row_result& row, std::string& text);
    void take_prompt_scores(request_state& request, choice_state& choice, const row_result& row);
    void account(request_state& request, const choice_output& row);
    void end_request(request_id id, request_state& request, frontend_commands& commands);
    token_report report_of(token_id token, float logprob, const std::vector<token_logprob>& top) const;
    std::string bytes_of(token_id token) const;

    frontend_options options_;
    std::shared_ptr<const text_model> model_;
    std::shared_ptr<telemetry> numbers_;
    std::unordered_map<request_id, request_state> requests_;
    std::uint64_t seeds_drawn_ = 0;
    bool draining_ = false;
};

// How a failure inside the node reads to a client.
client_error error_of(failure_kind kind, const std::string& text);
client_error error_of(const enqueue_result& refused);

}  // namespace fermata

#include "actors/cores/frontend.hpp"

#include <cstdio>
#include <exception>
#include <utility>

#include "frontend/client_errors.hpp"
#include "frontend/planning/request_bytes.hpp"

namespace fermata {
namespace {

client_error client_left() {
    client_error error = make_error(499, {}, "the client left");
    error.type = "client_closed_request";
    return error;
}

// Commands are built in place: moving a variant makes g++ 12 warn of members that another alternative would have.
template <class Message>
void tell(frontend_commands& commands, request_id id, Message message) {
    commands.emplace_back(std::in_place_type<send_to_client>,
                          send_to_client{id, client_message(std::in_place_type<Message>, std::move(message))});
}

template <class Message>
void order(frontend_commands& commands, Message message) {
    commands.emplace_back(std::in_place_type<send_to_scheduler>, send_to_scheduler{std::move(message)});
}

// splitmix64: well spread seeds from a counter.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

void count(std::shared_ptr<telemetry>& numbers, counter telemetry::*which) {
    if (numbers) ((*numbers).*which).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

client_error error_of(failure_kind kind, const std::string& text) {
    const auto with = [&](unsigned status, const char* code, const char* otherwise) {
        return make_error(status, code, text.empty() ? otherwise : text);
    };
    switch (kind) {
        case failure_kind::capacity:
            return with(503, "capacity_exceeded", "the request needs more context memory than this server has");
        case failure_kind::queue_timeout:
            return with(503, "queue_timeout", "the request waited too long for a free lane");
        case failure_kind::deadline: return with(504, "deadline_exceeded", "the request's deadline passed");
        case failure_kind::shutting_down: return with(503, "shutting_down", "the server is shutting down");
        case failure_kind::not_finite:
            return with(500, "logits_not_finite", "the model computed logits that are not finite");
        case failure_kind::none:
        case failure_kind::internal: break;
    }
    return with(500, "internal_error", "an internal error ended the request");
}

client_error error_of(const enqueue_result& refused) {
    const auto with = [&](client_error error) { return retry_after(std::move(error), refused.retry_after_s); };
    switch (refused.why) {
        case refusal::shutting_down: return with(unavailable("the server is shutting down", "shutting_down"));
        case refusal::out_of_order: return with(unavailable("the device failed; the server tries to restart it"));
        case refusal::malformed: return with(error_of(failure_kind::internal, "the request could not be queued"));
        case refusal::none:
        case refusal::queue_full: break;
    }
    return with(make_error(429, "queue_full", "the queue is full; try again later"));
}

frontend_core::frontend_core(frontend_options options, std::shared_ptr<const text_model> model,
                             std::shared_ptr<telemetry> numbers)
    : options_(options), model_(std::move(model)), numbers_(std::move(numbers)) {}

// What `work` ordered before it threw is void; the client hears that its request failed.
template <class Work>
void frontend_core::alone(request_id id, frontend_commands& commands, Work&& work) {
    const std::size_t before = commands.size();
    char why[160] = "an exception of an unknown kind";
    try {
        // For `drop`, which then needs no memory but for its text.
        if (commands.capacity() < before + 2) commands.reserve(2 * before + 8);
        return work();
    } catch (const std::exception& error) {
        std::snprintf(why, sizeof why, "%s", error.what());
    } catch (...) {
    }
    while (commands.size() > before) commands.pop_back();
    try {
        drop(id, why, commands);
    } catch (...) {
        requests_.erase(id);  // not even memory for a last word
    }
}

void frontend_core::drop(request_id id, const char* why, frontend_commands& commands) {
    const auto entry = requests_.find(id);
    const phase at = entry == requests_.end() ? phase::preparing : entry->second.at;
    if (at != phase::preparing) order(commands, cancel_request{id});  // the Scheduler counts it
    else count(numbers_, &telemetry::requests_rejected);
    client_error error;
    error.type = "server_error";  // short enough to need no memory
    error.code = "internal_error";
    try {
        error.message = std::string("an internal error ended the request: ") + why;
    } catch (...) {
        error.message = "out of memory";
    }
    if (at == phase::running)
        tell(commands, id, failed{id, std::move(error), {}});
    else
        tell(commands, id, rejected{id, std::move(error)});
    if (entry != requests_.end()) requests_.erase(entry);
}

void frontend_core::forget(request_id id, frontend_commands& commands) {
    const auto entry = requests_.find(id);
    if (entry == requests_.end()) return;
    const bool known_to_scheduler = entry->second.at != phase::preparing;
    requests_.erase(entry);
    if (known_to_scheduler) order(commands, cancel_request{id});
}

void frontend_core::on(submit request, frontend_commands& commands, byte_lease room) {
    const request_id id = request.request;
    // Of two requests with one name the one that came first is not touched.
    if (requests_.contains(id)) {
        count(numbers_, &telemetry::requests_rejected);
        auto error = make_error(400, {}, "request id " + std::to_string(id.value) + " is in use", "request");
        return tell(commands, id, rejected{id, std::move(error)});
    }
    alone(id, commands, [&] { take(std::move(request), commands, std::move(room)); });
}

void frontend_core::take(submit request, frontend_commands& commands, byte_lease room) {
    const request_id id = request.request;
    const auto reject = [&](client_error error) {
        count(numbers_, &telemetry::requests_rejected);
        tell(commands, id, rejected{id, std::move(error)});
    };
    if (draining_) return reject(unavailable("the server is shutting down", "shutting_down"));
    if (requests_.size() >= options_.requests_max)
        return reject(overloaded("the server holds as many requests as it can"));
    request_state& state = requests_[id];
    state.room = std::move(room);
    state.echo = request.echo;
    state.report = request.report;
    state.stop = request.stop;
    commands.emplace_back(std::in_place_type<hand_to_preparer>,
                          hand_to_preparer{std::make_shared<const submit>(std::move(request)),
                                           mix(mix(options_.seed ^ mix(options_.life)) ^ mix(++seeds_drawn_)),
                                           state.given_up});
}

void frontend_core::on(prepared result, frontend_commands& commands) {
    const request_id id = result.request;
    alone(id, commands, [&] { take(std::move(result), commands); });
}

void frontend_core::take(prepared result, frontend_commands& commands) {
    const auto entry = requests_.find(result.request);
    if (entry == requests_.end()) return;
    request_state& request = entry->second;
    if (request.cancelled) {
        count(numbers_, &telemetry::requests_cancelled);
        tell(commands, result.request, rejected{result.request, client_left()});
        requests_.erase(entry);
        return;
    }
    if (result.error) {
        count(numbers_, &telemetry::requests_rejected);
        tell(commands, result.request, rejected{result.request, std::move(*result.error)});
        requests_.erase(entry);
        return;
    }
    if (!request.room.resize(fermata::bytes_of(result))) {
        count(numbers_, &telemetry::requests_rejected);
        tell(commands, result.request, rejected{result.request, overloaded("the server holds as many bytes of requests as it can")});
        requests_.erase(entry);
        return;
    }
    request.at = phase::queueing;
    request.prompt = result.order.choices.front()->prompt;
    request.echo_text = std::move(result.echo_text);
    request.usage.prompt_tokens = request.prompt.size();
    request.running_choices = static_cast<std::uint32_t>(result.order.choices.size());
    request.choices.resize(result.order.choices.size());
    for (choice_state& choice : request.choices) {
        if (!model_->has_text()) continue;
        choice.characters = std::make_unique<text::incremental_detokenizer>(model_->words());
        choice.stops = std::make_unique<text::stop_text_filter>(request.stop);
    }
    order(commands, std::move(result.order));
}

void frontend_core::on(const enqueue_result& result, frontend_commands& commands) {
    alone(result.request, commands, [&] { take(result, commands); });
}

void frontend_core::take(const enqueue_result& result, frontend_commands& commands) {
    const auto entry = requests_.find(result.request);
    if (entry == requests_.end()) return;
    if (!result.accepted) {
        count(numbers_, &telemetry::requests_rejected);
        tell(commands, result.request, rejected{result.request, error_of(result)});
        requests_.erase(entry);
        return;
    }
    entry->second.at = phase::running;
    tell(commands, result.request,
         accepted{result.request, token_pos(static_cast<std::uint32_t>(entry->second.prompt.size()))});
}

void frontend_core::on(const outputs& rows, frontend_commands& commands) {
    for (const choice_output& row : rows.rows) {
        const auto entry = requests_.find(row.request);
        if (entry == requests_.end()) continue;
        alone(row.request, commands, [&] {
            add_row(row.request, entry->second, row, commands);
            if (entry->second.running_choices > 0) return;
            end_request(row.request, entry->second, commands);
            requests_.erase(entry);
        });
    }
}

void frontend_core::on(const cancel_request& cancel, frontend_commands& commands) {
    const auto entry = requests_.find(cancel.request);
    if (entry == requests_.end() || entry->second.cancelled) return;
    alone(cancel.request, commands, [&] {
        entry->second.cancelled = true;
        *entry->second.given_up = true;
        // While it is being prepared the Scheduler doesn't know it yet; `prepared` will drop it.
        if (entry->second.at != phase::preparing) order(commands, cancel);
    });
}

void frontend_core::fail_all(const client_error& error, frontend_commands& commands) {
    while (!requests_.empty()) {
        const auto entry = requests_.begin();
        const request_id id = entry->first;
        count(numbers_, entry->second.at == phase::running ? &telemetry::requests_failed : &telemetry::requests_rejected);
        alone(id, commands, [&] {
            if (entry->second.at == phase::running)
                tell(commands, id, failed{id, error, entry->second.usage});
            else
                tell(commands, id, rejected{id, error});
            requests_.erase(entry);
        });
    }
}

void frontend_core::add_row(request_id id, request_state& request, const choice_output& row,
                            frontend_commands& commands) {
    if (row.choice >= request.choices.size()) return;
    choice_state& choice = request.choices[row.choice];
    if (choice.ended) return;

    const bool over = row.row.finish != finish_reason::none;
    text_delta delta;
    // The echo leaves with the answer's beginning: by then the prompt is scored to its end, and goes with it.
    if (!choice.started && request.echo && (over || row.row.token != no_token)) delta.text = request.echo_text;
    if (request.report.prompt_logprobs) take_prompt_scores(request, choice, row.row);
    if (row.row.token != no_token) take_token(choice, row.row, delta.text);
    choice.held_logits.insert(choice.held_logits.end(), row.row.logits.begin(), row.row.logits.end());

    if (over) {
        choice.ended = true;
        --request.running_choices;
        account(request, row);
        // What may have been the beginning of a stop string is text after all; half a character stays withheld.
        if (choice.stops && !choice.stops->stopped()) delta.text += choice.stops->finish();
    }
    // A row that only computed says nothing; text held back is reported with the text that follows it.
    const bool speaks = over || !delta.text.empty() || (!choice.characters && row.row.token != no_token);
    if (!speaks || request.cancelled) return;

    choice.started = true;
    delta.request = id;
    delta.choice = row.choice;
    delta.finish = row.row.finish;
    delta.tokens = std::exchange(choice.held_tokens, {});
    delta.prompt = std::exchange(choice.prompt_tokens, {});
    delta.logits = std::exchange(choice.held_logits, {});
    tell(commands, id, std::move(delta));
}

void frontend_core::take_token(choice_state& choice, const row_result& row, std::string& text) {
    choice.held_tokens.push_back(report_of(row.token, row.logprob, row.top_logprobs));
    if (choice.characters) text += choice.stops->push(choice.characters->push(row.token));
}

// Scores come in order, chunk by chunk; the first token of a prompt has none.
void frontend_core::take_prompt_scores(request_state& request, choice_state& choice, const row_result& row) {
    for (std::size_t i = 0; i < row.prompt_logprobs.size(); ++i) {
        const std::size_t position = choice.prompt_scored++;
        if (position >= request.prompt.size()) return;
        static const std::vector<token_logprob> none;
        const auto& top = i < row.prompt_top_logprobs.size() ? row.prompt_top_logprobs[i] : none;
        choice.prompt_tokens.push_back(report_of(request.prompt[position], row.prompt_logprobs[i], top));
    }
}

void frontend_core::account(request_state& request, const choice_output& row) {
    if (row.row.finish == finish_reason::error && request.failure == failure_kind::none) {
        request.failure = row.failure == failure_kind::none ? failure_kind::internal : row.failure;
        request.failure_text = row.row.error;
    }
    if (!row.usage) return;
    request.usage.completion_tokens += row.usage->generated.value;
    request.usage.replayed_tokens += row.usage->replayed.value;
    if (row.choice != 0) return;
    request.usage.cached_tokens = row.usage->cached.value;
    request.usage.source = row.usage->cached.value > 0 ? "device" : "root";
    const auto ms = [](time_ns ns) { return static_cast<double>(ns / 1'000) / 1'000; };  // whole microseconds
    request.usage.queue_ms = ms(row.usage->queued_ns);
    request.usage.ttft_ms = ms(row.usage->ttft_ns);
}

void frontend_core::end_request(request_id id, request_state& request, frontend_commands& commands) {
    if (request.cancelled) {
        tell(commands, id, failed{id, client_left(), request.usage});
        return;
    }
    if (request.failure != failure_kind::none) {
        tell(commands, id, failed{id, error_of(request.failure, request.failure_text), request.usage});
        return;
    }
    tell(commands, id, finished{id, request.usage});
}

token_report frontend_core::report_of(token_id token, float logprob, const std::vector<token_logprob>& top) const {
    token_report report;
    report.token = token;
    report.bytes = bytes_of(token);
    report.logprob = logprob;
    report.top = top;
    report.top_bytes.reserve(top.size());
    for (const token_logprob& entry : top) report.top_bytes.push_back(bytes_of(entry.token));
    return report;
}

std::string frontend_core::bytes_of(token_id token) const {
    if (!model_->has_text() || !model_->words()->has_token(token)) return {};
    return std::string(model_->words()->token_bytes(token));
}

}  // namespace fermata

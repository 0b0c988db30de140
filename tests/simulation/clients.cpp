#include "clients.hpp"

#include <algorithm>
#include <utility>

namespace fermata::simulation {

clients::clients(const scenario& what, bus& transport, delivery& told)
    : scenario_(what), bus_(transport), told_(told), random_(what.seed ^ 0xC11E47'5EEDull),
      more_(what.seed ^ 0xC11E47'7E77ull) {
    clients_.resize(scenario_.habits.clients);
}

void clients::start() {
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
        if (scenario_.node.text) {
            if (more_.chance(scenario_.habits.chat_percent)) clients_[i].kind = prompt_kind::chat;
            else if (more_.chance(scenario_.habits.text_percent)) clients_[i].kind = prompt_kind::text;
        }
        clients_[i].turns_left = static_cast<std::uint32_t>(random_.between(1, scenario_.habits.turns_max));
        bus_.set_timer(peer::client, client_timer{i, next_turn, 0}, random_.between(0, scenario_.habits.think_max));
    }
}

void clients::on(const client_timer& timer, time_ns now) {
    client& c = clients_[timer.client];
    if (timer.action == next_turn) return send_turn(timer.client, now);
    if (c.request == timer.argument) return cancel_now(c, now);
    const auto [from, to] = way();
    bus_.send(from, to, cancel_request{request_id{timer.argument}}, now);  // long over
}

void clients::cancel_now(client& c, time_ns now) {
    c.cancelled = true;
    const auto [from, to] = way();
    const time_ns hop = random_.between(1, scenario_.hop_max);
    bus_.send(from, to, cancel_request{request_id{c.request}}, now + hop);
    if (random_.chance(20)) bus_.send(from, to, cancel_request{request_id{c.request}}, now + hop);
}

// The next user message; a conversation that no longer fits starts again.
void clients::extend_history(client& c) {
    const auto draw = [&] { return static_cast<token_id>(random_.upto(scenario_.vocabulary - 2)); };
    const std::uint32_t limit = scenario_.habits.prompt_max;
    if (!c.history.empty() && random_.chance(10)) c.history.resize(c.history.size() / 2 + 1);  // a rewrite
    const bool resend = !c.history.empty() && c.history.size() <= limit && random_.chance(10);
    if (resend) return;
    if (c.history.empty() || c.history.size() >= limit) {
        c.history.clear();
        if (!scenario_.shared_prefixes.empty() && random_.chance(70)) c.history = random_.pick(scenario_.shared_prefixes);
    }
    const auto room = static_cast<std::int64_t>(limit) - static_cast<std::int64_t>(c.history.size());
    for (std::int64_t k = room > 0 ? random_.between(0, room) : 0; k > 0; --k) c.history.push_back(draw());
    if (c.history.empty()) c.history.push_back(draw());
    if (c.history.size() > limit) c.history.resize(limit);
}

void clients::draw_sampling(sampling_params& to) {
    to.seed = random_.next();
    if (!random_.chance(scenario_.habits.random_sampling_percent)) {
        to.temperature = 0;
        return;
    }
    to.temperature = random_.chance(20) ? 0.0f : 0.25f * static_cast<float>(random_.between(1, 8));
    if (random_.chance(30)) to.top_p = 0.1f * static_cast<float>(random_.between(1, 10));
    if (random_.chance(30)) to.top_k = random_.upto(20);
    if (random_.chance(20)) to.min_p = 0.1f;
    if (random_.chance(20)) to.repetition_penalty = 1.3f;
    if (random_.chance(20)) to.frequency_penalty = 0.7f;
    if (random_.chance(20)) to.presence_penalty = 0.9f;
    if (random_.chance(20)) to.logit_bias.push_back({static_cast<token_id>(random_.upto(scenario_.vocabulary - 1)), 6.0f});
}

void clients::draw_guard(guard_spec& to, std::uint32_t room) {
    to.max_new_tokens = token_pos(random_.chance(3) ? 0 : static_cast<std::uint32_t>(random_.between(1, scenario_.habits.answer_max)));
    if (random_.chance(50)) to.max_new_tokens = std::min(to.max_new_tokens, token_pos(std::max(room, 1u)));
    to.ignore_eos = random_.chance(30);
    for (std::uint32_t i = random_.chance(30) ? 1 + random_.upto(1) : 0; i > 0; --i) {
        std::string stop;
        for (std::uint32_t k = 2 + random_.upto(2); k > 0; --k) stop += static_cast<char>('a' + random_.upto(5));
        to.stop.push_back(stop);
    }
    if (random_.chance(10)) to.stop_tokens.push_back(static_cast<token_id>(random_.upto(scenario_.vocabulary - 1)));
}

sequence_spec clients::draw_spec(const std::vector<token_id>& prompt) {
    sequence_spec s;
    s.prompt = token_run(prompt);
    draw_sampling(s.sampling);
    draw_guard(s.guard, scenario_.node.device.max_context_tokens - static_cast<std::uint32_t>(prompt.size()));
    s.report.logprobs = random_.chance(40);
    if (s.report.logprobs) s.report.top_logprobs = random_.upto(3);
    s.report.prompt_logprobs = random_.chance(scenario_.habits.scoring_percent);
    return s;
}

void clients::send_turn(std::uint32_t index, time_ns now) {
    client& c = clients_[index];
    if (c.kind == prompt_kind::tokens) extend_history(c);
    else extend_conversation(c);
    c.request = next_request_++;
    c.cancelled = c.failed = false;
    c.reply.clear();
    c.reply_text.clear();
    c.cancel_after_tokens = 0;
    owners_[c.request] = index;
    sequence_spec drawn = draw_spec(c.kind == prompt_kind::tokens ? c.history : prompt_of(c.kind, c.messages));
    drawn.request = request_id{c.request};
    if (random_.chance(30)) drawn.session = "session " + std::to_string(index);
    c.choices_open = random_.chance(scenario_.habits.fork_percent) ? 2 + random_.upto(2) : 1;
    const time_ns patience =
        random_.chance(scenario_.habits.deadline_percent) ? random_.magnitude(50'000, 200'000'000) : 0;
    const time_ns arrival = now + random_.between(1, scenario_.hop_max);
    if (scenario_.node.text) {
        submission s = submission_of(c, drawn, c.choices_open);
        s.request.deadline_ms = static_cast<std::uint32_t>((patience + 999'999) / 1'000'000);
        told_.announce(s);
        bus_.send(peer::client, peer::frontend, std::move(s.request), arrival);
    } else {
        enqueue e;
        e.request = drawn.request;
        for (drawn.choice = 0; drawn.choice < c.choices_open; ++drawn.choice)
            e.choices.push_back(std::make_shared<sequence_spec>(drawn));
        e.deadline = patience == 0 ? 0 : now + patience;
        bus_.send(peer::frontend, peer::scheduler, std::move(e), arrival);
    }
    if (!random_.chance(scenario_.habits.cancel_percent)) return;
    if (random_.chance(40)) c.cancel_after_tokens = 1 + random_.upto(scenario_.habits.answer_max);
    else bus_.set_timer(peer::client, client_timer{index, cancel, c.request}, now + random_.magnitude(1'000, 100'000'000));
}

// The next user message of a client that speaks text.
void clients::extend_conversation(client& c) {
    const std::size_t limit = scenario_.habits.prompt_max;
    const auto said = [&] {
        std::size_t bytes = 1;  // the generation prompt
        for (const std::string& each : c.messages) bytes += each.size();
        return bytes;
    };
    if (!c.messages.empty() && more_.chance(10)) c.messages.resize(c.messages.size() / 2);  // a rewrite
    if (said() >= limit) c.messages.clear();
    std::string next;
    if (c.messages.empty() && !scenario_.shared_prefixes.empty() && more_.chance(70))
        next = letters_of(expected_text(scenario_.text, more_.pick(scenario_.shared_prefixes), {}));
    const auto room = static_cast<std::int64_t>(limit) - static_cast<std::int64_t>(said() + next.size());
    for (std::int64_t k = room > 0 ? more_.between(0, room) : 0; k > 0; --k) next += static_cast<char>('a' + more_.upto(5));
    if (next.size() + said() > limit && limit > said()) next.resize(limit - said());
    if (next.empty()) next = "b";
    c.messages.push_back(next);
}

submission clients::submission_of(const client& c, const sequence_spec& drawn, std::uint32_t choices) {
    submission s;
    s.prompt.assign(drawn.prompt.span().begin(), drawn.prompt.span().end());
    submit& r = s.request;
    r.request = drawn.request;
    r.kind = c.kind;
    if (c.kind == prompt_kind::tokens) r.prompt_tokens = drawn.prompt;
    else if (c.kind == prompt_kind::chat) r.messages_json = json_of(c.messages);
    else for (const std::string& each : c.messages) r.prompt_text += each;
    r.sampling = drawn.sampling;
    r.seed_given = more_.chance(80);
    r.n = choices;
    // Both sides of the limit are met: most answers fit into the context, some fill it, a few ask for more.
    const std::uint32_t context = scenario_.node.device.max_context_tokens;
    const std::uint32_t room = context - std::min(context, static_cast<std::uint32_t>(s.prompt.size()));
    r.max_tokens = drawn.guard.max_new_tokens.value;
    if (*r.max_tokens > room && !more_.chance(2)) r.max_tokens = room;
    if (room > 0 && more_.chance(5)) r.max_tokens.reset();
    s.max_tokens = r.max_tokens.value_or(room);
    s.wrong = s.max_tokens > room;
    r.stop = drawn.guard.stop;
    r.stop_tokens = drawn.guard.stop_tokens;
    r.ignore_eos = drawn.guard.ignore_eos;
    r.report = drawn.report;
    r.session = drawn.session;
    r.echo = more_.chance(10);
    if (more_.chance(scenario_.habits.wrong_percent)) spoil(s, more_, scenario_.vocabulary);
    return s;
}

void clients::on(const enqueue_result& result, time_ns now) {
    if (result.accepted) return;
    const std::uint32_t index = client_of(result.request.value);
    clients_[index].choices_open = 0;
    clients_[index].failed = true;
    finish_turn(index, now);
}

void clients::on(const outputs& rows, time_ns now) {
    for (const choice_output& each : rows.rows) {
        const std::uint32_t index = client_of(each.request.value);
        client& c = clients_[index];
        if (each.row.token != no_token) hear(index, each.choice, {each.row.token}, now);
        if (each.row.finish == finish_reason::none) continue;
        c.failed |= each.row.finish == finish_reason::error;
        if (--c.choices_open == 0) finish_turn(index, now);
    }
}

void clients::hear(std::uint32_t index, std::uint32_t choice, const std::vector<token_id>& tokens, time_ns now) {
    client& c = clients_[index];
    if (choice != 0) return;
    c.reply.insert(c.reply.end(), tokens.begin(), tokens.end());
    if (c.cancel_after_tokens != 0 && c.reply.size() >= c.cancel_after_tokens && !c.cancelled) cancel_now(c, now);
}

void clients::on(const text_delta& delta, time_ns now) {
    std::vector<token_id> tokens;
    for (const token_report& each : delta.tokens) tokens.push_back(each.token);
    const std::uint32_t index = client_of(delta.request.value);
    if (delta.choice == 0) clients_[index].reply_text += delta.text;
    hear(index, delta.choice, tokens, now);
}

void clients::on(const rejected& end, time_ns now) { ended(end.request.value, true, now); }
void clients::on(const finished& end, time_ns now) { ended(end.request.value, false, now); }
void clients::on(const failed& end, time_ns now) { ended(end.request.value, !clients_[client_of(end.request.value)].cancelled, now); }

void clients::ended(std::uint64_t request, bool failed, time_ns now) {
    const std::uint32_t index = client_of(request);
    clients_[index].failed = failed;
    finish_turn(index, now);
}

void clients::finish_turn(std::uint32_t index, time_ns now) {
    client& c = clients_[index];
    c.request = 0;
    if (!c.failed && (!c.cancelled || random_.chance(50))) {
        c.history.insert(c.history.end(), c.reply.begin(), c.reply.end());
        if (c.kind != prompt_kind::tokens) c.messages.push_back(letters_of(c.reply_text));
    }
    if (c.turns_left == 0 || --c.turns_left == 0) return;
    bus_.set_timer(peer::client, client_timer{index, next_turn, 0}, now + random_.between(1, scenario_.habits.think_max));
}

}  // namespace fermata::simulation

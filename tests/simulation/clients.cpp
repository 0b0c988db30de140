#include "clients.hpp"

#include <algorithm>
#include <utility>

namespace fermata::simulation {

clients::clients(const scenario& what, bus& transport, observer& watch)
    : scenario_(what), bus_(transport), watch_(watch), random_(what.seed ^ 0xC11E47'5EEDull) {
    clients_.resize(scenario_.habits.clients);
}

void clients::start() {
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
        clients_[i].turns_left = static_cast<std::uint32_t>(random_.between(1, scenario_.habits.turns_max));
        bus_.set_timer(peer::client, client_timer{i, next_turn, 0}, random_.between(0, scenario_.habits.think_max));
    }
}

void clients::on(const client_timer& timer, time_ns now) {
    client& c = clients_[timer.client];
    if (timer.action == next_turn) send_turn(timer.client, now);
    else if (c.request == timer.argument) cancel_now(c, now);
    else bus_.send(peer::frontend, peer::scheduler, cancel_request{request_id{timer.argument}}, now);  // long over
}

void clients::cancel_now(client& c, time_ns now) {
    c.cancelled = true;
    const time_ns hop = random_.between(1, scenario_.hop_max);
    bus_.send(peer::frontend, peer::scheduler, cancel_request{request_id{c.request}}, now + hop);
    if (random_.chance(20)) bus_.send(peer::frontend, peer::scheduler, cancel_request{request_id{c.request}}, now + hop);
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
    extend_history(c);
    c.request = next_request_++;
    c.cancelled = c.failed = false;
    c.reply.clear();
    c.cancel_after_tokens = 0;
    owners_[c.request] = index;
    sequence_spec drawn = draw_spec(c.history);
    drawn.request = request_id{c.request};
    if (random_.chance(30)) drawn.session = "session " + std::to_string(index);
    enqueue e;
    e.request = request_id{c.request};
    c.choices_open = random_.chance(scenario_.habits.fork_percent) ? 2 + random_.upto(2) : 1;
    for (std::uint32_t i = 0; i < c.choices_open; ++i) {
        drawn.choice = i;
        e.choices.push_back(std::make_shared<sequence_spec>(drawn));
    }
    if (random_.chance(scenario_.habits.deadline_percent)) e.deadline = now + random_.magnitude(50'000, 200'000'000);
    watch_.announce(e);
    bus_.send(peer::frontend, peer::scheduler, e, now + random_.between(1, scenario_.hop_max));
    if (!random_.chance(scenario_.habits.cancel_percent)) return;
    if (random_.chance(40)) c.cancel_after_tokens = 1 + random_.upto(scenario_.habits.answer_max);
    else bus_.set_timer(peer::client, client_timer{index, cancel, c.request}, now + random_.magnitude(1'000, 100'000'000));
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
        if (each.choice == 0 && each.row.token != no_token) c.reply.push_back(each.row.token);
        if (c.cancel_after_tokens != 0 && c.reply.size() == c.cancel_after_tokens && !c.cancelled) cancel_now(c, now);
        if (each.row.finish == finish_reason::none) continue;
        c.failed |= each.row.finish == finish_reason::error;
        if (--c.choices_open == 0) finish_turn(index, now);
    }
}

void clients::finish_turn(std::uint32_t index, time_ns now) {
    client& c = clients_[index];
    c.request = 0;
    if (!c.failed && (!c.cancelled || random_.chance(50)))
        c.history.insert(c.history.end(), c.reply.begin(), c.reply.end());
    if (c.turns_left == 0 || --c.turns_left == 0) return;
    bus_.set_timer(peer::client, client_timer{index, next_turn, 0}, now + random_.between(1, scenario_.habits.think_max));
}

}  // namespace fermata::simulation

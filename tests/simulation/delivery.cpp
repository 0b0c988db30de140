#include "delivery.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "observer.hpp"

namespace fermata::simulation {

std::vector<token_id> prompt_of(prompt_kind kind, const std::vector<std::string>& messages) {
    std::string all;
    for (const std::string& each : messages) all += each;
    if (kind == prompt_kind::chat) all += 'a';
    return encoded(all);
}

std::string json_of(const std::vector<std::string>& messages) {
    std::string out = "[";
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (i > 0) out += ", ";
        out += std::string("{\"role\": \"") + (i % 2 == 0 ? "user" : "assistant") + "\", \"content\": \"" + messages[i] + "\"}";
    }
    return out + "]";
}

std::string letters_of(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (c >= 'a' && c <= 'f') out += c;
    return out;
}

void spoil(submission& s, random_source& random, std::uint32_t vocabulary) {
    submit& r = s.request;
    s.wrong = true;
    switch (random.upto(6)) {
        case 0: r.n = 0; break;
        case 1: r.n = 129; break;
        case 2: r.stop.emplace_back(); break;
        case 3: r.stop.emplace_back(2000, 'a'); break;
        case 4: r.sampling.logit_bias.push_back({static_cast<token_id>(vocabulary), 1.0f}); break;
        case 5: r.max_tokens = 1'000'000; break;
        default:
            r.prompt_text.clear();
            r.messages_json = "[";
            r.prompt_tokens = random.chance(50) ? token_run() : token_run({static_cast<token_id>(vocabulary)});
            break;
    }
}

delivery::request& delivery::of(request_id id) {
    const auto it = requests_.find(id.value);
    require(it != requests_.end(), id, "it was never sent");
    return it->second;
}

void delivery::announce(const submission& s) { requests_[s.request.request.value].asked = s; }

void delivery::on_send(const envelope& m) {
    if (!scenario_.node.text) return;
    if (const auto* order = std::get_if<enqueue>(&m.message)) on_enqueue(*order);
    if (m.to != peer::client) return;
    if (const auto* a = std::get_if<accepted>(&m.message)) {
        request& r = of(a->request);
        require(!std::exchange(r.begun, true), a->request, "accepted twice, or after an end");
        require(a->prompt_tokens.value == r.asked.prompt.size(), a->request, "accepted with another number of tokens");
    }
    if (const auto* b = std::get_if<rejected>(&m.message)) on_rejected(*b);
    if (const auto* c = std::get_if<text_delta>(&m.message)) on_delta(*c);
    if (const auto* d = std::get_if<finished>(&m.message)) finish(of(d->request), d->usage, false);
    if (const auto* e = std::get_if<failed>(&m.message)) {
        request& r = of(e->request);
        r.status = e->error.status, r.code = e->error.code;
        require(e->error.status >= 400 && !e->error.message.empty(), e->request, "an error that says nothing");
        finish(r, e->usage, true);
    }
}

void delivery::on_deliver(const envelope& m) {
    scheduler_closed_ |= m.to == peer::scheduler && std::holds_alternative<drain>(m.message);
    if (m.to != peer::frontend) return;
    closed_ |= std::holds_alternative<drain>(m.message);
    if (const auto* cancel = std::get_if<cancel_request>(&m.message))
        if (request& r = of(cancel->request); !r.over) r.cancelled = true;
    if (const auto* sent = std::get_if<submit>(&m.message)) of(sent->request).draining = closed_;
}

// What reaches the Scheduler is what the client said, choice by choice.
void delivery::on_enqueue(const enqueue& order) {
    request& r = of(order.request);
    const submit& s = r.asked.request;
    require(!r.asked.wrong && !r.cancelled && !r.draining, order.request, "it was enqueued and must not be");
    require(!std::exchange(r.enqueued, true), order.request, "enqueued twice");
    require(order.choices.size() == s.n, order.request, "another number of choices");
    for (std::uint32_t i = 0; i < s.n; ++i) {
        const sequence_spec& spec = *order.choices[i];
        sampling_params wanted = s.sampling;
        if (!s.seed_given) wanted.seed = order.choices[0]->sampling.seed;
        const guard_spec guard{s.stop, s.stop_tokens, s.ignore_eos, token_pos(r.asked.max_tokens)};
        const auto prompt = spec.prompt.span();
        require(std::equal(prompt.begin(), prompt.end(), r.asked.prompt.begin(), r.asked.prompt.end()), order.request,
                "another prompt");
        require(spec.request == order.request && spec.choice == i && spec.sampling == wanted && spec.guard == guard &&
                    spec.report == s.report && spec.session == s.session,
                order.request, "another spec");
    }
    require((order.deadline == 0) == (s.deadline_ms == 0), order.request, "a deadline got lost or came from nowhere");
}

void delivery::on_rejected(const rejected& end) {
    request& r = of(end.request);
    require(!r.begun && !r.over, end.request, "rejected after it was accepted or ended");
    r.over = true;
    ++refused;
    const std::uint16_t status = end.error.status;
    require(!end.error.message.empty(), end.request, "a rejection that says nothing");
    if (status == 400) return require(r.asked.wrong, end.request, "rejected as wrong: " + end.error.message);
    left_early += status == 499;
    if (status == 499) return require(r.cancelled && !r.enqueued, end.request, "rejected for a cancel that never came");
    if (status == 503)
        return require(r.draining || (r.enqueued && scheduler_closed_), end.request, "rejected as shutting down before the drain");
    require(status == 429, end.request, "rejected with status " + std::to_string(status));
}

void delivery::on_delta(const text_delta& delta) {
    request& r = of(delta.request);
    ++deltas;
    require(r.begun && !r.over, delta.request, "text before it was accepted or after its end");
    require(!r.cancelled, delta.request, "text after it was cancelled");
    choice& c = r.choices[delta.choice];
    require(delta.choice < r.asked.request.n && c.heard.finish == finish_reason::none, delta.request,
            "text of a choice that ended or doesn't exist");
    c.text += delta.text;
    for (const token_report& each : delta.tokens) {
        c.heard.tokens.push_back(each.token);
        c.heard.logprobs.push_back(each.logprob);
        c.heard.top.push_back(each.top);
        require(each.bytes == scenario_.text.model->words()->token_bytes(each.token), delta.request, "a token's bytes");
        require(each.top.size() == each.top_bytes.size(), delta.request, "top tokens without bytes");
    }
    for (const token_report& each : delta.prompt) {
        require(c.prompt_scores < r.asked.prompt.size() && each.token == r.asked.prompt[c.prompt_scores], delta.request,
                "a score of another prompt token");
        ++c.prompt_scores;
        c.heard.prompt_logprobs.push_back(each.logprob);
        if (r.asked.request.report.top_logprobs > 0) c.heard.prompt_top.push_back(each.top);
    }
    c.heard.finish = delta.finish;
}

void delivery::finish(request& r, const request_usage& usage, bool failed) {
    require(r.begun && !r.over, r.asked.request.request, "an end before it was accepted, or a second one");
    r.over = true;
    r.failed = failed;
    r.usage = usage;
}

void delivery::at_rest(const observer& watch, const telemetry& numbers) const {
    if (scenario_.node.text && numbers.requests_rejected != refused - left_early)
        throw broken_node("requests_total: rejected ones don't add up");
    for (const auto& [id, r] : requests_) {
        require(r.over, request_id{id}, "it never heard an end");
        if (r.begun) check_answer(r, watch);
    }
}

void delivery::check_answer(const request& r, const observer& watch) const {
    const request_id id = r.asked.request.request;
    bool cancelled = false, broken = false;
    std::uint64_t generated = 0, replayed = 0;
    for (std::uint32_t i = 0; i < r.asked.request.n; ++i) {
        const choice_record& c = watch.choices.at({id.value, i});
        cancelled |= c.got.finish == finish_reason::cancelled;
        broken |= c.got.finish == finish_reason::error;
        generated += c.usage.generated.value;
        replayed += c.usage.replayed.value;
        check_choice(r, i, watch);
    }
    require(r.failed == (r.cancelled || broken), id, r.failed ? "it failed and nothing went wrong" : "it failed and wasn't told");
    require(!cancelled || r.cancelled, id, "a choice was cancelled and nobody had asked");
    if (r.failed) require((r.status == 499) == r.cancelled, id, "status " + std::to_string(r.status));
    const choice_record& first = watch.choices.at({id.value, 0});
    require(r.usage.prompt_tokens == r.asked.prompt.size() && r.usage.completion_tokens == generated &&
                r.usage.replayed_tokens == replayed && r.usage.cached_tokens == first.usage.cached.value,
            id, "O2: usage");
    require((r.usage.source == "device") == (r.usage.cached_tokens > 0), id, "O2: the source of its cached tokens");
}

// Whole when nothing went wrong, else a beginning.
void delivery::check_choice(const request& r, std::uint32_t index, const observer& watch) const {
    const request_id id = r.asked.request.request;
    const choice_record& c = watch.choices.at({id.value, index});
    const auto heard = r.choices.find(index);
    static const choice nothing;
    const choice& h = heard == r.choices.end() ? nothing : heard->second;
    const bool part = r.cancelled || c.got.finish == finish_reason::error;
    const std::string which = "choice " + std::to_string(index) + ": ";
    if (!part) require(h.heard.finish == c.got.finish, id, which + "another finish reason");
    std::string fault = compare(h.heard, c.got, part);
    require(fault.empty(), id, which + fault);
    const std::string echoed = r.asked.request.echo ? expected_text(scenario_.text, r.asked.prompt, {}) : "";
    const std::string wanted = expected_text(scenario_.text, c.got.tokens, r.asked.request.stop);
    const std::string all = echoed + wanted;
    if (part) require(all.starts_with(h.text), id, which + "other text");
    else require(h.text == all, id, which + "the text is \"" + h.text + "\" instead of \"" + all + "\"");
}

}  // namespace fermata::simulation

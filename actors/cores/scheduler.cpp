// Events from outside, ends of sequences, time.
#include "actors/cores/scheduler.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fermata {

namespace {

void require(bool holds, const std::string& text) {
    if (!holds) throw std::invalid_argument(text);
}

std::string seconds(time_ns duration) { return std::to_string(duration / 1'000'000'000) + " s"; }

}  // namespace

scheduler::scheduler(scheduler_options options, std::shared_ptr<const program_view> view)
    : options_(std::move(options)),
      fresh_(options_.max_concurrency),
      lanes_(options_.max_concurrency),
      view_(std::move(view)) {
    require(options_.max_concurrency >= 1, "max-concurrency must be at least 1");
    require(options_.page_tokens >= 1, "page-size must be at least 1 token");
    require(options_.prefill_chunk_tokens >= 1, "prefill-chunk must be at least 1 token");
    require(options_.batch_tokens > options_.max_concurrency,
            "batch-tokens (" + std::to_string(options_.batch_tokens) + ") must be more than max-concurrency (" +
                std::to_string(options_.max_concurrency) + "): every lane decodes one token and a prefill needs one");
    require(options_.tau_low >= 0 && options_.tau_admit <= options_.tau_high,
            "tau-low must not be negative and tau-admit not above tau-high");
    if (view_) {
        room_ = view_->room;
        room_known_ = true;
    }
    if (options_.numbers) {
        options_.numbers->queue_limit = options_.max_pending;
        options_.numbers->lanes_total = options_.max_concurrency;
    }
    update_gauges(0);  // nothing is under way, whatever a Scheduler before this one left in the gauges
}

void scheduler::on(const enqueue& event, time_ns now, commands& out) {
    refusal why = refuses();
    if (why == refusal::none && !table_.accept(event, now, options_.attention_only)) why = refusal::malformed;
    if (why != refusal::none) {
        const bool passes = why == refusal::queue_full || why == refusal::out_of_order;
        const std::uint32_t retry = passes ? 1 + pending_requests() / options_.max_concurrency : 0;
        out.emplace_back(enqueue_result{event.request, false, retry, why});
        return finish_event(now, out);
    }
    out.emplace_back(enqueue_result{event.request, true, 0, refusal::none});
    for (const ticket who : table_.of_request(event.request)) {
        sequence& s = *table_.find(who);
        fresh_.push(who);
        if (options_.request_tokens_max != 0 && s.usage.prompt.value > options_.request_tokens_max)
            end(s, finish_reason::error, failure_kind::capacity,
                "the prompt has " + std::to_string(s.usage.prompt.value) + " tokens; the page pool holds at most " +
                    std::to_string(options_.request_tokens_max) + " of one request",
                now);
    }
    finish_event(now, out);
}

refusal scheduler::refuses() {
    if (draining_) return refusal::shutting_down;
    if (broken_) return refusal::out_of_order;
    return pending_requests() >= options_.max_pending ? refusal::queue_full : refusal::none;
}

void scheduler::on(const cancel_request& event, time_ns now, commands& out) {
    for (const ticket who : table_.of_request(event.request))
        end(*table_.find(who), finish_reason::cancelled, failure_kind::none, {}, now);
    finish_event(now, out);
}

void scheduler::on(const drain& event, time_ns now, commands& out) {
    draining_ = true;
    grace_until_ = event.grace_until;
    finish_event(now, out);
}

void scheduler::on(const tick&, time_ns now, commands& out) {
    if (wake_set_ != 0 && wake_set_ <= now) wake_set_ = 0;
    finish_event(now, out);
}

bool scheduler::quiet() const { return table_.empty() && endings_.empty() && stage_ == stage::idle; }

scheduler::figures scheduler::look() const {
    figures f = figures_;
    f.lanes_used = lanes_.used();
    f.queued = fresh_.size();
    f.paused = paused_.size();
    f.live = table_.size();
    f.turns = turn_;
    f.waiting = stage_ != stage::idle;
    return f;
}

// Every event ends here. The next plan goes out before the outputs, so the device doesn't wait for text.
void scheduler::finish_event(time_ns now, commands& out, bool turn_was_open) {
    expire(now);
    if (stage_ == stage::idle && (!turn_was_open || !endings_.empty())) open_turn(now, out);
    if (!pending_outputs_.empty()) out.emplace_back(outputs{std::exchange(pending_outputs_, {})});
    if (draining_ && !drained_sent_ && quiet()) {
        drained_sent_ = true;
        out.emplace_back(drained{cut_short_});
    }
    set_wake(now, out);
    update_gauges(now);
}

void scheduler::expire(time_ns now) {
    while (const auto due = table_.earliest_deadline()) {
        if (due->first > now) break;
        end_for_time(due->second, failure_kind::deadline, "the request's deadline passed", now);
    }
    while (const auto late = longest_queued()) {
        if (table_.find(*late)->accepted_at + options_.pending_timeout > now) break;
        end_for_time(*late, failure_kind::queue_timeout,
                     "waited longer than pending-timeout (" + seconds(options_.pending_timeout) + ") for a lane", now);
    }
    for (const ticket who : std::vector<ticket>(residents_)) {
        const sequence& s = *table_.find(who);
        if (s.now == phase::copying && s.copying_since + options_.copy_timeout <= now)
            end_for_time(who, failure_kind::internal,
                         "a copy of context did not complete within " + seconds(options_.copy_timeout), now);
    }
    if (draining_ && now >= grace_until_ && !table_.empty()) {
        cut_short_ += static_cast<std::uint32_t>(table_.requests());
        fail_all(failure_kind::shutting_down, "the server is shutting down", now);
    }
}

// The oldest request whose bind isn't under way.
std::optional<ticket> scheduler::longest_queued() const {
    for (const ticket who : fresh_.tickets())
        if (table_.find(who)->now == phase::queued) return who;
    return std::nullopt;
}

void scheduler::end_for_time(ticket who, failure_kind why, std::string text, time_ns now) {
    end(*table_.find(who), finish_reason::error, why, std::move(text), now);
}

void scheduler::fail_all(failure_kind why, const std::string& text, time_ns now) {
    std::vector<ticket> all;
    for (const auto& each : table_) all.push_back(each.first);
    for (const ticket who : all) end(*table_.find(who), finish_reason::error, why, text, now);
}

// Ends a sequence from outside of Program, at any stage. What Program holds of it goes with the next plan; its lane
// is free once that plan is answered.
void scheduler::end(sequence& s, finish_reason finish, failure_kind failure, std::string text, time_ns) {
    row_result row;
    row.who = s.who;
    row.frontier = s.frontier;
    row.generated = s.usage.generated;
    row.finish = finish;
    row.error = std::move(text);
    publish(s, std::move(row), failure);
    if (s.resident() || s.now == phase::binding || s.now == phase::paused) endings_.push_back({s.who, s.where, false});
    forget(s);
}

void scheduler::publish(const sequence& s, row_result row, failure_kind failure) {
    choice_output output;
    output.request = s.request;
    output.choice = s.choice;
    output.failure = failure;
    if (row.finish != finish_reason::none) output.usage = std::make_shared<const sequence_usage>(s.usage);
    if (options_.numbers && row.finish != finish_reason::none) count_outcome(s.request, row.finish);
    output.row = std::move(row);
    pending_outputs_.push_back(std::move(output));
}

// A request counts once, when its last choice ends, as the worst that became of any of them. (finish_reason is ordered
// so.)
void scheduler::count_outcome(request_id request, finish_reason finish) {
    finish_reason& worst = outcomes_[request];
    worst = std::max(worst, finish);
    if (table_.of_request(request).size() > 1) return;
    telemetry& n = *options_.numbers;
    switch (worst) {
        case finish_reason::stop: ++n.requests_stop; break;
        case finish_reason::length: ++n.requests_length; break;
        case finish_reason::cancelled: ++n.requests_cancelled; break;
        default: ++n.requests_failed; break;
    }
    outcomes_.erase(request);
}

// Drops the record from every table. `s` is gone afterwards.
void scheduler::forget(sequence& s) {
    const ticket who = s.who;
    end_permit(s);
    fresh_.remove(who);
    paused_.remove(who);
    std::erase(residents_, who);
    table_.erase(who);
}

// Requests with a choice that was never bound; counted again only when the queue changed.
std::uint32_t scheduler::pending_requests() {
    if (pending_version_ == fresh_.version()) return pending_;
    pending_version_ = fresh_.version();
    pending_ = 0;
    request_id last{};
    for (const ticket who : fresh_.tickets()) {
        const request_id request = table_.find(who)->request;
        if (pending_ == 0 || request != last) ++pending_;
        last = request;
    }
    return pending_;
}

void scheduler::set_wake(time_ns now, commands& out) {
    time_ns earliest = 0;
    const auto consider = [&](time_ns when) {
        if (when != 0 && (earliest == 0 || when < earliest)) earliest = when;
    };
    if (const auto due = table_.earliest_deadline()) consider(due->first);
    if (const auto first = longest_queued()) consider(table_.find(*first)->accepted_at + options_.pending_timeout);
    for (const ticket who : residents_)
        if (const sequence& s = *table_.find(who); s.now == phase::copying)
            consider(s.copying_since + options_.copy_timeout);
    if (draining_ && !table_.empty()) consider(grace_until_);
    if (earliest == 0 || (wake_set_ > now && wake_set_ <= earliest)) return;
    wake_set_ = earliest;
    out.emplace_back(wake_at{earliest});
}

void scheduler::update_gauges(time_ns now) {
    if (!options_.numbers) return;
    telemetry& n = *options_.numbers;
    std::int64_t prefill = 0, decode = 0, replay = 0, copying = 0;
    for (const ticket who : residents_) {
        const sequence& s = *table_.find(who);
        if (s.now == phase::copying) ++copying;
        else if (s.now == phase::decode) ++decode;
        else if (s.usage.pauses > 0 && s.recovering) ++replay;
        else ++prefill;
    }
    n.requests_queued = static_cast<std::int64_t>(fresh_.size());
    n.requests_waiting_source = copying;
    n.requests_prefill = prefill;
    n.requests_decode = decode;
    n.requests_replay = replay;
    n.requests_paused = static_cast<std::int64_t>(paused_.size());
    n.queue_length = static_cast<std::int64_t>(pending_requests());
    n.lanes_used = lanes_.used();
    if (table_.empty()) n.work_since_ns = 0;
    else if (n.work_since_ns == 0) n.work_since_ns = now;
}

}  // namespace fermata

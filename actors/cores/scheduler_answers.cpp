// What Program's answers change: lanes, phases, usage, outputs.
#include <algorithm>
#include <utility>

#include "actors/cores/scheduler.hpp"

namespace fermata {

namespace {

failure_kind failure_of(const row_result& row) {
    if (row.finish != finish_reason::error) return failure_kind::none;
    return row.failure == failure_kind::none ? failure_kind::internal : row.failure;
}

}  // namespace

void scheduler::on(const cycle_done& event, time_ns now, commands& out) {
    if (stage_ != stage::running || event.cycle.value != turn_) return;  // of another turn (D6)
    stage_ = stage::idle;
    if (event.view) view_ = event.view;
    take_room(event.room, event.copies_in_flight);
    if (event.device_failed) {
        broken_ = true;
        fail_all(failure_kind::internal, event.error.empty() ? "the device failed" : event.error, now);
        for (const ending& each : endings_)
            if (each.where) lanes_.release(*each.where);
        endings_.clear();
        return finish_event(now, out);
    }
    bool moved = settle_endings() || !event.pauses.empty();
    for (const pause_result& each : event.pauses) take_pause(each);
    for (const shortage& each : event.shortages) take_shortage(each, now);
    for (const ticket who : residents_)
        if (sequence& s = *table_.find(who); s.short_turn != turn_) s.short_streak = s.pages_reported = 0;
    for (const bind_result& each : event.binds) moved |= take_bind(each, now);
    for (const row_result& each : event.rows) moved |= take_row(each, now);
    note_progress(moved || event.copies_in_flight > 0, now);
    finish_event(now, out);
}

void scheduler::on(const program_notice& event, time_ns now, commands& out) {
    if (event.view) view_ = event.view;
    take_room(event.room, event.copies_in_flight);
    for (const bind_result& each : event.binds) take_bind(each, now);
    capacity_event();
    finish_event(now, out);
}

// More pages that are free or may be freed is the mark of a real release; decoding only ever takes (E2).
void scheduler::take_room(const occupancy& room, std::uint32_t copies) {
    const std::uint32_t before = room_.pages_free + room_.pages_cached;
    if (room_known_ && room.pages_free + room.pages_cached > before) capacity_event();
    if (copies < copies_in_flight_) capacity_event();
    room_ = room;
    room_known_ = true;
    copies_in_flight_ = copies;
}

bool scheduler::settle_endings() {
    const std::size_t before = endings_.size();
    for (const ending& each : endings_)
        if (each.sent && each.where) lanes_.release(*each.where);
    std::erase_if(endings_, [](const ending& each) { return each.sent; });
    if (endings_.size() == before) return false;
    capacity_event();
    return true;
}

void scheduler::take_pause(const pause_result& result) {
    sequence* s = table_.find(result.who);
    if (!s) return;
    release_lane(*s);
    std::erase(residents_, s->who);
    s->first_unit_due = false;
    s->now = phase::paused;
    s->ledger = result.ledger;
    s->holds_token = result.decoding;
    s->frontier = token_pos(static_cast<std::uint32_t>(result.ledger.size()));
    s->target = result.decoding ? s->frontier : s->usage.prompt;
    s->source.reset();
    s->pages_reported = s->short_streak = 0;
    ++s->usage.pauses;
    ++figures_.pauses;
    if (options_.numbers) ++options_.numbers->preemptions_replay;
    paused_.push(s->who);
    capacity_event();
    s->tried_event = event_;  // its own release is no event for it (M4)
}

// True when the sequence got its lane.
bool scheduler::take_bind(const bind_result& result, time_ns now) {
    sequence* s = table_.find(result.who);
    if (!s || (s->now != phase::binding && s->now != phase::copying)) return false;
    switch (result.outcome) {
        case bind_outcome::bound:
        case bind_outcome::copying: take_bound(*s, result, now); return true;
        case bind_outcome::short_of_room: return bind_short(*s, now);
        case bind_outcome::stale:
            bind_undone(*s);
            if (++s->stale_binds >= 3) s->root_only = true;
            return false;
        case bind_outcome::refused: {
            const std::string text = "Program refused a bind: " + result.text;
            if (s->where) lanes_.release(*s->where), s->where.reset();
            end(*s, finish_reason::error, failure_kind::internal, text, now);
            return true;
        }
    }
    return false;
}

void scheduler::take_bound(sequence& s, const bind_result& result, time_ns now) {
    if (s.now == phase::binding) {
        residents_.insert(std::upper_bound(residents_.begin(), residents_.end(), s.who), s.who);
        if (s.begun) {
            paused_.remove(s.who);
        } else {
            s.begun = true;
            s.usage.queued_ns = s.planned_at - s.accepted_at;
            const std::uint32_t passed = fresh_.admitted(s.who, table_);
            figures_.bypasses += passed > 0;
            for (const ticket each : fresh_.tickets())
                figures_.overtaken_max = std::max(figures_.overtaken_max, table_.find(each)->overtaken);
            if (options_.numbers) {
                options_.numbers->queue.observe(s.usage.queued_ns);
                if (passed > 0) ++options_.numbers->bypasses;
            }
        }
    }
    s.pages_reported = s.short_streak = 0;
    s.first_unit_due = true;
    s.last_prefill = 2 * turn_;  // before those that ran in this turn, behind all others
    if (result.outcome == bind_outcome::copying) {
        s.now = phase::copying;
        s.copying_since = now;
        return;
    }
    s.stale_binds = 0;
    s.root_only = false;
    s.frontier = result.position;
    if (s.usage.pauses == 0) s.usage.cached = result.position;
    s.now = s.frontier >= s.target && s.holds_token ? phase::decode : phase::prefill;
}

// The bind didn't happen, or its copy failed: the sequence is where it was before.
void scheduler::bind_undone(sequence& s) {
    const bool was_copying = s.now == phase::copying;
    s.first_unit_due = false;
    release_lane(s);
    std::erase(residents_, s.who);
    end_permit(s);
    s.source.reset();
    if (s.begun && s.usage.pauses > 0) {
        s.now = phase::paused;
        paused_.push(s.who);
        return;
    }
    s.begun = false;
    s.now = phase::queued;
    if (was_copying) {
        fresh_.push(s.who);
        capacity_event();
    }
}

// F4, F7: first with Program's own figure, then (alone on the device) from the root, then never.
bool scheduler::bind_short(sequence& s, time_ns now) {
    const bool had_source = s.source.has_value();
    const bool second = s.short_streak > 1;
    const bool never = std::exchange(s.never_fits, false);
    s.reported_source = s.source;
    bind_undone(s);
    if (last_resort_ || never) {
        if (had_source) {
            s.root_only = true;
            s.pages_reported = 0;
            return true;
        }
        // Alone, and still something optional on the device: tried again with Program's own figure.
        if (never || (alone() && room_.pages_cached == 0)) {
            const std::string text = "needs " + std::to_string(s.pages_reported) + " pages for its next unit; the pool has " +
                                     std::to_string(room_.pages_total);
            if (s.now == phase::queued) end(s, finish_reason::error, failure_kind::capacity, text, now);
            else end(s, finish_reason::error, failure_kind::capacity, "can't be resumed: " + text, now);
            return true;
        }
    }
    if (second) s.tried_event = event_;
    return false;
}

void scheduler::take_shortage(const shortage& result, time_ns now) {
    sequence* s = table_.find(result.who);
    if (!s) return;
    s->pages_reported = std::max<std::uint32_t>(1, result.pages_needed);
    s->never_fits = result.never;
    s->short_turn = turn_;
    s->short_streak = s->expected_short ? std::max(s->short_streak, 1u) : s->short_streak + 1;
    if (result.never && s->resident())
        end(*s, finish_reason::error, failure_kind::capacity,
            "needs " + std::to_string(result.pages_needed) + " pages for its next unit; the pool has " +
                std::to_string(room_.pages_total),
            now);
}

// True when the row moved.
bool scheduler::take_row(const row_result& result, time_ns now) {
    sequence* s = table_.find(result.who);
    if (!s || !s->runnable()) return false;
    const bool was_prefill = s->now == phase::prefill;
    s->frontier = result.frontier;
    s->usage.replayed += result.replayed;
    s->usage.generated = result.generated;
    s->pages_reported = s->short_streak = 0;
    s->first_unit_due = false;
    s->parked_event = 0;
    if (was_prefill) s->last_prefill = 2 * turn_ + 1;
    if (result.token != no_token) note_token(*s, result, now);
    if (s->frontier >= s->usage.prompt) s->prompt_computed = true;
    if (result.token != no_token || (s->frontier >= s->target && s->holds_token)) s->now = phase::decode;
    const bool ended = result.finish != finish_reason::none;
    if (s->recovering && (result.computed > result.replayed || result.token != no_token || ended)) end_permit(*s);
    if (ended || result.token != no_token || !result.prompt_logprobs.empty() || !result.logits.empty())
        publish(*s, result, failure_of(result));
    if (ended) {  // Program has forgotten it already
        release_lane(*s);
        forget(*s);
        capacity_event();
    }
    return result.computed.value > 0 || ended;
}

void scheduler::note_token(sequence& s, const row_result&, time_ns now) {
    s.holds_token = true;
    if (s.first_token_at == 0) {
        s.first_token_at = now;
        s.usage.ttft_ns = now - s.accepted_at;
        if (options_.numbers) options_.numbers->ttft.observe(s.usage.ttft_ns);
    } else if (options_.numbers) {
        options_.numbers->inter_token.observe(now - s.last_token_at);
    }
    s.last_token_at = now;
}

// D4, last line of defence: exchanges that move nothing, again and again, end the youngest that stands in the way.
void scheduler::note_progress(bool moved, time_ns now) {
    barren_ = moved ? 0 : barren_ + 1;
    if (barren_ <= 4 * options_.max_concurrency + 8) return;
    barren_ = 0;
    const std::optional<ticket> stuck = !residents_.empty()       ? std::optional(residents_.back())
                                        : paused_.oldest()        ? paused_.oldest()
                                        : fresh_.empty()          ? std::nullopt
                                                                  : std::optional(fresh_.head());
    if (!stuck) return;
    ++figures_.watchdog_ends;
    end(*table_.find(*stuck), finish_reason::error, failure_kind::capacity,
        "no unit of it could run and nothing could be released for it", now);
}

void scheduler::release_lane(sequence& s) {
    if (s.where) lanes_.release(*s.where);
    s.where.reset();
}

void scheduler::end_permit(const sequence& s) {
    if (!paused_.release_permit(s.who)) return;
    if (sequence* live = table_.find(s.who)) live->recovering = false;
    capacity_event();
}

}  // namespace fermata

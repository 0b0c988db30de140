// One turn: who is tried, what room that takes, who gives way, and the plan (D1).
#include <algorithm>
#include <utility>

#include "actors/cores/pressure.hpp"
#include "actors/cores/scheduler.hpp"
#include "messages/paging.hpp"

namespace fermata {

namespace {

constexpr std::int64_t room_unknown = 1ll << 40;  // pages: before Program's first answer nothing is doubted

}  // namespace

void scheduler::open_turn(time_ns now, commands& out) {
    if (broken_ || (table_.empty() && endings_.empty())) return;
    ++turn_;
    draft_ = {};
    tries_.clear();
    victims_.reset();
    pause_for_.reset();
    restore_seen_ = tries_done_ = last_resort_ = false;
    proceed(now, out);
}

// Goes on where the turn stopped to ask ResourceManager.
void scheduler::proceed(time_ns now, commands& out) {
    if (pause_for_ && !table_.find(*pause_for_)) draft_.pauses.clear(), pause_for_.reset();  // it ended meanwhile
    if (!tries_done_ && choose_tries(out)) return;
    tries_done_ = true;
    if (settle_room(now, out)) return;
    send_plan(now, out);
}

// ---- who is tried ----

// True while ResourceManager is asked for a source.
bool scheduler::choose_tries(commands& out) {
    for (;;) {
        std::optional<ticket> who = restore_candidate();
        if (!who) who = fresh_candidate();
        if (!who) who = last_resort_candidate();
        if (!who) return false;
        tries_.push_back(*who);
        if (ask_source(*table_.find(*who), out)) return true;
    }
}

// The oldest paused one, once a capacity event (M4), while nobody holds the recovery permit (M5).
std::optional<ticket> scheduler::restore_candidate() {
    if (std::exchange(restore_seen_, true)) return std::nullopt;
    const auto who = paused_.oldest();
    if (!who || !paused_.permit_free()) return std::nullopt;
    const sequence& s = *table_.find(*who);
    if (s.tried_event >= event_) return std::nullopt;
    for (const sequence* each : residents())
        if (each->who < *who && each->short_streak > 0) return std::nullopt;
    if (lanes_.free() > 0) return who;
    const auto way = scheduling::relieve_paused(s, residents());
    if (way.what == scheduling::relief::pause) pause_for(s, way.whom);
    return std::nullopt;
}

std::optional<ticket> scheduler::fresh_candidate() {
    if (fresh_.empty() || lanes_.free() <= tries_.size() || !draft_.pauses.empty()) return std::nullopt;
    if (anyone_short() || !gate_open()) return std::nullopt;
    std::vector<ticket> taken;
    for (const ticket who : tries_)
        if (const sequence* s = table_.find(who); s && s->now == phase::queued) taken.push_back(who);
    return fresh_.next(taken, table_, [&](const sequence& s) {
        if (s.tried_event >= event_) return false;
        if (!s.leader) return true;
        const sequence* leader = table_.find(*s.leader);
        return !leader || leader->prompt_computed || leader->now == phase::paused;
    });
}

// D4: nothing runs and nothing will by itself. The oldest one gets everything that is optional, or ends.
std::optional<ticket> scheduler::last_resort_candidate() {
    if (!tries_.empty() || !alone() || !draft_.pauses.empty()) return std::nullopt;
    const auto who = paused_.oldest() ? paused_.oldest() : fresh_.empty() ? std::nullopt : std::optional(fresh_.head());
    if (who) last_resort_ = true;
    return who;
}

// True when the question went out; false: the source is known (root).
bool scheduler::ask_source(sequence& s, commands& out) {
    const bool resume = s.now == phase::paused;
    const bool scores_prompt = s.spec->report.prompt_logprobs || s.spec->report.prompt_logits;
    const token_run& tokens = resume ? s.ledger : s.spec->prompt;
    auto limit = static_cast<std::uint32_t>(tokens.size());
    if (!s.holds_token) limit = std::min(limit, s.usage.prompt.value - 1);  // something is left to compute
    if (scores_prompt && !s.prompt_computed) limit = resume ? limit : 0;
    s.source.reset();
    s.source_tokens = token_pos(0);
    if (s.root_only || limit == 0 || !view_ || view_->points.empty()) return false;
    asking_ = s.who;
    stage_ = stage::choosing_source;
    out.emplace_back(choose_source{cycle_no{turn_}, s.who, tokens, token_pos(limit), s.spec->session, view_});
    return true;
}

void scheduler::on(const source_chosen& event, time_ns now, commands& out) {
    if (stage_ != stage::choosing_source || event.turn.value != turn_ || event.who != asking_) return;
    stage_ = stage::idle;
    asking_.reset();
    if (sequence* s = table_.find(event.who)) {
        s->source = event.source;
        s->source_tokens = event.source ? event.position : token_pos(0);
        if (s->source != s->reported_source) s->pages_reported = 0;
    }
    proceed(now, out);
    finish_event(now, out, true);
}

// ---- room ----

// Asks for victims until what is planned fits or is given up. True while ResourceManager is asked.
bool scheduler::settle_room(time_ns now, commands& out) {
    std::erase_if(tries_, [&](ticket who) { return !table_.find(who); });  // ended while we asked
    const bool optional_left = view_ && !view_->points.empty();
    while (room_known_) {
        const std::int64_t missing = pages_missing();
        const std::uint32_t slots = slots_missing();
        if (!victims_ && optional_left && (missing > 0 || slots > 0))
            return ask_victims(static_cast<std::uint32_t>(std::max<std::int64_t>(missing, 0)), slots, false, out);
        const auto reserve = static_cast<std::int64_t>(options_.tau_low * room_.pages_total);
        if (!victims_ && missing + reserve > 0 && room_.pages_cached > 0 && optional_left && barren_view_ != view_)
            return ask_victims(static_cast<std::uint32_t>(missing + reserve + reserve / 2), 0, true, out);  // in the background (Q1)
        const auto rest = cover_residents(room_.pages_free + (victims_ ? victims_->pages : 0), now);
        if (rest && fit_tries(*rest)) break;
        victims_.reset();  // what was given up needs no room: the question changes
    }
    if (!victims_) return false;
    draft_.drops = victims_->drops;
    if (!victims_->enough) barren_view_ = view_;
    return false;
}

// What the units and binds of this turn take beyond the free pages. May be negative.
std::int64_t scheduler::pages_missing() const {
    std::int64_t need = 0, again = 0;
    for (const sequence* each : residents()) {
        if (!in_plan(*each)) continue;
        need += unit_pages(*each);
        if (each->short_streak > 1) again += unit_pages(*each);  // the forecast is wrong somewhere
    }
    for (const ticket who : tries_) need += bind_pages(*table_.find(who));
    const std::int64_t missing = need - static_cast<std::int64_t>(room_.pages_free);
    return again > 0 ? std::max(missing, again) : missing;
}

std::uint32_t scheduler::slots_missing() const {
    if (options_.attention_only) return 0;
    const auto needed = static_cast<std::uint32_t>(tries_.size());  // one image a bind
    return needed > room_.state_slots_free ? needed - room_.state_slots_free : 0;
}

bool scheduler::ask_victims(std::uint32_t pages, std::uint32_t slots, bool background, commands& out) {
    background_ = background;
    choose_victims question;
    question.turn = cycle_no{turn_};
    question.pages = pages;
    question.state_slots = slots;
    for (const ticket who : tries_)
        if (const auto& source = table_.find(who)->source) question.keep.push_back(*source);
    kept_ = question.keep.size();
    question.view = asked_view_ = view_;
    stage_ = stage::choosing_victims;
    out.emplace_back(std::move(question));
    return true;
}

void scheduler::on(const victims_chosen& event, time_ns now, commands& out) {
    if (stage_ != stage::choosing_victims || event.turn.value != turn_) return;
    stage_ = stage::idle;
    if (std::exchange(asked_view_, nullptr) == view_) victims_ = event;  // else the picture moved on: a void quote (K10)
    proceed(now, out);
    finish_event(now, out, true);
}

// Residents come first, recovering ones before ticket order. A row that Program found short and that stays uncovered
// goes down the ladder; one a turn, then Program's facts are asked again. Returns what is left; nothing when the tries
// were given up for it first, and their sources with them.
std::optional<std::int64_t> scheduler::cover_residents(std::int64_t pages, time_ns now) {
    bool relieved = !draft_.pauses.empty();
    // Found short though the figures said that it fits: with cache left to drop, that is tried first (M1).
    const bool cache_left = victims_ && (victims_->enough || !victims_->drops.empty());
    for (sequence* s : service_order()) {
        if (!in_plan(*s)) continue;
        const std::int64_t need = unit_pages(*s);
        const bool beyond = need > pages;
        if (s->short_streak > 0 && !relieved && (beyond || (s->short_streak > 1 && !cache_left))) {
            if (!tries_.empty() || (victims_ && kept_ > 0)) {
                tries_.clear();
                return std::nullopt;
            }
            if ((relieved = relieve(*s, beyond, now))) {
                pages = 0;
                continue;
            }
        }
        pages = std::max<std::int64_t>(0, pages - need);
    }
    return pages;
}

// `beyond`: by the figures its unit needs more than is free or may be freed. False when nothing was done: alone, with
// figures that say it fits, it is tried again; only alone and beyond all there is does it end (F7).
bool scheduler::relieve(sequence& s, bool beyond, time_ns now) {
    const auto way = scheduling::relieve_resident(s, residents());
    if (way.what == scheduling::relief::pause) {
        pause_for(s, way.whom);
        return true;
    }
    if (way.what == scheduling::relief::wait || copies_in_flight_ > 0 || !endings_.empty()) {
        s.parked_event = event_;
        return true;
    }
    if (!beyond) return false;
    end(s, finish_reason::error, failure_kind::capacity,
        "at token " + std::to_string(s.frontier.value) + ": needs " + std::to_string(s.pages_reported) +
            " more pages and nothing else can be released from the pool of " + std::to_string(room_.pages_total),
        now);
    return true;
}

void scheduler::pause_for(const sequence& s, ticket whom) {
    draft_.pauses.push_back(whom);
    pause_for_ = s.who;
}

// Keeps the tries that fit into `pages`. False when one was given up, so the question for victims may shrink.
bool scheduler::fit_tries(std::int64_t pages) {
    std::int64_t slots = room_.state_slots_free + (victims_ ? victims_->state_slots : 0);
    for (std::size_t i = 0; i < tries_.size(); ++i) {
        sequence& s = *table_.find(tries_[i]);
        const std::int64_t need = bind_pages(s);
        if (need <= pages && (options_.attention_only || slots > 0)) {
            pages -= need;
            --slots;
            continue;
        }
        if (i == 0 && alone()) {
            last_resort_ = true;
            tries_.resize(1);
            if (!s.source && victims_ && kept_ > 0) return false;  // the sources of the others may go too
            if (!s.source) return true;  // everything optional goes; Program has the last word
            s.root_only = true;
            s.source.reset();
            s.source_tokens = token_pos(0);
            s.pages_reported = 0;
            return false;
        }
        give_up_try(i);
        return false;
    }
    return true;
}

// No room for it now. A paused one without an older resident moves the youngest borrower aside instead (M4).
void scheduler::give_up_try(std::size_t index) {
    sequence& s = *table_.find(tries_[index]);
    tries_.erase(tries_.begin() + static_cast<std::ptrdiff_t>(index));
    if (s.now == phase::paused) {
        const auto way = scheduling::relieve_paused(s, residents());
        if (way.what == scheduling::relief::pause && draft_.pauses.empty()) {
            pause_for(s, way.whom);
            std::erase_if(tries_, [&](ticket who) { return table_.find(who)->now == phase::queued; });
            return;
        }
    }
    s.tried_event = event_;
}

// ---- facts and forecasts ----

// Q1: above tau_high only a pause could make room, so new turns wait until residents have shrunk below tau_admit.
bool scheduler::gate_open() {
    if (residents_.empty() || room_.pages_total == 0) return !(gate_closed_ = false);
    double live = room_.pages_active;
    if (!gate_closed_)
        for (const sequence* each : residents())
            if (each->runnable()) live += unit_pages(*each);
    const double share = live / room_.pages_total;
    gate_closed_ = gate_closed_ ? share >= options_.tau_admit : share >= options_.tau_high;
    return !gate_closed_;
}

bool scheduler::anyone_short() const {
    for (const sequence* each : residents())
        if (each->short_streak > 0) return true;
    return false;
}

bool scheduler::copying() const {
    for (const sequence* each : residents())
        if (each->now == phase::copying) return true;
    return false;
}

// Pages the next unit of a resident takes from the pool. The permits of a bind hold their own (N1, M5).
std::uint32_t scheduler::unit_pages(const sequence& s) const {
    if (s.pages_reported > 0) return s.pages_reported;
    if (s.permitted()) return 0;
    const std::uint32_t step = s.now == phase::decode ? 1 : options_.prefill_chunk_tokens;
    const token_pos until = s.now == phase::decode ? s.frontier + token_pos(1)
                                                   : std::min(s.target, s.frontier + token_pos(step));
    const std::uint32_t held = pages_for(s.frontier.value, options_.page_tokens);
    const std::uint32_t wanted = pages_for(until.value, options_.page_tokens);
    return wanted > held ? wanted - held : 0;
}

// Pages a bind takes: a first bind with its first unit, a resume with the whole recovery permit. A partly used page of
// the source is copied.
std::uint32_t scheduler::bind_pages(const sequence& s) const {
    if (s.pages_reported > 0) return s.pages_reported;
    const token_pos chunk(options_.prefill_chunk_tokens);
    const token_pos until = s.now != phase::paused ? std::min(s.target, s.source_tokens + chunk)
                            : s.holds_token        ? s.target + token_pos(1)
                                                   : std::min(s.target, s.frontier + chunk);
    return pages_for(until.value, options_.page_tokens) - s.source_tokens.value / options_.page_tokens;
}

std::vector<const scheduler::sequence*> scheduler::residents() const {
    std::vector<const sequence*> result;
    result.reserve(residents_.size());
    for (const ticket who : residents_) result.push_back(table_.find(who));
    return result;
}

// Recovering first, then ticket order (D1).
std::vector<scheduler::sequence*> scheduler::service_order() {
    std::vector<sequence*> result;
    result.reserve(residents_.size());
    for (const ticket who : residents_) result.push_back(table_.find(who));
    std::stable_partition(result.begin(), result.end(), [](const sequence* s) { return s->recovering; });
    return result;
}

// Gets a unit in this turn.
bool scheduler::in_plan(const sequence& s) const {
    return s.runnable() && (s.parked_event == 0 || s.parked_event < event_) &&
           std::find(draft_.pauses.begin(), draft_.pauses.end(), s.who) == draft_.pauses.end();
}

// ---- the plan ----

void scheduler::send_plan(time_ns now, commands& out) {
    std::erase_if(tries_, [&](ticket who) { return !table_.find(who); });
    std::erase_if(draft_.pauses, [&](ticket who) { return !table_.find(who); });
    add_units();
    add_binds(now);
    for (ending& each : endings_) {
        draft_.cancels.push_back(each.who);
        each.sent = true;
    }
    const bool empty = draft_.cancels.empty() && draft_.drops.empty() && draft_.pauses.empty() &&
                       draft_.binds.empty() && draft_.decodes.empty() && draft_.prefills.empty();
    if (empty) {
        // Parked rows wait for someone else's release; without anyone else they are tried again.
        if (copies_in_flight_ > 0 || copying() || table_.empty()) return;
        capacity_event();
        note_progress(false, now);
        return open_turn(now, out);
    }
    if (options_.numbers && victims_) {
        telemetry& n = *options_.numbers;
        (background_ ? n.reclaims_records_background : n.reclaims_records_shortage) += draft_.drops.size();
        (background_ ? n.reclaims_pages_background : n.reclaims_pages_shortage) += victims_->pages;
    }
    draft_.cycle = cycle_no{turn_};
    stage_ = stage::running;
    ++figures_.plans;
    out.emplace_back(std::move(draft_));
}

void scheduler::add_units() {
    std::vector<scheduling::decode_demand> decodes;
    std::vector<scheduling::prefill_demand> prefills;
    for (sequence* s : service_order()) {
        s->expected_short = false;
        if (!in_plan(*s)) continue;
        if (s->now == phase::decode) decodes.push_back({s->who, unit_pages(*s)});
        else prefills.push_back({s->who, s->target - s->frontier, s->last_prefill, s->frontier, s->permitted(), s->pages_reported});
    }
    std::int64_t pages = std::int64_t{room_.pages_free} + (victims_ ? victims_->pages : 0);
    for (const ticket who : tries_) {
        sequence& s = *table_.find(who);
        s.expected_short = false;
        pages -= bind_pages(s);  // binds come before units, first units of binds run on their permits
        if (s.source_tokens < s.target)
            prefills.push_back({who, s.target - s.source_tokens, 2 * turn_, s.source_tokens, true, 0});
        else decodes.push_back({who, 0});  // an exact hit of a paused row: its token is fed at once
    }
    const scheduling::unit_budget budget{options_.batch_tokens, options_.prefill_chunk_tokens, options_.page_tokens,
                                         room_known_ ? std::max<std::int64_t>(0, pages) : room_unknown};
    for (const ticket who : scheduling::plan_units(decodes, prefills, budget, draft_))
        table_.find(who)->expected_short = true;
}

void scheduler::add_binds(time_ns now) {
    for (const ticket who : tries_) {
        sequence& s = *table_.find(who);
        bind_order order;
        order.who = who;
        if (s.now == phase::paused) {
            s.recovering = true;
            paused_.hold_permit(who);
        } else {
            order.spec = s.spec;
            s.planned_at = now;
        }
        s.where = lanes_.take(who);
        order.where = *s.where;
        order.source = s.source;
        order.source_tokens = s.source_tokens;
        const std::uint32_t left = s.source_tokens < s.target ? (s.target - s.source_tokens).value : 1;
        order.first_unit_tokens = token_pos(std::min(left, options_.prefill_chunk_tokens));
        s.now = phase::binding;
        draft_.binds.push_back(std::move(order));
    }
}

}  // namespace fermata

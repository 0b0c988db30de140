#include "observer.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace fermata::simulation {

namespace {

std::string name(const observer::key& k) { return "request " + std::to_string(k.first) + "." + std::to_string(k.second); }

}  // namespace

choice_record* observer::of(ticket who) {
    const auto it = tickets_.find(who);
    return it == tickets_.end() ? nullptr : &choices.at(it->second);
}

void observer::on_send(const envelope& m) {
    fold(static_cast<std::uint64_t>(m.due));
    fold(static_cast<std::uint64_t>(m.from) * 64 + static_cast<std::uint64_t>(m.to) * 8 + m.message.index());
    on_question(m);
    if (const auto* request = std::get_if<enqueue>(&m.message)) announced_[request->request.value] = *request;
    if (const auto* plan = std::get_if<cycle_plan>(&m.message)) on_plan(*plan);
    if (const auto* result = std::get_if<enqueue_result>(&m.message)) {
        const auto found = announced_.find(result->request.value);
        require(found != announced_.end(), "an answer to a request that was not sent");
        rejected += !result->accepted;
        if (result->accepted)
            for (std::uint32_t i = 0; i < found->second.choices.size(); ++i) {
                choice_record& c = choices[{result->request.value, i}];
                c.spec = found->second.choices[i];
                c.accepted_at = node_.now();
                c.deadline = found->second.deadline;
                arrival.push_back({result->request.value, i});
            }
        announced_.erase(found);
    }
    if (const auto* rows = std::get_if<outputs>(&m.message)) on_outputs(*rows);
    if (const auto* order = std::get_if<copy_order>(&m.message); order && m.to == peer::transfer) on_copy(*order);
    if (const auto* done = std::get_if<cycle_done>(&m.message)) check_view(done->view.get());
    if (const auto* notice = std::get_if<program_notice>(&m.message)) check_view(notice->view.get());
}

// A page that a copy under way reads isn't written, one that it writes is touched by no other.
void observer::on_copy(const copy_order& order) {
    ++copies;
    for (const auto& [id, other] : copies_running_)
        for (const page_copy& mine : order.pages)
            for (const page_copy& theirs : other.pages)
                require(mine.pool != theirs.pool ||
                            (mine.to != theirs.to && mine.to != theirs.from && mine.from != theirs.to),
                        "N4: two copies under way meet in a page");
    copies_running_[order.copy] = order;
}

// Pages that copies read count as held by others, and none that they write is part of a point.
void observer::check_view(const program_view* view) const {
    if (!view) return;
    for (const point_view& point : view->points)
        for (std::size_t i = 0; i < point.pages.size(); ++i) {
            std::uint32_t readers = 0;
            for (const auto& [id, order] : copies_running_)
                for (const page_copy& each : order.pages) {
                    readers += each.from == point.pages[i];
                    require(each.to != point.pages[i], "N2: a page still being written is offered as context");
                }
            require(point.other_holders[i] >= readers, "N4: a page with a reader is shown as free to go");
        }
}

void observer::learn(const bus_message& message) {
    if (const auto* a = std::get_if<checkpoint_published>(&message)) worth_[a->checkpoint] = {heirs_.contains(a->from), ++heard_};
    if (const auto* b = std::get_if<checkpoint_adopted>(&message)) {
        if (const auto it = worth_.find(b->checkpoint); it != worth_.end()) it->second = {true, ++heard_};
        heirs_.insert(b->by);
    }
}

// One question or plan of the Scheduler at a time; ResourceManager's answers are checked against the question.
void observer::on_question(const envelope& m) {
    if (m.from == peer::scheduler && (m.to == peer::resources || m.to == peer::program)) {
        ++exchanges_;
        require(exchanges_ == 1, "D6: a second decision while an answer is awaited");
        if (const auto* a = std::get_if<choose_source>(&m.message)) source_question_ = *a;
        if (const auto* b = std::get_if<choose_victims>(&m.message)) victims_question_ = *b;
    }
    if (const auto* point = std::get_if<checkpoint_published>(&m.message)) published_[point->checkpoint] = *point;
    if (const auto* a = std::get_if<source_chosen>(&m.message)) on_source(*a);
    if (const auto* b = std::get_if<victims_chosen>(&m.message)) on_victims(*b);
}

void observer::on_source(const source_chosen& a) const {
    const choose_source& q = *source_question_;
    require(a.turn == q.turn && a.who == q.who, "an answer to another question");
    if (!a.source) return require(a.position.value == 0, "root has position 0");
    const auto& points = q.view->points;
    require(std::any_of(points.begin(), points.end(), [&](const point_view& p) { return p.checkpoint == a.source; }),
            "F1: a source that isn't in the picture");
    const checkpoint_published& point = published_.at(*a.source);
    const std::uint32_t n = a.position.value;
    require(n > 0 && n <= q.limit.value && n <= point.coverage.value, "A3: a position beyond match, coverage or limit");
    require(!point.exact_only || n == point.coverage.value, "A3: an exact point at another position");
    require(q.tokens.part(0, n) == point.tokens.part(0, n), "A4: a source with other tokens");
}

void observer::on_victims(const victims_chosen& a) const {
    const choose_victims& q = *victims_question_;
    const auto frees = [&](auto&& goes) {
        std::map<page_id, bool> all;  // free afterwards
        std::uint32_t pages = 0, slots = 0;
        for (const point_view& p : q.view->points) {
            slots += goes(p.checkpoint) && p.exact_only;
            for (std::size_t i = 0; i < p.pages.size(); ++i) {
                auto [it, first] = all.emplace(p.pages[i], true);
                it->second = it->second && goes(p.checkpoint) && p.other_holders[i] == 0;
            }
        }
        for (const auto& each : all) pages += each.second;
        return std::pair{pages, slots};
    };
    const auto in = [](const std::vector<checkpoint_id>& list, checkpoint_id id) {
        return std::find(list.begin(), list.end(), id) != list.end();
    };
    for (const checkpoint_id id : a.drops) require(!in(q.keep, id), "K3: a source being bound is offered");
    const auto [pages, slots] = frees([&](checkpoint_id id) { return in(a.drops, id); });
    require(pages == a.pages && slots == a.state_slots, "K2: the victims free something else than promised");
    const auto [pages_most, slots_most] = frees([&](checkpoint_id id) { return !in(q.keep, id); });
    require(a.enough == (pages >= q.pages && slots >= q.state_slots), "K2: enough or not?");
    require(a.enough == (pages_most >= q.pages && slots_most >= q.state_slots), "K2: more could have been offered");
    if (!a.enough) return;
    // K4: nothing goes that something worth less could stand in for, and nothing that isn't needed.
    const auto worth = [&](checkpoint_id id) {
        const auto it = worth_.find(id);
        return it == worth_.end() ? std::pair{false, heard_ + 1} : it->second;
    };
    const auto enough_without = [&](checkpoint_id spared, std::optional<checkpoint_id> instead) {
        const auto [p, s] = frees([&](checkpoint_id id) { return id == instead || (id != spared && in(a.drops, id)); });
        return p >= q.pages && s >= q.state_slots;
    };
    for (const checkpoint_id gone : a.drops) {
        require(!enough_without(gone, std::nullopt), "K6: a needless victim");
        for (const point_view& other : q.view->points)
            if (!in(a.drops, other.checkpoint) && !in(q.keep, other.checkpoint) && worth(other.checkpoint) < worth(gone))
                require(!enough_without(gone, other.checkpoint), "K4: something worth less would have done");
    }
}

void observer::on_deliver(const envelope& m) {
    if (m.to == peer::scheduler && (std::holds_alternative<cycle_done>(m.message) || m.from == peer::resources)) --exchanges_;
    if (m.to == peer::resources) learn(m.message);
    if (const auto* copied = std::get_if<copy_done>(&m.message); copied && m.to == peer::program)
        copies_running_.erase(copied->copy);
    if (const auto* done = std::get_if<cycle_done>(&m.message)) on_done(*done);
    if (const auto* notice = std::get_if<program_notice>(&m.message)) {
        for (const bind_result& each : notice->binds) {
            require(each.outcome == bind_outcome::bound || each.outcome == bind_outcome::stale, "a strange notice");
            copying_.erase(each.who);
            stale += each.outcome == bind_outcome::stale;
            choice_record* c = of(each.who);
            if (!c) continue;
            if (each.outcome == bind_outcome::stale) {
                c->bound = c->ran;
                if (recovering_ == each.who) recovering_.reset(), paused_.insert(each.who);
            }
            c->running = each.outcome == bind_outcome::bound;
            c->frontier = each.position.value;
            c->plans_without = 0;
        }
    }
}

void observer::on_plan(const cycle_plan& plan) {
    ++cycles;
    fold(plan.cycle.value);
    for (const auto& each : plan.prefills) fold(each.who.value), fold(each.tokens_max.value);
    for (const ticket who : plan.decodes) fold(who.value);
    drops += plan.drops.size();
    plan_ = plan;
    ready_.clear();
    for (const auto& [who, k] : tickets_)
        if (const choice_record& c = choices.at(k); !c.ended && c.running) ready_.push_back(who);
    for (const auto& each : plan.drops) fold(each.value);
    for (const ticket who : plan.pauses) {
        fold(who.value);
        require(!copying_.contains(who), "M2: a row that waits for a copy was paused");
        require(recovering_ != who, "M2: the holder of the recovery permit was paused");
        const choice_record* c = of(who);
        require(c != nullptr, "a pause of an unknown sequence");
        bool older = false;
        for (const auto& [other, k] : tickets_) older |= other < who && !choices.at(k).ended;
        require(older || c->short_now, "M2: " + name(tickets_.at(who)) + " was paused for nobody older");
    }
    bool resumes = false;
    for (const bind_order& each : plan.binds) {
        fold(each.who.value), fold(each.where.value), fold(each.source ? each.source->value : 0), fold(each.source_tokens.value);
        for (const checkpoint_id drop : plan.drops)
            require(drop != each.source, "K3: a source is dropped in the plan that binds it");
        if (each.spec) {
            tickets_[each.who] = {each.spec->request.value, each.spec->choice};
            choice_record& c = choices.at(tickets_[each.who]);
            c.who = each.who;
            require(node_.now() <= c.accepted_at + scenario_.node.scheduling.pending_timeout, "a bind after pending-timeout");
            continue;
        }
        require(!resumes, "M5: two resumes in one cycle");
        resumes = true;
        for (const ticket other : paused_) {
            const choice_record* c = of(other);
            require(!(c && !c->ended && other < each.who), "M4: a younger paused request resumes before an older one");
        }
    }
}

void observer::on_done(const cycle_done& done) {
    require(!done.device_failed, "the device failed: " + done.error);
    for (auto& each : choices) each.second.short_now = false;
    for (const shortage& each : done.shortages)
        if (choice_record* c = of(each.who)) c->short_now = c->waits_short = true;
    for (const pause_result& each : done.pauses) {
        ++pauses;
        paused_.insert(each.who);
        if (choice_record* c = of(each.who)) c->running = false;
    }
    for (const ticket who : plan_.cancels)
        if (recovering_ == who) recovering_.reset();
    for (const bind_result& each : done.binds) {
        require(each.outcome != bind_outcome::refused, "Program refused a bind: " + each.text);
        stale += each.outcome == bind_outcome::stale;
        if (each.outcome == bind_outcome::copying) copying_.insert(each.who);
        if (each.outcome == bind_outcome::bound || each.outcome == bind_outcome::copying) on_bound(each);
    }
    check_unit(done);
    for (const row_result& each : done.rows) {
        on_row(each);
        const bool moved = each.computed > each.replayed || each.token != no_token || each.finish != finish_reason::none;
        if (moved && recovering_ == each.who) recovering_.reset();
    }
}

// What the unit of this plan did, before its rows are booked. A unit that somebody's stop flag ended commits nothing
// and costs nobody a turn.
void observer::check_unit(const cycle_done& done) {
    std::uint64_t tokens = 0;
    for (const row_result& each : done.rows) tokens += each.computed.value;
    require(tokens <= scenario_.node.device.batch_tokens, "D5: more tokens than batch_tokens in a unit");
    const auto could_run = [&](ticket who) {
        const choice_record* c = of(who);
        return c && !c->ended && c->running && !c->short_now;
    };
    const bool some = std::any_of(plan_.decodes.begin(), plan_.decodes.end(), could_run) ||
                      std::any_of(plan_.prefills.begin(), plan_.prefills.end(),
                                  [&](const prefill_order& each) { return could_run(each.who); });
    if (some && done.rows.empty())
        return require(stops_raised > units_abandoned++, "a unit committed nothing, and nobody stopped it");
    check_fairness(done);
}

// Every row that holds a token is in every unit, and no prefill waits for more than one chunk of each other lane.
// One that Program told to be short waits for room, not for its turn.
void observer::check_fairness(const cycle_done& done) {
    std::set<ticket> served(plan_.pauses.begin(), plan_.pauses.end());
    served.insert(plan_.cancels.begin(), plan_.cancels.end());
    for (const row_result& each : done.rows) served.insert(each.who);
    for (const ticket who : ready_) {
        const key& k = tickets_.at(who);
        choice_record& c = choices.at(k);
        if (c.ended || !c.running) continue;
        if (served.contains(who)) c.plans_without = 0;
        else if (!c.waits_short) ++c.plans_without;
        const bool decodes = !c.got.tokens.empty() && c.frontier == c.reached;
        require(c.plans_without <= (decodes ? 0 : scenario_.node.device.max_concurrency),
                "fault 73: " + name(k) + (decodes ? " decodes and is left out of a unit" : " gets no chunk"));
    }
}

void observer::on_bound(const bind_result& bind) {
    const ticket who = bind.who;
    if (paused_.erase(who) > 0) {
        require(!recovering_, "M5: two recovery permits");
        recovering_ = who;
    }
    choice_record* c = of(who);
    require(c != nullptr, "an unknown sequence was bound");
    c->running = bind.outcome == bind_outcome::bound;
    c->frontier = bind.position.value;
    c->waits_short = false;
    c->plans_without = 0;
    if (c->ended) return;
    c->bound = true;
    if (std::exchange(c->counted, true)) return;
    const key mine = tickets_.at(who);
    bool passed = false;
    for (const key& other : arrival) {
        if (other == mine) break;
        choice_record& older = choices.at(other);
        if (older.counted || older.ended) continue;
        passed = true;
        ++older.overtaken;
        require(older.overtaken <= scenario_.node.device.max_concurrency,
                "E1: " + name(other) + " was overtaken more than C times");
    }
    bypasses += passed;
}

void observer::on_row(const row_result& row) {
    choice_record* c = of(row.who);
    require(c != nullptr, "a row of an unknown sequence");
    require(row.replayed <= row.computed && row.computed.value > 0, "a row that computed nothing");
    require(row.finish != finish_reason::error, "a row failed: " + row.error);
    fold(row.frontier.value), fold(static_cast<std::uint64_t>(row.token)), fold(std::bit_cast<std::uint32_t>(row.logprob));
    c->ran = true;
    c->waits_short = false;
    c->frontier = row.frontier.value;
    c->reached = std::max(c->reached, c->frontier);
    if (row.finish != finish_reason::none) c->running = false;
    const std::uint64_t fresh = (row.computed - row.replayed).value;
    total_replayed_ += row.replayed.value;
    c->replayed += row.replayed.value;
    if (row.frontier.value <= c->spec->prompt.size()) total_prefill_ += fresh, c->prompt_computed += fresh;
    if (row.token != no_token) ++total_generated_;
}

void observer::on_outputs(const outputs& rows) {
    std::set<key> seen;
    for (const choice_output& each : rows.rows) {
        const key k{each.request.value, each.choice};
        const auto found = choices.find(k);
        require(found != choices.end(), "output for " + name(k) + ", which was not accepted");
        choice_record& c = found->second;
        require(!c.ended, "O1: output for " + name(k) + " after its end");
        c.got.add(each.row);
        require(each.row.token == no_token || each.row.generated.value == c.got.tokens.size(),
                "the count of generated tokens is wrong for " + name(k));
        if (each.row.finish != finish_reason::none) end(c, each);
    }
}

void observer::end(choice_record& c, const choice_output& row) {
    c.ended = true;
    c.ended_at = node_.now();
    const client_habits& h = scenario_.habits;
    require(c.deadline == 0 || c.ended_at <= std::max(c.deadline, c.accepted_at), "it ended after its deadline: " + name({row.request.value, row.choice}));
    require(h.drain_at == 0 || c.accepted_at > h.drain_at || c.ended_at <= h.drain_at + h.drain_grace,
            "it outlived the grace time: " + name({row.request.value, row.choice}));
    c.failure = row.failure;
    require(row.usage != nullptr, "an end without usage");
    c.usage = *row.usage;
    reuses += c.usage.cached.value > 0;
    const key k{row.request.value, row.choice};
    require((row.failure != failure_kind::none) == (row.row.finish == finish_reason::error), "failure and finish disagree");
    require(c.usage.prompt.value == c.spec->prompt.size(), "usage: prompt tokens of " + name(k));
    require(c.usage.generated.value == c.got.tokens.size(), "usage: generated tokens of " + name(k));
    if (row.row.finish == finish_reason::stop || row.row.finish == finish_reason::length) {
        require(c.usage.cached.value == c.spec->prompt.size() - c.prompt_computed,
                "O2: cached tokens of " + name(k) + ": " + std::to_string(c.usage.cached.value) + ", prompt " +
                    std::to_string(c.spec->prompt.size()) + ", computed " + std::to_string(c.prompt_computed));
        require(c.usage.replayed.value == c.replayed, "O2: replayed tokens of " + name(k));
    }
    const scheduler_options& o = scenario_.node.scheduling;
    const std::string text = name(k) + ": " + row.row.error;
    switch (row.failure) {
        case failure_kind::none: break;
        case failure_kind::queue_timeout:
            require(!c.bound && node_.now() >= c.accepted_at + o.pending_timeout, "a queue timeout too early: " + text);
            break;
        case failure_kind::deadline:
            require(c.deadline != 0 && node_.now() >= c.deadline, "a deadline too early: " + text);
            break;
        case failure_kind::shutting_down:
            require(scenario_.habits.drain_at != 0 && node_.now() >= scenario_.habits.drain_at, "shut down early: " + text);
            break;
        case failure_kind::internal:
            require(o.copy_timeout < scenario_.copy_time_max * 8, "an internal error: " + text);
            break;
        // The pool holds the largest request (B2), so alone on the device everything fits.
        default: require(false, "an error that nothing explains: " + text);
    }
}

void observer::at_rest(const telemetry& n, const scheduler::figures& f, std::uint64_t left_early) const {
    for (const auto& [k, c] : choices) require(c.ended, name(k) + " never ended");
    require(f.live == 0 && f.lanes_used == 0 && f.queued == 0 && f.paused == 0, "the Scheduler still holds something");
    require(f.watchdog_ends == 0, "D4: the last line of defence was needed");
    require(n.requests_queued == 0 && n.requests_prefill == 0 && n.requests_decode == 0 && n.requests_replay == 0 &&
                n.requests_paused == 0 && n.requests_waiting_source == 0 && n.queue_length == 0 && n.lanes_used == 0,
            "a gauge of requests is not back at 0");
    require(n.prefill_tokens == total_prefill_, "fault 104: prefill_tokens and rows disagree");
    require(n.replayed_tokens == total_replayed_, "fault 104: replayed_tokens and rows disagree");
    require(n.generated_tokens == total_generated_, "fault 104: generated_tokens and rows disagree");
    std::set<std::uint64_t> requests;
    for (const auto& each : choices) requests.insert(each.first.first);
    require(n.requests_stop + n.requests_length + n.requests_cancelled + n.requests_failed == requests.size() + left_early,
            "requests_total doesn't add up");
}

}  // namespace fermata::simulation

// A stand-in for Program, for tests of scheduling alone: counts pages, runs rows, makes up tokens. Its cache is what
// the test puts there. Every order is executed as the contract in messages/cycle.hpp says.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "messages/context.hpp"
#include "messages/cycle.hpp"

namespace fermata::testing {

inline std::uint32_t pages_of(std::uint32_t tokens, std::uint32_t page) { return (tokens + page - 1) / page; }

class fake_program {
public:
    struct row {
        std::shared_ptr<const sequence_spec> spec;
        std::uint32_t frontier = 0, target = 0, generated = 0, old_frontier = 0, permit = 0;
        bool holds_token = false, paused = false, copying = false;
        lane where{};
    };

    fake_program(std::uint32_t pages, std::uint32_t page_tokens) : total_(pages), page_(page_tokens) {}

    // Test knobs.
    std::set<ticket> copy_binds;        // these binds wait for `finish_copy`
    std::set<ticket> stale_binds;       // answered stale once
    std::set<ticket> broken_rows;       // their next unit ends with an error
    std::string row_error = "logits";
    bool fail_device = false;
    std::map<ticket, row> rows;
    std::map<checkpoint_id, std::uint32_t> cache;  // pages held by a checkpoint

    cycle_done run(const cycle_plan& plan) {
        cycle_done done;
        done.cycle = plan.cycle;
        done.device_failed = fail_device;
        for (const ticket who : plan.cancels) rows.erase(who), waiting_.erase(who);
        for (const checkpoint_id id : plan.drops) changed_ |= cache.erase(id) > 0;
        for (const ticket who : plan.pauses) pause(who, done);
        for (const bind_order& each : plan.binds) bind(each, done);
        for (const ticket who : plan.decodes) decode(who, done);
        for (const prefill_order& each : plan.prefills) prefill(each, done);
        for (auto& result : done.rows)
            if (result.finish != finish_reason::none) rows.erase(result.who);
        done.room = room();
        done.copies_in_flight = static_cast<std::uint32_t>(waiting_.size());
        if (changed_) done.view = view();
        changed_ = false;
        return done;
    }

    program_notice finish_copy(ticket who, bool good = true) {
        program_notice notice;
        waiting_.erase(who);
        if (auto it = rows.find(who); it != rows.end()) {
            bind_result result;
            result.who = who;
            result.outcome = good ? bind_outcome::bound : bind_outcome::stale;
            if (good) it->second.copying = false;
            else rows.erase(it);
            notice.binds.push_back(result);
        }
        notice.room = room();
        notice.view = view();
        notice.copies_in_flight = static_cast<std::uint32_t>(waiting_.size());
        return notice;
    }

    occupancy room() const {
        occupancy o;
        o.pages_total = total_;
        o.state_slots_total = o.state_slots_free = 64;  // never scarce here
        for (const auto& each : rows)
            if (!each.second.paused)
                o.pages_active += std::max(pages_of(each.second.frontier, page_), each.second.permit);
        for (const auto& each : cache) o.pages_cached += each.second;
        o.pages_free = total_ - o.pages_active - o.pages_cached;
        return o;
    }

    std::shared_ptr<const program_view> view() const {
        auto v = std::make_shared<program_view>();
        v->page_tokens = page_;
        v->room = room();
        std::uint32_t next = 0;
        for (const auto& each : cache) {
            point_view p;
            p.checkpoint = each.first;
            p.coverage = token_pos(each.second * page_);
            for (std::uint32_t i = 0; i < each.second; ++i) p.pages.push_back(page_id{next++}), p.other_holders.push_back(0);
            v->points.push_back(p);
        }
        return v;
    }

private:
    bool take(ticket who, std::uint32_t need, cycle_done& done) {
        const auto free = room().pages_free;
        if (need <= free) return true;
        done.shortages.push_back({who, need - free, 0, need, need > total_});
        return false;
    }
    void pause(ticket who, cycle_done& done) {
        auto& r = rows.at(who);
        r.paused = true;
        r.permit = 0;
        r.old_frontier = r.frontier;
        pause_result result;
        result.who = who;
        result.ledger = token_run(std::vector<token_id>(r.frontier, 1));
        result.decoding = r.holds_token;
        done.pauses.push_back(result);
    }
    void bind(const bind_order& order, cycle_done& done) {
        bind_result result;
        result.who = order.who;
        const bool resume = !order.spec;
        row fresh;
        if (resume) fresh = rows.at(order.who);
        else fresh.spec = order.spec;
        const auto prompt = static_cast<std::uint32_t>(fresh.spec->prompt.size());
        const std::uint32_t until = resume ? (fresh.holds_token ? fresh.old_frontier + 1
                                                                : std::min(prompt, fresh.old_frontier + order.first_unit_tokens.value))
                                           : order.source_tokens.value + order.first_unit_tokens.value;
        if (stale_binds.erase(order.who)) {
            result.outcome = bind_outcome::stale;
        } else if (!take(order.who, pages_of(until, page_), done)) {
            result.outcome = bind_outcome::short_of_room;
        } else {
            fresh.paused = false;
            fresh.frontier = 0;
            fresh.where = order.where;
            fresh.target = fresh.holds_token ? fresh.old_frontier : prompt;
            fresh.permit = pages_of(until, page_);
            fresh.copying = copy_binds.erase(order.who) > 0;
            if (fresh.copying) waiting_.insert(order.who), result.outcome = bind_outcome::copying;
            for (const auto& each : rows)
                if (!each.second.paused && each.first != order.who && each.second.where == order.where) lane_clash = true;
            rows[order.who] = fresh;
        }
        done.binds.push_back(result);
    }
    bool runs(ticket who) const {
        const auto it = rows.find(who);
        return it != rows.end() && !it->second.paused && !it->second.copying;
    }
    void decode(ticket who, cycle_done& done) {
        if (!runs(who)) return;
        row& r = rows.at(who);
        if (!r.holds_token || r.frontier < r.target) bad_order = true;
        step(who, 1, done);
    }
    void prefill(const prefill_order& order, cycle_done& done) {
        if (!runs(order.who)) return;
        row& r = rows.at(order.who);
        if (r.frontier >= r.target) bad_order = true;
        step(order.who, std::min(order.tokens_max.value, r.target - r.frontier), done);
    }
    void step(ticket who, std::uint32_t tokens, cycle_done& done) {
        row& r = rows.at(who);
        const std::uint32_t held = std::max(pages_of(r.frontier, page_), r.permit);
        const std::uint32_t wanted = pages_of(r.frontier + tokens, page_);
        if (wanted > held && !take(who, wanted - held, done)) return;
        row_result result;
        result.who = who;
        result.computed = token_pos(tokens);
        result.replayed = token_pos(r.frontier < r.old_frontier ? std::min(tokens, r.old_frontier - r.frontier) : 0);
        r.frontier += tokens;
        const bool replay_end = r.holds_token && r.frontier <= r.target;
        if (r.frontier >= static_cast<std::uint32_t>(r.spec->prompt.size()) && !replay_end) {
            result.token = 7;
            r.holds_token = true;
            r.target = r.frontier;
            ++r.generated;
            if (r.generated >= r.spec->guard.max_new_tokens.value) result.finish = finish_reason::length;
        }
        if (result.computed > result.replayed || result.token != no_token) r.permit = 0;
        result.frontier = token_pos(r.frontier);
        result.generated = token_pos(r.generated);
        if (broken_rows.erase(who)) {
            result.finish = finish_reason::error;
            result.token = no_token;
            result.failure = failure_kind::not_finite;
            result.error = row_error;
        }
        done.rows.push_back(result);
    }

public:
    bool lane_clash = false, bad_order = false;

private:
    std::uint32_t total_, page_;
    std::set<ticket> waiting_;
    bool changed_ = false;
};

}  // namespace fermata::testing

// Permits and the device: which rows run, with which pages, and the one call of the model.
#include <algorithm>
#include <exception>

#include "native/program/core.hpp"

namespace fermata::program_detail {

sequence* program_core::find(ticket who) {
    const auto it = sequences_.find(who);
    return it == sequences_.end() ? nullptr : it->second.get();
}

// Rows get their permits one by one in the order of the plan: a short one is reported and doesn't stop the rest (D1).
// What the plan got wrong about a row (it ended, it waits for a copy) is passed over: plans may be made on old facts.
void program_core::collect_rows(const cycle_plan& plan, cycle_done& done) {
    members_.clear();
    batch_left_ = options_.batch_tokens;
    score_rows_left_ = limits_.score_rows;
    for (ticket who : plan.decodes) {
        sequence* seq = find(who);
        if (!seq || seq->in_unit || !seq->decode_ready() || batch_left_ == 0) continue;
        add_row(*seq, 1, done);
    }
    for (const prefill_order& order : plan.prefills) {
        sequence* seq = find(order.who);
        if (!seq || seq->in_unit || seq->at != stage::bound) continue;
        const std::uint32_t chunk = order.tokens_max.value ? order.tokens_max.value : options_.prefill_chunk_tokens;
        std::uint32_t tokens = std::min({chunk, seq->prefill_end() - seq->frontier, batch_left_});
        if (seq->scores_prompt()) {
            const std::uint32_t replay = seq->reached > seq->frontier ? seq->reached - seq->frontier : 0;
            tokens = std::min(tokens, replay + score_rows_left_);
        }
        if (tokens > 0) add_row(*seq, tokens, done);
    }
}

void program_core::add_row(sequence& seq, std::uint32_t tokens, cycle_done& done) {
    guarded(ticket(seq.who), done, [&] {
        if (admit(seq, tokens, done)) add_member(seq, tokens);
    });
}

// The permit of one row: all the pages it lacks, or none and a shortage.
bool program_core::admit(sequence& seq, std::uint32_t tokens, cycle_done& done) {
    const std::uint32_t whole = pages_for(std::uint64_t{seq.frontier} + tokens, limits_.page_tokens);
    const auto held = static_cast<std::uint32_t>(seq.pages.size());
    const std::uint32_t lacking = whole > held ? whole - held : 0;
    if (!seq.permit.raise_to({lacking})) {
        shortage out;
        out.who = seq.who;
        out.pages_needed = lacking - seq.permit.left(0);
        out.pages = out.pages_needed - pools_[0]->available();
        out.never = whole > limits_.pages;
        done.shortages.push_back(out);
        return false;
    }
    for (std::uint32_t i = 0; i < lacking; ++i) seq.pages.push_back(seq.permit.take(0));
    if (!pages_may_be_written(seq, tokens)) throw std::logic_error("a page that others hold would be written");
    return true;
}

bool program_core::pages_may_be_written(const sequence& seq, std::uint32_t tokens) const {
    const std::uint32_t first = seq.frontier / limits_.page_tokens;
    const std::uint32_t last = (seq.frontier + tokens - 1) / limits_.page_tokens;
    for (std::uint32_t i = first; i <= last; ++i)
        if (!pools_[0]->writable(seq.pages[i])) return false;  // G7
    return true;
}

void program_core::add_member(sequence& seq, std::uint32_t tokens) {
    const std::size_t vocabulary = layout().vocabulary;
    float* const base = reinterpret_cast<float*>(logits_.data());
    const std::uint32_t end = seq.frontier + tokens;
    unit_member member;
    member.who = &seq;
    member.tokens = tokens;
    member.samples = seq.guard.tokens_max().value > 0 && end == (seq.answering() ? seq.ledger.size() : seq.prompt);
    if (!seq.answering() && seq.scores_prompt() && end > seq.reached)
        member.score_rows = end - std::max(seq.frontier, seq.reached);
    if (member.score_rows > 0) {
        const std::size_t used = limits_.score_rows - score_rows_left_;
        member.logits = base + (limits_.lanes + used) * vocabulary;
        member.logit_rows = member.score_rows;
        score_rows_left_ -= member.score_rows;
    } else if (member.samples) {
        member.logits = base + seq.where.value * vocabulary;
        member.logit_rows = 1;
    }
    batch_left_ -= tokens;
    seq.in_unit = true;
    members_.push_back(member);
}

void program_core::run_unit(cycle_done& done) {
    rows_.clear();
    for (const unit_member& member : members_) {
        const sequence& seq = *member.who;
        unit_row row;
        row.first = token_pos(seq.frontier);
        row.tokens = {seq.ledger.data() + seq.frontier, member.tokens};
        row.pages = seq.pages;
        row.state = seq.slot.value_or(state_slot{});
        row.fresh_state = seq.slot && !states_.defined(*seq.slot);
        row.logit_rows = member.logit_rows;
        row.logits = member.logits;
        rows_.push_back(row);
    }
    const time_ns begin = now();
    telemetry* const numbers = options_.clock ? options_.numbers.get() : nullptr;
    if (numbers && work_was_left_) {
        const time_ns gap = std::max<time_ns>(begin - unit_end_, 0);
        numbers->control_gap.observe(gap);
        numbers->device_wait_ns.fetch_add(static_cast<std::uint64_t>(gap), std::memory_order_relaxed);
    }
    unit_status status = unit_status::stopped;
    try {
        status = model_->run(unit{rows_, &stop_});
    } catch (const std::exception& fault) {
        done.device_failed = true;
        done.error = fault.what();
    }
    unit_end_ = now();
    if (status == unit_status::done) {
        commit_unit(done);  // sets the unit's end again, behind sampling
        if (numbers) numbers->last_commit_ns.store(unit_end_, std::memory_order_relaxed);
    } else {
        stop_.store(false);  // used up: the next unit runs (fault 89)
        abandon_unit();
    }
    work_was_left_ = true;
}

// Nothing was committed: pages taken for the unit go back to their permits, and these to the pool unless a bind or a
// recovery still needs them.
void program_core::abandon_unit() {
    for (const unit_member& member : members_) {
        sequence& seq = *member.who;
        seq.in_unit = false;
        while (seq.pages.size() > pages_for(seq.frontier, limits_.page_tokens)) {
            seq.permit.put_back(0, seq.pages.back());
            seq.pages.pop_back();
        }
        settle(seq);
    }
    members_.clear();
}

// C3: what a permit has left goes back, except what the first unit of a bind or a recovery still needs.
void program_core::settle(sequence& seq) {
    if (!seq.recovering && !seq.first_unit_due) seq.permit.give_back();
}

}  // namespace fermata::program_detail

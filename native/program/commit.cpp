// What a unit brought: frontiers, scores, tokens, ends. Replay repeats nothing here: below `reached` a position is
// neither scored nor sampled nor charged again (M6).
#include <algorithm>

#include "native/program/core.hpp"
#include "native/sampling/logprobs.hpp"
#include "native/sampling/random.hpp"

namespace fermata::program_detail {

// First what reads rows of logits, for all members: it is the unit's last kernel, and the control gap begins behind
// it. Then what changes holders.
void program_core::commit_unit(cycle_done& done) {
    for (unit_member& member : members_) {
        sequence& seq = *member.who;
        seq.in_unit = false;
        member.had_prompt = seq.reached >= seq.prompt;
        guarded(ticket(seq.who), done, [&] {
            done.rows.push_back(commit_member(member));
            member.row = done.rows.size();
        });
    }
    unit_end_ = now();
    for (const unit_member& member : members_) {
        if (member.row == 0) continue;  // poisoned: it is gone
        sequence& seq = *member.who;
        guarded(ticket(seq.who), done, [&] { conclude(seq, member.had_prompt, done.rows[member.row - 1]); });
    }
    members_.clear();
}

void program_core::conclude(sequence& seq, bool had_prompt, const row_result& row) {
    if (row.finish != finish_reason::none) return end_sequence(seq, row);
    settle(seq);
    if (!had_prompt && seq.frontier == seq.prompt) publish_input_point(seq);
}

row_result program_core::commit_member(const unit_member& member) {
    sequence& seq = *member.who;
    const std::uint32_t before = seq.frontier;
    const std::uint32_t first_new = std::max(before, seq.reached);
    seq.frontier += member.tokens;
    const std::uint32_t replayed = std::min(seq.frontier, first_new) - before;
    seq.first_unit_due = false;
    if (seq.frontier > seq.reached) {
        seq.recovering = false;  // M5: new progress ends the recovery
        seq.reached = seq.frontier;
    }
    if (seq.slot) states_.set_defined(*seq.slot, true);

    row_result row;
    row.who = seq.who;
    row.computed = token_pos(member.tokens);
    row.replayed = token_pos(replayed);
    row.frontier = token_pos(seq.frontier);
    row.generated = token_pos(seq.generated());
    if (options_.numbers) {
        options_.numbers->replayed_tokens.fetch_add(replayed, std::memory_order_relaxed);
        if (!seq.answering())
            options_.numbers->prefill_tokens.fetch_add(member.tokens - replayed, std::memory_order_relaxed);
    }
    for (std::uint32_t i = 0; i < member.logit_rows; ++i)
        if (!sampling::all_finite(logit_row(member, i))) {
            row.finish = finish_reason::error;
            row.failure = failure_kind::not_finite;
            row.error = "logits are not finite at position " + std::to_string(seq.frontier - member.logit_rows + i);
            return row;
        }
    if (member.score_rows > 0) report_prompt(member, first_new, row);
    if (member.samples) sample(member, row);
    else if (seq.guard.tokens_max().value == 0 && seq.frontier == seq.prompt) row.finish = finish_reason::length;
    return row;
}

// Row i of the logits belongs to position first_new + i and scores the token behind it. The score of the token at
// first_new came with the unit before: it was kept, across pauses too (fault 76).
void program_core::report_prompt(const unit_member& member, std::uint32_t first_new, row_result& row) {
    sequence& seq = *member.who;
    const report_spec& report = seq.spec->report;
    if (report.prompt_logits)
        row.logits.assign(member.logits, member.logits + std::size_t{member.score_rows} * layout().vocabulary);
    if (!report.prompt_logprobs) return;
    for (std::uint32_t i = 0; i < member.score_rows; ++i) {
        row.prompt_logprobs.push_back(seq.next_prompt_logprob);
        if (report.top_logprobs) row.prompt_top_logprobs.push_back(std::move(seq.next_prompt_top));
        seq.next_prompt_top.clear();
        const std::uint32_t scored = first_new + i + 1;
        if (scored >= seq.prompt) break;
        const auto logits = logit_row(member, i);
        const double sum = sampling::log_sum_exp(logits);
        const float logit = logits[static_cast<std::size_t>(seq.ledger[scored])];
        seq.next_prompt_logprob = static_cast<float>(static_cast<double>(logit) - sum);
        if (report.top_logprobs) sampling::most_likely(logits, sum, report.top_logprobs, seq.next_prompt_top);
    }
}

void program_core::sample(const unit_member& member, row_result& row) {
    sequence& seq = *member.who;
    const sequence_spec& spec = *seq.spec;
    const auto logits = logit_row(member, member.logit_rows - 1);
    const auto position = static_cast<std::uint32_t>(seq.ledger.size());
    const double uniform =
        spec.sampling.temperature > 0
            ? sampling::uniform(spec.sampling.seed, spec.choice, position, sampling::purpose::token)
            : 0;
    const token_id token = sampler_.choose(logits.first(drawn_rows()), spec.sampling, seq.counts, uniform);
    seq.ledger.push_back(token);
    if (seq.counts.active()) seq.counts.add_generated(token);
    row.token = token;
    row.generated = token_pos(seq.generated());
    row.finish = seq.guard.accept(token, row.generated);
    if (spec.report.logprobs) {
        const double sum = sampling::log_sum_exp(logits);
        row.logprob = static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(token)]) - sum);
        sampling::most_likely(logits, sum, spec.report.top_logprobs, row.top_logprobs);
    }
    if (spec.report.logits && row.logits.empty()) row.logits.assign(logits.begin(), logits.end());
    if (options_.numbers) options_.numbers->generated_tokens.fetch_add(1, std::memory_order_relaxed);
}

// Rows behind the last token only pad the model's output: nothing can be said with them, so none is ever drawn.
std::size_t program_core::drawn_rows() const {
    const std::size_t rows = layout().vocabulary;
    return options_.tokens && !options_.tokens->bytes.empty() ? std::min(rows, options_.tokens->bytes.size()) : rows;
}

// Stop and length leave a point to go on from; a fault leaves nothing, and takes back what the sequence published.
void program_core::end_sequence(sequence& seq, const row_result& row) {
    if (row.finish == finish_reason::error) {
        if (checkpoint* point = seq.input_point ? points_.find(*seq.input_point) : nullptr) leave(*point);
    } else {
        freeze_endpoint(seq);
    }
    forget(seq);
}

}  // namespace fermata::program_detail

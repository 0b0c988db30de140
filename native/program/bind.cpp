// Start and resume. A plan is checked against facts when it runs: the lane is free, the source still exists, its own
// tokens equal the sequence's up to the position, the position is one it can serve (A3), and lane, slot, pages for the
// first unit (or the whole recovery, M5) are there together. Then nothing can fail any more; before, nothing was taken.
#include <algorithm>
#include <cmath>

#include "native/program/core.hpp"

namespace fermata::program_detail {

// A bind order with what the checks found out.
struct program_core::bind_request {
    sequence* known = nullptr;  // a resume
    std::span<const token_id> tokens;
    std::uint32_t position = 0;
    std::uint32_t limit = 0;      // deepest position allowed
    std::uint32_t first_end = 0;  // frontier the permit must cover
    checkpoint* source = nullptr;
    std::uint32_t shared_pages = 0;
    bool copies_tail = false;

    std::uint32_t pages_needed(std::uint32_t page_tokens) const {
        return pages_for(first_end, page_tokens) - shared_pages;
    }
};

namespace {

bind_result answer_of(const bind_order& order, bind_outcome outcome, std::string text) {
    return {order.who, outcome, token_pos(0), std::move(text)};
}

std::string count(std::size_t n, const char* what) { return std::to_string(n) + " " + what; }

bool sampling_is_sane(const sampling_params& how) {
    const bool finite = std::isfinite(how.temperature) && std::isfinite(how.top_p) && std::isfinite(how.min_p) &&
                        std::isfinite(how.repetition_penalty) && std::isfinite(how.frequency_penalty) &&
                        std::isfinite(how.presence_penalty);
    return finite && how.temperature >= 0 && how.top_p >= 0 && how.min_p >= 0 && how.repetition_penalty > 0 &&
           std::none_of(how.logit_bias.begin(), how.logit_bias.end(),
                        [](const token_bias& each) { return std::isnan(each.bias); });
}

}  // namespace

std::string program_core::fault_of_spec(const sequence_spec& spec) const {
    if (spec.prompt.empty()) return "the prompt is empty";
    if (spec.prompt.size() > limits_.max_context_tokens)
        return "a prompt of " + count(spec.prompt.size(), "tokens: max_context is ") +
               std::to_string(limits_.max_context_tokens);
    const auto vocabulary = static_cast<token_id>(layout().vocabulary);
    for (token_id token : spec.prompt.span())
        if (token < 0 || token >= vocabulary)
            return "token " + std::to_string(token) + " in the prompt: the vocabulary has ids 0 to " +
                   std::to_string(vocabulary - 1);
    if (!sampling_is_sane(spec.sampling))
        return "sampling settings must be finite: temperature, top_p, min_p from 0 up, repetition_penalty above 0";
    return {};
}

std::optional<bind_result> program_core::refusal_of(const bind_order& order, bind_request& request) {
    const auto refused = [&](std::string text) { return answer_of(order, bind_outcome::refused, std::move(text)); };
    if (order.where.value >= lanes_.size())
        return refused("lane " + std::to_string(order.where.value) + " of " + count(lanes_.size(), "lanes"));
    if (lanes_[order.where.value])
        return refused("lane " + std::to_string(order.where.value) + " is taken by ticket " +
                       std::to_string(lanes_[order.where.value]->who.value));
    request.known = find(order.who);
    if (order.spec) {
        if (request.known) return refused("the ticket is known already: a resume carries no spec");
        if (std::string fault = fault_of_spec(*order.spec); !fault.empty()) return refused(std::move(fault));
        request.tokens = order.spec->prompt.span();
        request.limit = static_cast<std::uint32_t>(request.tokens.size()) - 1;
    } else {
        if (!request.known || request.known->at != stage::paused)
            return refused("a resume of a sequence that is not paused");
        request.tokens = request.known->ledger;
        request.limit = request.known->resume_limit();
    }
    return fault_of_source(order, request);
}

std::optional<bind_result> program_core::fault_of_source(const bind_order& order, bind_request& request) {
    const auto refused = [&](std::string text) { return answer_of(order, bind_outcome::refused, std::move(text)); };
    const auto stale = [&](std::string text) { return answer_of(order, bind_outcome::stale, std::move(text)); };
    request.position = order.source_tokens.value;
    if (!order.source) {
        if (request.position != 0) return refused("root serves position 0 alone");
        return std::nullopt;
    }
    request.source = points_.find(*order.source);
    if (!request.source || request.source->leaving) return stale("the source is gone");
    const checkpoint& source = *request.source;
    const std::string asked = "position " + std::to_string(request.position);
    if (request.position == 0 || request.position > source.coverage() ||
        (source.slot && request.position != source.coverage()))
        return refused(asked + ": the source serves " + (source.slot ? "exactly " : "1 to ") +
                       std::to_string(source.coverage()));
    if (request.position > request.limit)
        return refused(asked + ": at most " + std::to_string(request.limit) + ", a token must be left to compute");
    // A scored prompt computes every position once: it may reuse only what it computed itself before a pause.
    const sequence_spec& spec = order.spec ? *order.spec : *request.known->spec;
    const std::uint32_t reached = request.known ? request.known->reached : 0;
    if ((spec.report.prompt_logprobs || spec.report.prompt_logits) && request.position > reached)
        return refused(asked + ": a prompt that is scored resumes at " + std::to_string(reached) + " at most");
    const auto mine = request.tokens.first(request.position);
    if (!std::equal(mine.begin(), mine.end(), source.tokens.span().begin()))
        return stale("the source covers other tokens");
    request.shared_pages = request.position / limits_.page_tokens;
    request.copies_tail = request.position % limits_.page_tokens != 0;
    return std::nullopt;
}

// All that is missing, or none. A second recovery waits for the first (M5: at most one permit is held).
std::optional<shortage> program_core::shortage_of(const bind_request& request) const {
    shortage out;
    out.pages_needed = request.pages_needed(limits_.page_tokens);
    const std::uint32_t available = pools_[0]->available();
    out.pages = out.pages_needed > available ? out.pages_needed - available : 0;
    out.state_slots = limits_.state_slots > 0 && states_.available() == 0 ? 1 : 0;
    out.never = pages_for(request.first_end, limits_.page_tokens) > limits_.pages;
    const bool recovery_taken =
        request.known && std::any_of(lanes_.begin(), lanes_.end(),
                                     [](const sequence* seq) { return seq && seq->recovering; });
    if (out.pages == 0 && out.state_slots == 0 && !recovery_taken) return std::nullopt;
    return out;
}

void program_core::bind(const bind_order& order, cycle_done& done) {
    bind_request request;
    if (auto refusal = refusal_of(order, request)) {
        done.binds.push_back(std::move(*refusal));
        return;
    }
    const std::uint32_t chunk = order.first_unit_tokens.value ? order.first_unit_tokens.value
                                                              : options_.prefill_chunk_tokens;
    if (request.known && request.known->answering()) {
        request.first_end = static_cast<std::uint32_t>(request.tokens.size());
    } else {
        const std::uint32_t start = std::max(request.position, request.known ? request.known->reached : 0u);
        const auto end = static_cast<std::uint32_t>(request.tokens.size());
        request.first_end = start + std::min(std::min(chunk, options_.batch_tokens), end - start);
    }
    pool_permit permit(pools_);
    auto missing = shortage_of(request);
    if (!missing && !permit.raise_to({request.pages_needed(limits_.page_tokens)})) missing.emplace();
    if (missing) {
        missing->who = order.who;
        done.shortages.push_back(*missing);
        done.binds.push_back(answer_of(order, bind_outcome::short_of_room, {}));
        return;
    }
    sequence& seq = sequence_for(order);
    const bool waits = install(order, request, seq, std::move(permit));
    if (!waits) adopt(seq);
    done.binds.push_back({order.who, waits ? bind_outcome::copying : bind_outcome::bound,
                          token_pos(request.position), {}});
}

sequence& program_core::sequence_for(const bind_order& order) {
    auto& place = sequences_[order.who];
    if (place) return *place;
    place = std::make_unique<sequence>();
    sequence& seq = *place;
    seq.who = order.who;
    seq.spec = order.spec;
    const auto prompt = order.spec->prompt.span();
    seq.prompt = static_cast<std::uint32_t>(prompt.size());
    // A prompt that fills the context still gets its first token: that one is never fed.
    const std::uint32_t room = std::max(1u, limits_.max_context_tokens - seq.prompt);
    seq.guard = guard::token_guard(order.spec->guard, options_.tokens, token_pos(room));
    // Reserved once for the longest answer: decoding allocates nothing.
    seq.ledger.reserve(prompt.size() + seq.guard.tokens_max().value);
    seq.ledger.assign(prompt.begin(), prompt.end());
    if (sampling::needs_counts(order.spec->sampling)) {
        seq.counts = sampling::penalty_counts(std::min(layout().vocabulary, seq.ledger.capacity()));
        seq.counts.add_prompt(prompt);
    }
    return seq;
}

// Takes everything; true when the sequence has to wait for a copy.
bool program_core::install(const bind_order& order, const bind_request& request, sequence& seq, pool_permit permit) {
    seq.where = order.where;
    lanes_[order.where.value] = &seq;
    seq.permit = std::move(permit);
    seq.recovering = request.known != nullptr;
    seq.first_unit_due = true;
    seq.frontier = request.position;
    seq.source = order.source;
    seq.source_tokens = request.position;
    seq.pages.reserve(pages_for(seq.ledger.capacity(), limits_.page_tokens));
    copy_under_way copy;
    copy.owner = seq.who;
    copy.source = order.source;
    for (std::uint32_t i = 0; i < request.shared_pages; ++i) {
        pools_[0]->add_reference(request.source->pages[i], holder::sequence);
        seq.pages.push_back(request.source->pages[i]);
    }
    if (request.copies_tail) {
        seq.pages.push_back(seq.permit.take(0));
        copy.order.pages.push_back({0, request.source->pages[request.shared_pages], seq.pages.back()});
    }
    if (limits_.state_slots > 0) {
        seq.slot = states_.take();
        if (request.source) copy.order.states.push_back({*request.source->slot, *seq.slot});
    }
    if (request.source) structure_changed();
    seq.at = stage::bound;
    if (copy.order.pages.empty() && copy.order.states.empty()) return false;
    ++request.source->readers;
    seq.at = stage::copying;
    seq.waiting_for = copies_.submit(std::move(copy));
    return true;
}

// Everything the sequence resumed with is in place: now the use counts (F11).
void program_core::adopt(sequence& seq) {
    seq.reached = std::max(seq.reached, seq.frontier);
    if (seq.source)
        events_.emplace_back(std::in_place_type<checkpoint_adopted>,
                             checkpoint_adopted{*seq.source, seq.who, token_pos(seq.source_tokens)});
    if (!seq.ever_bound) count_first_bind(seq);
    seq.ever_bound = true;
}

void program_core::count_first_bind(sequence& seq) {
    if (!options_.numbers) return;
    options_.numbers->prompt_tokens.fetch_add(seq.prompt, std::memory_order_relaxed);
    options_.numbers->reused_tokens_device.fetch_add(seq.source_tokens, std::memory_order_relaxed);
}

bool program_core::complete(const copy_done& copy, program_notice& notice) {
    const auto finished = copies_.finish(copy.copy);
    if (!finished) return false;
    notice.binds.clear();
    sequence* seq = find(finished->owner);
    if (seq && seq->at == stage::copying && seq->waiting_for == copy.copy) {
        bind_result result{seq->who, bind_outcome::bound, token_pos(seq->source_tokens), {}};
        if (copy.complete) {
            seq->at = stage::bound;
            if (seq->slot) states_.set_defined(*seq->slot, true);
            adopt(*seq);
        } else {
            result = {seq->who, bind_outcome::stale, token_pos(0), "the copy failed: " + copy.error};
            seq->ever_bound ? unbind(*seq) : forget(*seq);
        }
        notice.binds.push_back(std::move(result));
    }
    if (copy.complete && options_.numbers)
        options_.numbers->transfer_bytes_device_device.fetch_add(memory_->bytes_of(finished->order),
                                                                 std::memory_order_relaxed);
    reader_done(*finished);
    notice.room = room();
    notice.copies_in_flight = copies_.in_flight();
    notice.view = unreported_view();
    set_gauges();
    return true;
}

}  // namespace fermata::program_detail

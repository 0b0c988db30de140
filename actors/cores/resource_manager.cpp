#include "actors/cores/resource_manager.hpp"

#include <algorithm>
#include <stdexcept>

namespace fermata {

namespace {

constexpr std::size_t heirs_max = 4096;

}  // namespace

resource_manager::resource_manager(resource_manager_options options)
    : options_(options), index_(options.page_tokens == 0 ? 1 : options.page_tokens, options.digest) {
    if (options_.page_tokens == 0) throw std::invalid_argument("page-size must be at least 1 token");
}

source_chosen resource_manager::on(const choose_source& question) {
    source_chosen answer;
    answer.turn = question.turn;
    answer.who = question.who;
    if (!question.view || question.limit.value == 0) return answer;
    const auto tokens = question.tokens.span();
    candidates ranked = rank(question, index_.deepest(tokens, question.limit.value));
    // The points that reach deepest may be gone or not qualify, or a digest lied: content then decides among all.
    if (ranked.empty() || !verified(ranked.front(), question))
        ranked = rank(question, index_.by_content(tokens, question.limit.value));
    if (ranked.empty()) return answer;
    answer.source = ranked.front().checkpoint;
    answer.position = token_pos(ranked.front().position);
    return answer;
}

// Candidates that exist and are worth a bind, best first (F2).
resource_manager::candidates resource_manager::rank(const choose_source& question,
                                                    const std::vector<prefix_index::match>& matches) {
    candidates ranked;
    for (const auto& match : matches) {
        const auto it = records_.find(match.checkpoint);
        if (it == records_.end() || !exists(question.view, match.checkpoint)) continue;
        const record& r = it->second;
        const std::uint32_t position = usable(r, std::min({match.tokens, r.coverage.value, question.limit.value}));
        if (position == 0) continue;
        const bool same = !question.session.empty() && r.session == question.session;
        ranked.push_back({match.checkpoint, position, same, r.publication});
    }
    std::sort(ranked.begin(), ranked.end(), [](const candidate& a, const candidate& b) {
        if (a.position != b.position) return a.position > b.position;
        if (a.same_session != b.same_session) return a.same_session;
        if (a.publication != b.publication) return a.publication > b.publication;
        return a.checkpoint < b.checkpoint;
    });
    return ranked;
}

// The deepest legal position within `matched` tokens: exact points at their coverage only (A3), others at a page
// border unless the tail is worth a copy (G7).
std::uint32_t resource_manager::usable(const record& r, std::uint32_t matched) const {
    if (r.exact_only) return matched == r.coverage.value ? matched : 0;
    const std::uint32_t tail = matched % options_.page_tokens;
    return tail >= options_.tail_copy_tokens_min ? matched : matched - tail;
}

bool resource_manager::verified(const candidate& c, const choose_source& question) const {
    return index_.shared(c.checkpoint, question.tokens.span(), question.limit.value) >= c.position;
}

bool resource_manager::exists(const std::shared_ptr<const program_view>& view, checkpoint_id id) {
    if (seen_ != view) {
        seen_ = view;
        seen_points_.clear();
        for (const point_view& point : view->points) seen_points_.insert(point.checkpoint);
    }
    return seen_points_.contains(id);
}

victims_chosen resource_manager::on(const choose_victims& question) const {
    return quote_victims(question, [this](checkpoint_id id) { return rank_of(id); });
}

// A point whose publication is still on its way here counts as just used.
retention_rank resource_manager::rank_of(checkpoint_id id) const {
    const auto it = records_.find(id);
    if (it == records_.end()) return {false, clock_ + 1};
    return {it->second.reused, it->second.last_use};
}

void resource_manager::on(const checkpoint_published& event) {
    record r;
    r.coverage = event.coverage;
    r.exact_only = event.exact_only;
    r.session = event.session;
    r.publication = r.last_use = ++clock_;
    r.reused = heirs_.contains(event.from);
    index_.add(event.checkpoint, event.tokens.part(0, event.coverage.value), event.exact_only);
    records_[event.checkpoint] = std::move(r);
}

void resource_manager::on(const checkpoint_dropped& event) {
    index_.remove(event.checkpoint);
    records_.erase(event.checkpoint);
}

void resource_manager::on(const checkpoint_adopted& event) {
    const auto it = records_.find(event.checkpoint);
    if (it != records_.end()) {
        it->second.last_use = ++clock_;
        it->second.reused = true;
    }
    if (!heirs_.insert(event.by).second) return;
    heirs_order_.push_back(event.by);
    if (heirs_order_.size() <= heirs_max) return;
    heirs_.erase(heirs_order_.front());
    heirs_order_.pop_front();
}

std::size_t resource_manager::metadata_bytes() const {
    return index_.metadata_bytes() + records_.size() * (sizeof(record) + sizeof(checkpoint_id) + 2 * sizeof(void*));
}

}  // namespace fermata

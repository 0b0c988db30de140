#include "actors/cores/reclaim.hpp"

#include <algorithm>
#include <unordered_set>

namespace fermata {

namespace {

struct candidate {
    const point_view* point = nullptr;
    retention_rank rank;
};

// Who holds each page, over all points of the picture.
class page_holders {
public:
    explicit page_holders(const program_view& view) {
        for (const point_view& point : view.points)
            for (const page_id page : point.pages) {
                if (page.value >= count_.size()) count_.resize(page.value + std::size_t{1});
                ++count_[page.value];
            }
    }
    // Drops the point; returns pages that became free.
    std::uint32_t drop(const point_view& point) {
        std::uint32_t freed = 0;
        for (std::size_t i = 0; i < point.pages.size(); ++i)
            if (--count_[point.pages[i].value] == 0 && !active(point, i)) ++freed;
        return freed;
    }
    // Pages that would be lost again if the point stayed after all.
    std::uint32_t cost_of_keeping(const point_view& point) const {
        std::uint32_t lost = 0;
        for (std::size_t i = 0; i < point.pages.size(); ++i)
            if (count_[point.pages[i].value] == 0 && !active(point, i)) ++lost;
        return lost;
    }
    void take_back(const point_view& point) {
        for (const page_id page : point.pages) ++count_[page.value];
    }

private:
    static bool active(const point_view& point, std::size_t i) {
        return i < point.other_holders.size() && point.other_holders[i] > 0;
    }
    std::vector<std::uint32_t> count_;
};

}  // namespace

victims_chosen quote_victims(const choose_victims& question,
                             const std::function<retention_rank(checkpoint_id)>& rank_of) {
    victims_chosen answer;
    answer.turn = question.turn;
    answer.enough = question.pages == 0 && question.state_slots == 0;
    if (!question.view || answer.enough) return answer;

    const std::unordered_set<checkpoint_id> keep(question.keep.begin(), question.keep.end());
    std::vector<candidate> order;
    for (const point_view& point : question.view->points)
        if (!keep.contains(point.checkpoint)) order.push_back({&point, rank_of(point.checkpoint)});
    std::sort(order.begin(), order.end(), [](const candidate& a, const candidate& b) {
        if (a.rank.reused != b.rank.reused) return b.rank.reused;
        if (a.rank.last_use != b.rank.last_use) return a.rank.last_use < b.rank.last_use;
        return a.point->checkpoint < b.point->checkpoint;
    });

    page_holders holders(*question.view);
    std::vector<const point_view*> dropped;
    const auto enough = [&](std::uint32_t pages, std::uint32_t slots) {
        return pages >= question.pages && slots >= question.state_slots;
    };
    for (const candidate& each : order) {
        if (enough(answer.pages, answer.state_slots)) break;
        const bool pages_missing = answer.pages < question.pages;
        if (!pages_missing && !each.point->exact_only) continue;
        answer.pages += holders.drop(*each.point);
        answer.state_slots += each.point->exact_only ? 1 : 0;
        dropped.push_back(each.point);
    }
    answer.enough = enough(answer.pages, answer.state_slots);

    // What went along without need stays, the most valuable first. Short of enough, everything that frees stays dropped.
    const std::uint32_t pages_wanted = answer.enough ? question.pages : answer.pages;
    const std::uint32_t slots_wanted = answer.enough ? question.state_slots : answer.state_slots;
    for (auto it = dropped.rbegin(); it != dropped.rend(); ++it) {
        const std::uint32_t pages = holders.cost_of_keeping(**it);
        const std::uint32_t slots = (*it)->exact_only ? 1 : 0;
        if (answer.pages - pages < pages_wanted || answer.state_slots - slots < slots_wanted) continue;
        holders.take_back(**it);
        answer.pages -= pages;
        answer.state_slots -= slots;
        *it = nullptr;
    }
    for (const point_view* point : dropped)
        if (point) answer.drops.push_back(point->checkpoint);
    return answer;
}

}  // namespace fermata

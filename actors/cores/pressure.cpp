#include "actors/cores/pressure.hpp"

namespace fermata::scheduling {

namespace {

bool may_be_paused(const sequence& s) { return s.runnable() && !s.recovering; }

}  // namespace

relief_choice relieve_resident(const sequence& in_need, const std::vector<const sequence*>& residents) {
    bool others = false, younger = false;
    for (auto it = residents.rbegin(); it != residents.rend(); ++it) {
        const sequence& each = **it;
        if (each.who == in_need.who) continue;
        others = true;
        if (each.who < in_need.who) break;
        younger = true;
        if (may_be_paused(each)) return {relief::pause, each.who};
    }
    if (!others) return {relief::fail, in_need.who};
    if (younger || !may_be_paused(in_need)) return {relief::wait, in_need.who};
    return {relief::pause, in_need.who};
}

relief_choice relieve_paused(const sequence& in_need, const std::vector<const sequence*>& residents) {
    if (residents.empty()) return {relief::fail, in_need.who};
    if (residents.front()->who < in_need.who) return {relief::wait, in_need.who};
    for (auto it = residents.rbegin(); it != residents.rend(); ++it)
        if (may_be_paused(**it)) return {relief::pause, (*it)->who};
    return {relief::wait, in_need.who};
}

}  // namespace fermata::scheduling

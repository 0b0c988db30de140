#include "actors/journal/mask.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace fermata {
namespace {

constexpr std::size_t sessions_max = 65536;  // names told apart; later ones count as one
constexpr std::uint32_t vocabulary_max = 1u << 24;

bool masked_already(std::string_view text, std::string_view before, std::string_view after) {
    if (!text.starts_with(before) || !text.ends_with(after) || text.size() <= before.size() + after.size()) return false;
    auto digits = text.substr(before.size(), text.size() - before.size() - after.size());
    return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string masked_text(std::string_view text) {
    if (text.empty() || masked_already(text, "<", " bytes>")) return std::string(text);
    return "<" + std::to_string(text.size()) + " bytes>";
}

journal_mask::journal_mask(bool text, std::uint32_t vocabulary) : text_(text) {
    if (text) return;
    map_.resize(std::min(vocabulary, vocabulary_max));
    std::iota(map_.begin(), map_.end(), 0);
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    std::mt19937_64 random(seed);
    std::shuffle(map_.begin(), map_.end(), random);
}

token_id journal_mask::token(token_id id) const {
    return id >= 0 && static_cast<std::size_t>(id) < map_.size() ? map_[static_cast<std::size_t>(id)] : id;
}

std::string journal_mask::session(const std::string& name) {
    if (name.empty() || masked_already(name, "<session ", ">")) return name;
    auto found = sessions_.find(name);
    if (found == sessions_.end()) {
        if (sessions_.size() >= sessions_max) return "<session 0>";
        found = sessions_.emplace(name, static_cast<std::uint32_t>(sessions_.size() + 1)).first;
    }
    return "<session " + std::to_string(found->second) + ">";
}

// The 32-bit signed members of messages are token ids, all of them.
template <class T>
void journal_mask::walk(T& x, std::string_view name) {
    using namespace wire;
    if constexpr (std::same_as<T, token_id>) {
        x = token(x);
    } else if constexpr (std::same_as<T, token_run>) {
        std::vector<token_id> tokens(x.span().begin(), x.span().end());
        for (token_id& each : tokens) each = token(each);
        x = token_run(std::move(tokens));
    } else if constexpr (std::same_as<T, std::string>) {
        x = name == "session" ? session(x) : masked_text(x);
    } else if constexpr (vector_of<T>) {
        for (auto& each : x) walk(each, name);
    } else if constexpr (optional_of<T>) {
        if (x) walk(*x, name);
    } else if constexpr (shared_const<T>) {
        if (!x) return;
        auto copy = std::make_shared<typename is_shared<T>::element>(*x);
        walk(*copy, name);
        x = std::move(copy);
    } else if constexpr (message<T>) {
        for_each_field<T>([&](const auto& each) { walk(x.*each.member, each.name); });
    }
}

void journal_mask::apply(bus_message& message) {
    if (text_) return;
    std::visit([&](auto& each) { walk(each, {}); }, message);
}

}  // namespace fermata

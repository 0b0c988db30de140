// Scheduler <-> ResourceManager (sources, reclaim) and Program -> ResourceManager (what exists, what was used).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "messages/cycle.hpp"
#include "messages/field.hpp"
#include "messages/ids.hpp"
#include "messages/token_run.hpp"

namespace fermata {

// Which point should this sequence resume from? `tokens` is the prompt, or the ledger of a paused one.
struct choose_source {
    cycle_no turn{};
    ticket who{};
    token_run tokens;
    token_pos limit{0};  // deepest allowed position: at least one token must be left to compute for a first token
    std::string session;
    std::shared_ptr<const program_view> view;
    static constexpr std::string_view type_name = "choose_source";
    static constexpr auto fields() {
        using t = choose_source;
        return std::tuple{field("turn", &t::turn), field("who", &t::who), field("tokens", &t::tokens),
                          field("limit", &t::limit), field("session", &t::session), field("view", &t::view)};
    }
};

struct source_chosen {
    cycle_no turn{};
    ticket who{};
    std::optional<checkpoint_id> source;  // none: root
    token_pos position{0};
    static constexpr std::string_view type_name = "source_chosen";
    static constexpr auto fields() {
        using t = source_chosen;
        return std::tuple{field("turn", &t::turn), field("who", &t::who), field("source", &t::source),
                          field("position", &t::position)};
    }
};

// Which optional content should go so that this many pages (and slots) become free?
struct choose_victims {
    cycle_no turn{};
    std::uint32_t pages = 0;
    std::uint32_t state_slots = 0;
    std::vector<checkpoint_id> keep;  // sources being bound (K3)
    std::shared_ptr<const program_view> view;
    static constexpr std::string_view type_name = "choose_victims";
    static constexpr auto fields() {
        using t = choose_victims;
        return std::tuple{field("turn", &t::turn), field("pages", &t::pages), field("state_slots", &t::state_slots),
                          field("keep", &t::keep), field("view", &t::view)};
    }
};

struct victims_chosen {
    cycle_no turn{};
    std::vector<checkpoint_id> drops;
    std::uint32_t pages = 0;  // pages that dropping all of them frees
    std::uint32_t state_slots = 0;
    bool enough = false;      // false: nothing that may go is left beyond `drops`
    static constexpr std::string_view type_name = "victims_chosen";
    static constexpr auto fields() {
        using t = victims_chosen;
        return std::tuple{field("turn", &t::turn), field("drops", &t::drops), field("pages", &t::pages),
                          field("state_slots", &t::state_slots), field("enough", &t::enough)};
    }
};

// Program froze a resume point.
struct checkpoint_published {
    checkpoint_id checkpoint{};
    ticket from{};
    token_run tokens;        // exactly what it covers
    token_pos coverage{0};
    bool exact_only = false;
    std::string session;
    static constexpr std::string_view type_name = "checkpoint_published";
    static constexpr auto fields() {
        using t = checkpoint_published;
        return std::tuple{field("checkpoint", &t::checkpoint), field("from", &t::from), field("tokens", &t::tokens),
                          field("coverage", &t::coverage), field("exact_only", &t::exact_only),
                          field("session", &t::session)};
    }
};

struct checkpoint_dropped {
    checkpoint_id checkpoint{};
    static constexpr std::string_view type_name = "checkpoint_dropped";
    static constexpr auto fields() { return std::tuple{field("checkpoint", &checkpoint_dropped::checkpoint)}; }
};

// A bind from this point is complete (F11): evidence of real use.
struct checkpoint_adopted {
    checkpoint_id checkpoint{};
    ticket by{};
    token_pos position{0};
    static constexpr std::string_view type_name = "checkpoint_adopted";
    static constexpr auto fields() {
        using t = checkpoint_adopted;
        return std::tuple{field("checkpoint", &t::checkpoint), field("by", &t::by),
                          field("position", &t::position)};
    }
};

}  // namespace fermata

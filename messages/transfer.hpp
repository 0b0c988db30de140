// Program <-> Transfer: copies between pages and state slots. Source and destination are leased by Program until
// `copy_done` comes back; a late answer is recognised by its id (N2).
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "messages/field.hpp"
#include "messages/ids.hpp"

namespace fermata {

struct page_copy {
    std::uint32_t pool = 0;
    page_id from{}, to{};
    bool operator==(const page_copy&) const = default;
    static constexpr std::string_view type_name = "page_copy";
    static constexpr auto fields() {
        using t = page_copy;
        return std::tuple{field("pool", &t::pool), field("from", &t::from), field("to", &t::to)};
    }
};

struct state_copy {
    state_slot from{}, to{};
    bool operator==(const state_copy&) const = default;
    static constexpr std::string_view type_name = "state_copy";
    static constexpr auto fields() { return std::tuple{field("from", &state_copy::from), field("to", &state_copy::to)}; }
};

struct copy_order {
    copy_id copy{};
    std::vector<page_copy> pages;
    std::vector<state_copy> states;
    static constexpr std::string_view type_name = "copy_order";
    static constexpr auto fields() {
        using t = copy_order;
        return std::tuple{field("copy", &t::copy), field("pages", &t::pages), field("states", &t::states)};
    }
};

struct copy_done {
    copy_id copy{};
    bool complete = true;  // false: failed, the destination is undefined
    std::string error;
    static constexpr std::string_view type_name = "copy_done";
    static constexpr auto fields() {
        using t = copy_done;
        return std::tuple{field("copy", &t::copy), field("complete", &t::complete), field("error", &t::error)};
    }
};

}  // namespace fermata

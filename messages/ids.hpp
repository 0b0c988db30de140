// The ids of the bus. Distinct types: adding a page index to a token position does not compile.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace fermata {

// An id without arithmetic: compared, hashed, printed, never added.
template <class Tag, class Rep>
struct strong_id {
    using rep = Rep;
    Rep value{};
    constexpr strong_id() = default;
    constexpr explicit strong_id(Rep v) : value(v) {}
    friend constexpr auto operator<=>(strong_id, strong_id) = default;
};

// A count or position: differences and sums with its own kind only.
template <class Tag, class Rep>
struct strong_count {
    using rep = Rep;
    Rep value{};
    constexpr strong_count() = default;
    constexpr explicit strong_count(Rep v) : value(v) {}
    friend constexpr auto operator<=>(strong_count, strong_count) = default;
    friend constexpr strong_count operator+(strong_count a, strong_count b) {
        return strong_count(static_cast<Rep>(a.value + b.value));
    }
    friend constexpr strong_count operator-(strong_count a, strong_count b) {
        return strong_count(static_cast<Rep>(a.value - b.value));
    }
    constexpr strong_count& operator+=(strong_count b) { return *this = *this + b; }
    constexpr strong_count& operator-=(strong_count b) { return *this = *this - b; }
};

using ticket = strong_id<struct ticket_tag, std::uint64_t>;          // FIFO order of a sequence; kept across pauses
using lane = strong_id<struct lane_tag, std::uint32_t>;              // an execution binding, 0 .. max_concurrency - 1
using page_id = strong_id<struct page_tag, std::uint32_t>;           // a page of one pool
using state_slot = strong_id<struct state_tag, std::uint32_t>;       // a StateImage slot
using checkpoint_id = strong_id<struct checkpoint_tag, std::uint64_t>;
using record_id = strong_id<struct record_tag, std::uint64_t>;
using cycle_no = strong_id<struct cycle_tag, std::uint64_t>;
using epoch = strong_id<struct epoch_tag, std::uint64_t>;            // Program's structural version (K10)
using request_id = strong_id<struct request_tag, std::uint64_t>;     // one client request; its choices have tickets
using copy_id = strong_id<struct copy_tag, std::uint64_t>;           // generation number of one copy (N2)
using token_pos = strong_count<struct pos_tag, std::uint32_t>;       // position or length in tokens
using byte_count = strong_count<struct bytes_tag, std::uint64_t>;

}  // namespace fermata

template <class Tag, class Rep>
struct std::hash<fermata::strong_id<Tag, Rep>> {
    std::size_t operator()(fermata::strong_id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};

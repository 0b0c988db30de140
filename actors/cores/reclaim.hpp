// What goes first when room is needed: a pure quote over one picture of Program (K10). Nothing here takes a reference.
//
// K2, K3: a page is freed only when every point that holds it goes and no active sequence refers to it; points to keep
// hold their pages. K4, simplified: content that was never reused goes before content that was, within each by last
// use. Evidence, host replicas and losses in tokens refine the order later; the question and the answer stay.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "messages/context.hpp"

namespace fermata {

struct retention_rank {
    bool reused = false;
    std::uint64_t last_use = 0;  // a logical count, not a time
};

victims_chosen quote_victims(const choose_victims& question,
                             const std::function<retention_rank(checkpoint_id)>& rank_of);

}  // namespace fermata

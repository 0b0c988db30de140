// Transfer: in which order copies run. A pure core: it never touches memory; the shell runs what is started and
// reports each end once.
//
// Invariants: first submitted, first started; at most `parallel_max` run; every submitted copy gets exactly one
// `copy_done`, and a late or unknown one is nothing (N2). A running copy can't be called off: its readers are real
// (N4).
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <variant>
#include <vector>

#include "messages/transfer.hpp"

namespace fermata {

struct transfer_options {
    std::uint32_t parallel_max = 1;
};

// Command: run this copy now. `copy_done` goes to Program.
struct start_copy {
    copy_order order;
};
using transfer_command = std::variant<start_copy, copy_done>;

class transfer {
public:
    using commands = std::vector<transfer_command>;

    explicit transfer(transfer_options options = {});  // throws std::invalid_argument

    void on(const copy_order& order, commands& out);
    void on(const copy_done& done, commands& out);

    std::size_t queued() const { return queue_.size(); }
    std::size_t running() const { return running_.size(); }

private:
    void start_next(commands& out);

    transfer_options options_;
    std::deque<copy_order> queue_;
    std::set<copy_id> running_;
};

}  // namespace fermata

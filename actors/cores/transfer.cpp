#include "actors/cores/transfer.hpp"

#include <stdexcept>
#include <utility>

namespace fermata {

transfer::transfer(transfer_options options) : options_(options) {
    if (options_.parallel_max == 0) throw std::invalid_argument("transfer: parallel_max must be at least 1");
}

void transfer::on(const copy_order& order, commands& out) {
    queue_.push_back(order);
    start_next(out);
}

void transfer::on(const copy_done& done, commands& out) {
    if (running_.erase(done.copy) == 0) return;
    out.emplace_back(done);
    start_next(out);
}

void transfer::start_next(commands& out) {
    while (!queue_.empty() && running_.size() < options_.parallel_max) {
        running_.insert(queue_.front().copy);
        out.emplace_back(start_copy{std::move(queue_.front())});
        queue_.pop_front();
    }
}

}  // namespace fermata

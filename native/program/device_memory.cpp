// See device_memory.hpp.
#include "native/program/device_memory.hpp"

#include <cstring>

namespace fermata::program_detail {

device_memory::block::block(backend* device, std::size_t bytes, const char* what) {
    if (bytes == 0) return;
    if (device) on_device = device->allocate(bytes, memory_kind::device);
    else on_host = lazy_memory(bytes, what);
}

device_memory::device_memory(const model_layout& layout, std::shared_ptr<backend> device, std::uint32_t pages,
                             std::uint32_t state_slots)
    : device_(std::move(device)), states_(device_.get(), std::size_t{state_slots} * layout.state_bytes, "StateImages"),
      state_bytes_(layout.state_bytes), pages_(pages), state_slots_(state_slots) {
    for (const pool_layout& pool : layout.pools) {
        pools_.emplace_back(device_.get(), std::size_t{pages} * pool.page_bytes, pool.name.c_str());
        page_bytes_.push_back(pool.page_bytes);
    }
}

context_memory device_memory::addresses() const {
    context_memory out;
    for (const block& pool : pools_) out.pools.push_back(pool.data());
    out.states = states_.data();
    return out;
}

std::size_t device_memory::bytes_of(const copy_order& order) const {
    std::size_t bytes = order.states.size() * state_bytes_;
    for (const page_copy& each : order.pages)
        if (each.pool < page_bytes_.size()) bytes += page_bytes_[each.pool];
    return bytes;
}

copy_done device_memory::copy(const copy_order& order) const {
    const auto refused = [&](const char* what) { return copy_done{order.copy, false, what}; };
    for (const page_copy& each : order.pages)
        if (each.pool >= pools_.size() || each.from.value >= pages_ || each.to.value >= pages_)
            return refused("the order names a page that does not exist");
    for (const state_copy& each : order.states)
        if (each.from.value >= state_slots_ || each.to.value >= state_slots_)
            return refused("the order names a state slot that does not exist");
    try {
        for (const page_copy& each : order.pages)
            copy_block(pools_[each.pool], page_bytes_[each.pool], each.from.value, each.to.value);
        for (const state_copy& each : order.states) copy_block(states_, state_bytes_, each.from.value, each.to.value);
    } catch (const backend_error& fault) {
        return refused(fault.what());
    }
    return {order.copy, true, {}};
}

void device_memory::copy_block(const block& memory, std::size_t bytes, std::uint32_t from, std::uint32_t to) const {
    if (from == to) return;
    std::byte* const target = memory.data() + to * bytes;
    const std::byte* const source = memory.data() + from * bytes;
    if (device_) device_->wait(device_->copy(target, source, bytes));
    else std::memcpy(target, source, bytes);
}

namespace {

class page_copy_engine final : public copy_engine {
public:
    explicit page_copy_engine(std::shared_ptr<const device_memory> memory) : memory_(std::move(memory)) {}
    copy_done run(const copy_order& order) override { return memory_->copy(order); }

private:
    std::shared_ptr<const device_memory> memory_;
};

}  // namespace

std::shared_ptr<copy_engine> make_copy_engine(std::shared_ptr<const device_memory> memory) {
    return std::make_shared<page_copy_engine>(std::move(memory));
}

}  // namespace fermata::program_detail

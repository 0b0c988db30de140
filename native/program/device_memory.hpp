// Where pages and StateImages lie, and the copies between them: memory of the model's device, or plain memory of the
// host for a model without one. Program owns this through a shared pointer, and so does the copy engine given to
// Transfer: a copy under way outlives nothing it writes to.
#pragma once

#include <memory>
#include <vector>

#include "native/backend.hpp"
#include "native/program.hpp"
#include "native/stores/lazy_memory.hpp"

namespace fermata::program_detail {

class device_memory {
public:
    device_memory(const model_layout& layout, std::shared_ptr<backend> device, std::uint32_t pages,
                  std::uint32_t state_slots);

    context_memory addresses() const;
    std::size_t bytes_of(const copy_order& order) const;
    // Copies whole pages and images. Refuses ids that don't exist; source and destination are leased by the caller.
    copy_done copy(const copy_order& order) const;

private:
    // One block of either kind.
    struct block {
        block(backend* device, std::size_t bytes, const char* what);
        std::byte* data() const { return on_device ? on_device.data() : on_host.data(); }
        buffer on_device;
        lazy_memory on_host;
    };
    void copy_block(const block& memory, std::size_t bytes, std::uint32_t from, std::uint32_t to) const;

    std::shared_ptr<backend> device_;  // before everything allocated there
    std::vector<block> pools_;
    block states_;
    std::vector<std::size_t> page_bytes_;
    std::size_t state_bytes_ = 0;
    std::uint32_t pages_ = 0, state_slots_ = 0;
};

std::shared_ptr<copy_engine> make_copy_engine(std::shared_ptr<const device_memory> memory);

}  // namespace fermata::program_detail

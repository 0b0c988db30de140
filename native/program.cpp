// The door of native: hands every call on to the core. See native/program.hpp.
#include "native/program.hpp"

#include "native/program/core.hpp"

namespace fermata {

struct program::impl {
    impl(program_options options, std::unique_ptr<model> family) : core(std::move(options), std::move(family)) {}
    program_detail::program_core core;
};

program::program(program_options options, std::unique_ptr<model> family)
    : impl_(std::make_unique<impl>(std::move(options), std::move(family))) {}
program::~program() = default;

void program::run_cycle(const cycle_plan& plan, cycle_done& done) { impl_->core.run_cycle(plan, done); }
bool program::next_copy(copy_order& order) { return impl_->core.next_copy(order); }
bool program::complete(const copy_done& copy, program_notice& notice) { return impl_->core.complete(copy, notice); }
std::shared_ptr<copy_engine> program::copies() { return impl_->core.copies(); }
void program::take_events(std::vector<context_event>& events) { impl_->core.take_events(events); }
std::shared_ptr<const program_view> program::view() const { return impl_->core.view(); }
const model_layout& program::layout() const { return impl_->core.layout(); }
const program_options& program::options() const { return impl_->core.options(); }
memory_plan program::plan() const { return impl_->core.plan(); }
std::atomic<bool>& program::stop_flag() { return impl_->core.stop_flag(); }
std::string program::check_integrity() const { return impl_->core.check_integrity(); }

}  // namespace fermata

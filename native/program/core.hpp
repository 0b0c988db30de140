// Program's inside. One class; its functions lie in one file a concern: cycle.cpp (the order of a cycle), bind.cpp
// (start and resume), holders.cpp (what is held and given back), unit.cpp (permits and the device), commit.cpp
// (what a unit brought), poison.cpp (what an invariant violation costs), view.cpp (what others may see), integrity.cpp.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "native/program.hpp"
#include "native/program/checkpoint_table.hpp"
#include "native/program/copy_ledger.hpp"
#include "native/program/device_memory.hpp"
#include "native/program/limits.hpp"
#include "native/program/sequence.hpp"
#include "native/sampling/sampler.hpp"
#include "native/stores/page_store.hpp"
#include "native/stores/state_store.hpp"

namespace fermata::program_detail {

// A sequence's part in the unit under way.
struct unit_member {
    sequence* who = nullptr;
    std::uint32_t tokens = 0;
    bool samples = false;          // its last position brings a new token
    std::uint32_t score_rows = 0;  // prompt positions whose logits are reported
    float* logits = nullptr;
    std::uint32_t logit_rows = 0;
    bool had_prompt = false;  // before this unit
    std::size_t row = 0;      // place of its result plus one; 0: none
};

struct saboteur;  // breaks what must hold, for tests of what that costs

class program_core {
public:
    program_core(program_options options, std::unique_ptr<model> family);
    ~program_core();

    void run_cycle(const cycle_plan& plan, cycle_done& done);
    bool next_copy(copy_order& order) { return copies_.next(order); }
    bool complete(const copy_done& copy, program_notice& notice);
    std::shared_ptr<copy_engine> copies() const { return engine_; }
    void take_events(std::vector<context_event>& events);
    std::shared_ptr<const program_view> view();
    const model_layout& layout() const { return model_->layout(); }
    const program_options& options() const { return options_; }
    memory_plan plan() const { return plan_of(limits_, layout()); }
    std::atomic<bool>& stop_flag() { return stop_; }
    std::string check_integrity() const;

private:
    friend struct saboteur;

    // cycle.cpp
    void drop(checkpoint_id id);
    void pause(ticket who, cycle_done& done);
    void answer(cycle_done& done);

    // bind.cpp
    struct bind_request;
    void bind(const bind_order& order, cycle_done& done);
    std::optional<bind_result> refusal_of(const bind_order& order, bind_request& request);
    std::optional<bind_result> fault_of_source(const bind_order& order, bind_request& request);
    std::string fault_of_spec(const sequence_spec& spec) const;
    std::optional<shortage> shortage_of(const bind_request& request) const;
    sequence& sequence_for(const bind_order& order);
    bool install(const bind_order& order, const bind_request& request, sequence& seq, pool_permit permit);
    void adopt(sequence& seq);
    void count_first_bind(sequence& seq);

    // holders.cpp
    void unbind(sequence& seq);  // device memory and lane go; the ledger stays
    void forget(sequence& seq);  // unbind, and the ledger goes too
    void release_point(checkpoint_id id);
    void leave(checkpoint& point);  // now, or when its last reader is done
    void reader_done(const copy_under_way& copy);
    void freeze_endpoint(sequence& seq);
    void publish_input_point(sequence& seq);
    checkpoint_id publish(checkpoint point, ticket from);
    void retire_parent(const sequence& seq, std::uint32_t coverage);
    void retire_contained(const checkpoint& newer);
    void structure_changed();

    // unit.cpp
    sequence* find(ticket who);
    void collect_rows(const cycle_plan& plan, cycle_done& done);
    void add_row(sequence& seq, std::uint32_t tokens, cycle_done& done);
    bool admit(sequence& seq, std::uint32_t tokens, cycle_done& done);
    void add_member(sequence& seq, std::uint32_t tokens);
    bool pages_may_be_written(const sequence& seq, std::uint32_t tokens) const;
    void run_unit(cycle_done& done);
    void abandon_unit();
    void settle(sequence& seq);

    // commit.cpp
    void commit_unit(cycle_done& done);
    void conclude(sequence& seq, bool had_prompt, const row_result& row);
    row_result commit_member(const unit_member& member);
    void report_prompt(const unit_member& member, std::uint32_t first_new, row_result& row);
    void sample(const unit_member& member, row_result& row);
    std::size_t drawn_rows() const;
    void end_sequence(sequence& seq, const row_result& row);

    // poison.cpp
    template <class Order>
    void guarded(ticket who, cycle_done& done, Order&& order) {
        try {
            order();
        } catch (const std::logic_error& fault) {
            poison(who, fault.what(), done);
        }
    }
    void poison(ticket who, const char* what, cycle_done& done);
    void quarantine(sequence& seq);
    void guarded_release(checkpoint_id id);

    // integrity.cpp
    std::string fault_of_copy(const copy_under_way& copy) const;
    std::string fault_of_view(std::span<const page_store::expectation> pages) const;

    // view.cpp
    std::shared_ptr<const program_view> unreported_view();
    occupancy room() const;
    void set_gauges() const;

    time_ns now() const { return options_.clock ? options_.clock() : 0; }
    std::span<const float> logit_row(const unit_member& member, std::uint32_t row) const {
        return {member.logits + std::size_t{row} * layout().vocabulary, layout().vocabulary};
    }

    program_options options_;
    std::unique_ptr<model> model_;
    limits limits_;
    std::shared_ptr<device_memory> memory_;
    std::shared_ptr<copy_engine> engine_;

    page_pools pools_;
    state_store states_;
    copy_ledger copies_;
    checkpoint_table points_;
    std::unordered_map<ticket, std::unique_ptr<sequence>> sequences_;  // its permits return to pools_: dies first
    std::vector<sequence*> lanes_;

    sampling::sampler sampler_;
    lazy_memory logits_;  // one row a lane, then the rows of scored prompts
    std::vector<unit_member> members_;
    std::vector<unit_row> rows_;
    std::uint32_t batch_left_ = 0, score_rows_left_ = 0;

    std::vector<context_event> events_;
    epoch epoch_{1};
    std::shared_ptr<const program_view> view_;
    bool view_outdated_ = true;
    bool view_reported_ = false;

    std::atomic<bool> stop_{false};
    time_ns unit_end_ = 0;
    bool work_was_left_ = false;
};

}  // namespace fermata::program_detail

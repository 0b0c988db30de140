// The right answer: the same sequence alone on a fresh device with ample memory, never cut, paused or resumed (M7).
// Greedy answers without penalties are also computed from the tokens alone, without Program.
#pragma once

#include <memory>
#include <vector>

#include "native/models/oracle/oracle.hpp"
#include "native/program.hpp"

namespace fermata::simulation {

struct answer {
    std::vector<token_id> tokens;
    std::vector<float> logprobs;
    std::vector<std::vector<token_logprob>> top;
    std::vector<float> prompt_logprobs;
    std::vector<std::vector<token_logprob>> prompt_top;
    finish_reason finish = finish_reason::none;

    void add(const row_result& row);
};

class solo_device {
public:
    solo_device(const program_options& like, const oracle::options& model);
    answer run(const std::shared_ptr<const sequence_spec>& spec);

private:
    program_options options_;
    program program_;
    std::uint64_t next_ = 1;
    cycle_done done_;
    std::vector<context_event> events_;
};

// Empty when `got` is what it must be: all of it, or (`part`) a beginning of it. Else what differs.
std::string compare(const answer& got, const answer& wanted, bool part);

}  // namespace fermata::simulation

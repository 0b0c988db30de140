#include "frontend/planning/request_bytes.hpp"

namespace fermata {
namespace {

// Of one choice between preparation and its end: its description, its sequence in the Scheduler, its detokenizer, and
// what is held back of its answer.
constexpr std::uint64_t choice_bytes = 4096;

std::uint64_t of_strings(const std::vector<std::string>& list) {
    std::uint64_t bytes = 0;
    for (const std::string& each : list) bytes += sizeof each + each.size();
    return bytes;
}

}  // namespace

std::uint64_t bytes_of(const submit& request) {
    return sizeof request + request.messages_json.size() + request.tools_json.size() +
           request.template_arguments_json.size() + request.prompt_text.size() + request.session.size() +
           request.prompt_tokens.size() * sizeof(token_id) + request.stop_tokens.size() * sizeof(token_id) +
           request.sampling.logit_bias.size() * sizeof(token_bias) + of_strings(request.stop);
}

std::uint64_t bytes_of(const tokenize_text& request) {
    return sizeof request + request.text.size() + request.messages_json.size() + request.tools_json.size() +
           request.template_arguments_json.size();
}

std::uint64_t bytes_of(const detokenize_tokens& request) {
    return sizeof request + request.tokens.size() * sizeof(token_id);
}

std::uint64_t bytes_of(const prepared& result) {
    std::uint64_t bytes = sizeof result + result.echo_text.size();
    if (result.order.choices.empty()) return bytes;
    const sequence_spec& first = *result.order.choices.front();  // the others differ in their number
    const std::uint64_t own = choice_bytes + first.session.size() + 2 * of_strings(first.guard.stop) +
                              first.guard.stop_tokens.size() * sizeof(token_id) +
                              first.sampling.logit_bias.size() * sizeof(token_bias);
    return bytes + first.prompt.size() * sizeof(token_id) + result.order.choices.size() * own;
}

}  // namespace fermata

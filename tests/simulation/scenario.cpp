#include "scenario.hpp"

#include <algorithm>
#include <sstream>

namespace fermata::simulation {

namespace {

std::shared_ptr<const token_table> draw_tokens(random_source& random, std::uint32_t vocabulary) {
    auto table = std::make_shared<token_table>();
    for (std::uint32_t i = 0; i < vocabulary; ++i) {
        std::string bytes;
        for (std::uint32_t k = 1 + random.upto(1); k > 0; --k) bytes += static_cast<char>('a' + random.upto(5));
        table->bytes.push_back(bytes);
    }
    const auto last = static_cast<token_id>(vocabulary - 1);
    table->bytes.back().clear();
    table->end_of_generation = {last};
    return table;
}

void draw_sizes(random_source& random, scenario& s) {
    program_options& device = s.node.device;
    oracle::options& model = s.node.model;
    s.vocabulary = static_cast<std::uint32_t>(random.between(24, 200));
    model.vocabulary = s.vocabulary;
    model.layers = 1 + random.upto(1);
    model.kv_bytes = 8;
    model.state_bytes = random.chance(50) ? 0 : 8 * static_cast<std::size_t>(random.between(1, 6));
    model.page_tokens = std::vector<std::uint32_t>{2, 4, 8, 16}[random.upto(3)];
    device.max_context_tokens = static_cast<std::uint32_t>(random.between(model.page_tokens * 2, 160));
    model.context_tokens = device.max_context_tokens;
    device.max_concurrency = 1 + random.upto(random.chance(20) ? 7 : 3);
    const std::uint32_t least = std::max((device.max_context_tokens + model.page_tokens - 1) / model.page_tokens,
                                         device.max_concurrency);
    const std::uint32_t most = std::max(least, device.max_concurrency *
                                                   ((device.max_context_tokens + model.page_tokens - 1) / model.page_tokens));
    const std::uint32_t spread = random.chance(60) ? std::min(most - least, 4u) : most - least;
    device.kv_capacity_tokens = std::uint64_t{least + random.upto(spread)} * model.page_tokens;
    device.device_state_slots = random.upto(4);
    device.prefill_chunk_tokens = static_cast<std::uint32_t>(random.magnitude(1, 64));
    device.batch_tokens = std::max(device.prefill_chunk_tokens, device.max_concurrency + 1) + random.upto(32);
    device.tokens = draw_tokens(random, s.vocabulary);
}

void draw_scheduling(random_source& random, scenario& s) {
    scheduler_options& o = s.node.scheduling;
    o.max_pending = random.chance(20) ? static_cast<std::uint32_t>(random.between(1, 6)) : 256;
    if (random.chance(15)) o.pending_timeout = random.between(1'000'000, 60'000'000);
    if (random.chance(40)) o.tau_high = 2, o.tau_admit = 1.9;  // no gate
    else if (random.chance(30)) o.tau_high = 0.6, o.tau_admit = 0.3;
    if (random.chance(40)) o.tau_low = 0;
    else if (random.chance(30)) o.tau_low = 0.3;
    s.node.tail_copy_tokens_min = 1 + random.upto(s.node.model.page_tokens);
    s.node.parallel_copies = 1 + random.upto(2);
}

void draw_faults(random_source& random, scenario& s) {
    if (random.chance(25)) s.copy_fails_percent = static_cast<int>(random.between(5, 60));
    s.copy_time_max = random.magnitude(1'000, 20'000'000);
    s.hop_max = random.magnitude(1'000, 300'000);
    s.unit_time_max = random.magnitude(20'000, 4'000'000);
    if (random.chance(10)) s.node.scheduling.copy_timeout = s.copy_time_max / 2 + 1'000;
    if (random.chance(15)) s.habits.interrupt_percent = static_cast<int>(random.between(1, 30));
    if (random.chance(15)) {
        s.habits.drain_at = random.magnitude(1'000'000, 200'000'000);
        s.habits.drain_grace = random.chance(40) ? 0 : random.magnitude(100'000, 400'000'000);
    }
}

void draw_habits(random_source& random, scenario& s) {
    client_habits& h = s.habits;
    h.clients = static_cast<std::uint32_t>(random.between(1, 14));
    h.turns_max = static_cast<std::uint32_t>(random.between(1, 10));
    h.prompt_max = static_cast<std::uint32_t>(random.between(2, s.node.device.max_context_tokens));
    h.answer_max = static_cast<std::uint32_t>(random.magnitude(2, 200));
    h.cancel_percent = random.chance(30) ? 0 : static_cast<int>(random.between(1, 60));
    h.deadline_percent = random.chance(60) ? 0 : 20;
    h.fork_percent = random.chance(50) ? 0 : 30;
    h.random_sampling_percent = static_cast<int>(random.between(0, 100));
    h.scoring_percent = random.chance(60) ? 0 : 15;
    h.think_max = random.magnitude(10'000, 10'000'000);
    for (std::uint32_t i = random.upto(3); i > 0; --i) {
        std::vector<token_id> prefix(static_cast<std::size_t>(random.between(1, h.prompt_max)));
        for (token_id& each : prefix) each = static_cast<token_id>(random.upto(s.vocabulary - 2));
        s.shared_prefixes.push_back(std::move(prefix));
    }
}

// A stream of its own: what it draws moves nothing above.
void draw_frontend(random_source& random, scenario& s) {
    s.text = draw_words(random, s.vocabulary);
    s.node.text = s.text.model;
    s.node.device.tokens = s.text.table;
    if (random.chance(10)) s.node.requests_max = 1 + random.upto(6);
    client_habits& h = s.habits;
    if (random.chance(60)) h.text_percent = static_cast<int>(random.between(0, 50));
    if (random.chance(60)) h.chat_percent = static_cast<int>(random.between(0, 50));
    h.wrong_percent = random.chance(50) ? 0 : 5;
}

}  // namespace

scenario draw_scenario(std::uint64_t seed, bool direct) {
    random_source random(seed);
    scenario s;
    s.seed = seed;
    draw_sizes(random, s);
    draw_scheduling(random, s);
    draw_faults(random, s);
    draw_habits(random, s);
    random_source more(seed ^ 0xF07E57'0000ull);
    if (!direct) draw_frontend(more, s);
    return s;
}

std::string scenario::describe() const {
    std::ostringstream out;
    const program_options& d = node.device;
    out << "seed " << seed << ": " << (node.model.state_bytes ? "hybrid" : "attention-only") << ", page "
        << node.model.page_tokens << ", pool " << d.kv_capacity_tokens / node.model.page_tokens << " pages, context "
        << d.max_context_tokens << ", lanes " << d.max_concurrency << ", extra slots " << d.device_state_slots
        << ", chunk " << d.prefill_chunk_tokens << ", batch " << d.batch_tokens << ", clients " << habits.clients
        << ", copies fail " << copy_fails_percent << " %, tau " << node.scheduling.tau_high << "/"
        << node.scheduling.tau_low << ", cancels " << habits.cancel_percent << " %" << (node.text ? "" : ", no Frontend");
    return out.str();
}

}  // namespace fermata::simulation

#include "world.hpp"

#include <cstdio>
#include <memory>

#include "clients.hpp"
#include "messages/wire/print.hpp"
#include "observer.hpp"
#include "scenario.hpp"
#include "solo.hpp"
#include "wired_node.hpp"

namespace fermata::simulation {

namespace {

constexpr std::uint64_t events_max = 400'000;

class world {
public:
    world(std::uint64_t seed, const run_options& options)
        : options_(options), scenario_(draw_scenario(seed, options.direct)), random_(seed ^ 0x71'3E5ull),
          node_(scenario_.node, timing(), bus_), watch_(scenario_, node_), told_(scenario_),
          clients_(scenario_, bus_, told_) {
        bus_.watch = [this](const envelope& m) {
            watch_.on_send(m);
            told_.on_send(m);
        };
    }

    outcome run() {
        outcome result;
        result.seed = scenario_.seed;
        result.describe = scenario_.describe();
        try {
            play(result);
            at_rest();
            check_answers();
        } catch (const std::exception& fault) {
            result.fault = fault.what();
        }
        fill(result);
        return result;
    }

private:
    node_timing timing() {
        node_timing t;
        t.hop = [this](peer, peer) { return random_.between(1, scenario_.hop_max); };
        t.unit = [this](const cycle_plan& plan) {
            if (random_.chance(scenario_.habits.interrupt_percent) && !node_.device().stop_flag().exchange(true))
                ++watch_.stops_raised;
            std::int64_t tokens = static_cast<std::int64_t>(plan.decodes.size());
            for (const auto& each : plan.prefills) tokens += each.tokens_max.value;
            return random_.between(1'000, scenario_.unit_time_max) + tokens * 1'000;
        };
        t.copy = [this](const copy_order&) {
            return random_.chance(10) ? 6 * scenario_.copy_time_max : random_.between(1, scenario_.copy_time_max);
        };
        t.copy_fails = [this](const copy_order&) { return random_.chance(scenario_.copy_fails_percent); };
        t.preparing = [this] { return random_.between(1, random_.chance(20) ? scenario_.unit_time_max : scenario_.hop_max); };
        t.copies_late = [this](const copy_order&) { return random_.chance(70); };
        return t;
    }

    void play(outcome& result) {
        clients_.start();
        if (scenario_.habits.drain_at != 0) {
            const time_ns at = scenario_.habits.drain_at;
            if (scenario_.node.text) bus_.send(peer::node, peer::frontend, drain{}, at);
            bus_.send(peer::node, peer::scheduler, drain{at + scenario_.habits.drain_grace}, at);
        }
        while (auto m = bus_.take_earliest([this](peer who) { return node_.busy_until(who); })) {
            if (++result.events > events_max) throw broken_node("doesn't come to rest");
            now_ = std::max(now_, m->due);
            node_.set_time(now_);
            if (options_.verbose) show(*m);
            watch_.on_deliver(*m);
            told_.on_deliver(*m);
            if (node_.handle(*m)) continue;
            std::visit(
                [&](const auto& each) {
                    if constexpr (requires { clients_.on(each, now_); }) clients_.on(each, now_);
                },
                m->message);
            drained_ += std::holds_alternative<drained>(m->message);
        }
    }

    void at_rest() {
        watch_.at_rest(node_.numbers(), node_.scheduling().look(), told_.left_early);
        told_.at_rest(watch_, node_.numbers());
        if (node_.clerk() && node_.clerk()->requests() > 0) throw broken_node("the Frontend still holds requests");
        if (!node_.scheduling().quiet()) throw broken_node("the Scheduler is not quiet at rest");
        if (drained_ != (scenario_.habits.drain_at != 0 ? 1 : 0)) throw broken_node("drained was not told exactly once");
        if (node_.copying().queued() + node_.copying().running() > 0) throw broken_node("Transfer still holds copies");
        const auto view = node_.device().view();
        const telemetry& n = node_.numbers();
        std::int64_t images = 0;
        for (const point_view& point : view->points) images += point.exact_only ? 1 : 0;
        if (n.pages_active != 0 || n.pages_free + n.pages_cached != n.pages_total)
            throw broken_node("fault 83: " + std::to_string(n.pages_active) + " pages are still active at rest");
        if (n.state_slots_used != images) throw broken_node("fault 83: a state slot leaked");
        if (node_.resources().records() != view->points.size())
            throw broken_node("ResourceManager remembers " + std::to_string(node_.resources().records()) +
                              " points, Program holds " + std::to_string(view->points.size()));
    }

    // Every answer, whole or cut short, against an uninterrupted run alone; greedy ones against the tokens alone.
    void check_answers() {
        solo_device alone(scenario_.node.device, scenario_.node.model);
        for (const auto& [k, c] : watch_.choices) {
            if (c.got.tokens.empty() && c.got.prompt_logprobs.empty() && c.got.finish != finish_reason::length) continue;
            const bool part = c.got.finish == finish_reason::cancelled || c.got.finish == finish_reason::error;
            const std::string fault = compare(c.got, alone.run(c.spec), part);
            const std::string who = "request " + std::to_string(k.first) + "." + std::to_string(k.second) + ": ";
            if (!fault.empty()) throw broken_node("M7: " + who + fault);
            const sampling_params& s = c.spec->sampling;
            const bool plain = s.temperature == 0 && s.repetition_penalty == 1 && s.frequency_penalty == 0 &&
                               s.presence_penalty == 0 && s.logit_bias.empty();
            if (plain && oracle::expected(scenario_.node.model, c.spec->prompt.span(), c.got.tokens.size()) != c.got.tokens)
                throw broken_node(who + "not what the oracle says");
        }
    }

    void show(const envelope& m) const {
        std::printf("%12lld %-9s -> %-9s ", static_cast<long long>(m.due), name_of(m.from), name_of(m.to));
        std::visit(
            [&](const auto& each) {
                using type = std::decay_t<decltype(each)>;
                if constexpr (std::is_same_v<type, tick> || std::is_same_v<type, client_timer>) std::printf("timer\n");
                else if constexpr (std::is_same_v<type, hand_to_preparer>)
                    std::printf("prepare request %llu\n", static_cast<unsigned long long>(each.request->request.value));
                else std::printf("%s\n", wire::print(each).c_str());
            },
            m.message);
    }

    void fill(outcome& r) const {
        r.digest = watch_.digest;
        std::uint64_t last = 0;
        for (const auto& [k, c] : watch_.choices) {
            if (k.first != last) ++r.requests;
            last = k.first;
            r.tokens += c.got.tokens.size();
            r.ended_by_client += c.got.finish == finish_reason::cancelled;
            r.failures += c.failure != failure_kind::none;
        }
        r.pauses = watch_.pauses, r.bypasses = watch_.bypasses, r.reuses = watch_.reuses, r.copies = watch_.copies;
        r.stale = watch_.stale, r.cycles = watch_.cycles, r.drops = watch_.drops, r.rejected = watch_.rejected + told_.refused;
        r.deltas = told_.deltas;
    }

    run_options options_;
    scenario scenario_;
    random_source random_;
    bus bus_;
    wired_node node_;
    observer watch_;
    delivery told_;
    clients clients_;
    time_ns now_ = 0;
    int drained_ = 0;
};

}  // namespace

outcome run_seed(std::uint64_t seed, const run_options& options) { return world(seed, options).run(); }

}  // namespace fermata::simulation

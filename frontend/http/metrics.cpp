#include "frontend/http/metrics.hpp"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

namespace fermata::http {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using labels = std::vector<std::pair<std::string, std::string>>;

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

template <class Number>
double value_of(const std::atomic<Number>& number) {
    return static_cast<double>(number.load(std::memory_order_relaxed));
}

// Families in the order they are added.
class families {
public:
    families& add(MetricType type, std::string name, std::string help) {
        MetricFamily family;
        family.name = "fermata_" + std::move(name);
        family.help = std::move(help);
        family.type = type;
        list_.push_back(std::move(family));
        return *this;
    }
    families& counter(std::string name, std::string help) { return add(MetricType::Counter, std::move(name), std::move(help)); }
    families& gauge(std::string name, std::string help) { return add(MetricType::Gauge, std::move(name), std::move(help)); }

    // A series of the family added last.
    families& series(const labels& with, double value) {
        ClientMetric metric;
        for (const auto& [name, text] : with) metric.label.push_back({name, text});
        if (list_.back().type == MetricType::Counter)
            metric.counter.value = value;
        else
            metric.gauge.value = value;
        list_.back().metric.push_back(std::move(metric));
        return *this;
    }
    families& histogram(std::string name, std::string help, const latency_histogram& source) {
        add(MetricType::Histogram, std::move(name), std::move(help));
        ClientMetric metric;
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < source.buckets.size(); ++i) {
            count += source.buckets[i].load(std::memory_order_relaxed);
            const bool last = i == latency_histogram::bounds_s.size();
            metric.histogram.bucket.push_back(
                {count, last ? std::numeric_limits<double>::infinity() : latency_histogram::bounds_s[i]});
        }
        metric.histogram.sample_count = count;
        metric.histogram.sample_sum = seconds(source.sum_ns.load(std::memory_order_relaxed));
        list_.back().metric.push_back(std::move(metric));
        return *this;
    }
    std::vector<MetricFamily> take() { return std::move(list_); }

private:
    std::vector<MetricFamily> list_;
};

void requests_and_tokens(families& out, const telemetry& t) {
    out.gauge("requests", "Requests under way by state.")
        .series({{"state", "queued"}}, value_of(t.requests_queued))
        .series({{"state", "waiting_source"}}, value_of(t.requests_waiting_source))
        .series({{"state", "prefill"}}, value_of(t.requests_prefill))
        .series({{"state", "decode"}}, value_of(t.requests_decode))
        .series({{"state", "replay"}}, value_of(t.requests_replay))
        .series({{"state", "paused"}}, value_of(t.requests_paused));
    out.counter("requests_total", "Requests ended, by how.")
        .series({{"outcome", "stop"}}, value_of(t.requests_stop))
        .series({{"outcome", "length"}}, value_of(t.requests_length))
        .series({{"outcome", "cancelled"}}, value_of(t.requests_cancelled))
        .series({{"outcome", "failed"}}, value_of(t.requests_failed))
        .series({{"outcome", "rejected"}}, value_of(t.requests_rejected));
    out.counter("prompt_tokens_total", "Prompt tokens of started requests.").series({}, value_of(t.prompt_tokens));
    out.counter("reused_tokens_total", "Prompt tokens not computed, by the tier they came from.")
        .series({{"source", "device"}}, value_of(t.reused_tokens_device))
        .series({{"source", "host"}}, 0)
        .series({{"source", "disk"}}, 0)
        .series({{"source", "snapshot"}}, 0);
    out.counter("prefill_tokens_total", "Prompt tokens computed.").series({}, value_of(t.prefill_tokens));
    out.counter("replayed_tokens_total", "Tokens computed again after a pause.").series({}, value_of(t.replayed_tokens));
    out.counter("generated_tokens_total", "Tokens sampled.").series({}, value_of(t.generated_tokens));
    out.counter("draft_tokens_total", "Drafted tokens by result.")
        .series({{"result", "accepted"}}, 0)
        .series({{"result", "rejected"}}, 0);
}

void pools_and_movement(families& out, const telemetry& t) {
    out.gauge("pages", "Pages by pool and state.")
        .series({{"pool", "main"}, {"state", "active"}}, value_of(t.pages_active))
        .series({{"pool", "main"}, {"state", "cached"}}, value_of(t.pages_cached))
        .series({{"pool", "main"}, {"state", "away"}}, 0)
        .series({{"pool", "main"}, {"state", "free"}}, value_of(t.pages_free));
    for (const auto* pool : {"mtp", "dflash"})
        for (const auto* state : {"active", "cached", "away", "free"}) out.series({{"pool", pool}, {"state", state}}, 0);
    out.gauge("pages_touched", "Pages used at least once: the part of a pool that may be resident memory.")
        .series({{"pool", "main"}}, value_of(t.pages_touched));
    out.gauge("state_slots", "StateImage slots by state.")
        .series({{"state", "used"}}, value_of(t.state_slots_used))
        .series({{"state", "free"}}, value_of(t.state_slots_free));
    out.gauge("host_bytes", "Host arena by state.")
        .series({{"state", "used"}}, 0)
        .series({{"state", "reserved"}}, 0)
        .series({{"state", "free"}}, 0);
    out.gauge("disk_bytes", "Disk tier by state.").series({{"state", "used"}}, 0).series({{"state", "free"}}, 0);
    out.gauge("dead_kv_pages", "Pages that no resume point reaches.").series({}, value_of(t.dead_kv_pages));
    out.counter("transfer_bytes_total", "Bytes copied, by direction.")
        .series({{"from", "device"}, {"to", "device"}}, value_of(t.transfer_bytes_device_device))
        .series({{"from", "device"}, {"to", "host"}}, 0)
        .series({{"from", "host"}, {"to", "device"}}, 0)
        .series({{"from", "host"}, {"to", "disk"}}, 0)
        .series({{"from", "disk"}, {"to", "host"}}, 0);
}

void policy(families& out, const telemetry& t) {
    out.counter("preemptions_total", "Residents put back, by how they come back.")
        .series({{"route", "replay"}}, value_of(t.preemptions_replay))
        .series({{"route", "snapshot"}}, 0);
    out.counter("reclaims_total", "What was reclaimed, and why.");
    out.series({{"action", "drop_pages"}, {"reason", "shortage"}}, value_of(t.reclaims_pages_shortage))
        .series({{"action", "drop_pages"}, {"reason", "background"}}, value_of(t.reclaims_pages_background))
        .series({{"action", "drop_record"}, {"reason", "shortage"}}, value_of(t.reclaims_records_shortage))
        .series({{"action", "drop_record"}, {"reason", "background"}}, value_of(t.reclaims_records_background))
        .series({{"action", "demote"}, {"reason", "shortage"}}, 0)
        .series({{"action", "demote"}, {"reason", "background"}}, 0);
    out.counter("captures_total", "Resume points saved or skipped, by kind.")
        .series({{"kind", "natural_end"}, {"result", "saved"}}, value_of(t.captures_natural_end))
        .series({{"kind", "natural_end"}, {"result", "skipped"}}, 0)
        .series({{"kind", "input_point"}, {"result", "saved"}}, value_of(t.captures_input_point))
        .series({{"kind", "input_point"}, {"result", "skipped"}}, value_of(t.captures_input_point_skipped));
    for (const auto* kind : {"anchor", "shared", "pause"})
        for (const auto* result : {"saved", "skipped"}) out.series({{"kind", kind}, {"result", result}}, 0);
    out.counter("bypass_total", "Requests that overtook an older one waiting for room.").series({}, value_of(t.bypasses));
}

double seconds_without_commit(const telemetry& t, std::int64_t now_ns) {
    const auto since = t.work_since_ns.load(std::memory_order_relaxed);
    if (since == 0) return 0;  // nothing to do
    const auto from = std::max(since, t.last_commit_ns.load(std::memory_order_relaxed));
    return now_ns > from ? static_cast<double>(now_ns - from) * 1e-9 : 0;
}

void time_and_health(families& out, const telemetry& t, std::int64_t now_ns) {
    out.histogram("ttft_seconds", "Acceptance to the first token.", t.ttft);
    out.histogram("inter_token_seconds", "Between two tokens of one answer.", t.inter_token);
    out.histogram("queue_seconds", "Acceptance to a lane.", t.queue);
    out.histogram("cycle_seconds", "One turn of the scheduler.", t.cycle);
    out.histogram("control_gap_seconds", "End of one unit to the start of the next, while there was work.", t.control_gap);
    out.counter("device_wait_seconds_total", "Time between units while there was work: what the device waited for others.")
        .series({}, value_of(t.device_wait_ns) * 1e-9);
    out.gauge("seconds_since_last_commit", "While there is work: since a unit was last committed. 0 at rest.")
        .series({}, seconds_without_commit(t, now_ns));
    out.gauge("ready", "1 when /ready answers 200.").series({}, t.ready.load(std::memory_order_relaxed) ? 1 : 0);
    out.gauge("queue_length", "Requests waiting for a lane.").series({}, value_of(t.queue_length));
    out.gauge("queue_limit", "Requests that may wait.").series({}, value_of(t.queue_limit));
    out.gauge("lanes", "Lanes by state.")
        .series({{"state", "used"}}, value_of(t.lanes_used))
        .series({{"state", "free"}}, std::max(0.0, value_of(t.lanes_total) - value_of(t.lanes_used)));
}

void of_http(families& out, const http_numbers& h) {
    out.gauge("http_connections", "Open connections.").series({}, value_of(h.connections));
    out.counter("http_connections_total", "Connections by what became of them at the door.")
        .series({{"result", "accepted"}}, value_of(h.connections_total))
        .series({{"result", "refused"}}, value_of(h.connections_refused));
    out.counter("http_responses_total", "Responses by status; 499: the client left first.");
    for (std::size_t i = 0; i < h.codes.size(); ++i)
        out.series({{"code", std::to_string(h.codes[i])}}, value_of(h.responses[i]));
    out.series({{"code", "other"}}, value_of(h.responses.back()));
    out.counter("http_clients_left_total", "Requests given up because the client left.").series({}, value_of(h.clients_left));
    out.counter("http_slow_readers_total", "Connections closed because the client didn't read.").series({}, value_of(h.slow_readers));
    out.counter("http_timeouts_total", "Connections closed because a request arrived too slowly.").series({}, value_of(h.timeouts));
}

// Prometheus' own interface for values that live elsewhere: read at scrape time.
class node_collectable final : public prometheus::Collectable {
public:
    node_collectable(const telemetry& node, const http_numbers& http, std::int64_t now_ns)
        : node_(node), http_(http), now_ns_(now_ns) {}
    std::vector<MetricFamily> Collect() const override {
        families out;
        requests_and_tokens(out, node_);
        pools_and_movement(out, node_);
        policy(out, node_);
        time_and_health(out, node_, now_ns_);
        of_http(out, http_);
        return out.take();
    }

private:
    const telemetry& node_;
    const http_numbers& http_;
    std::int64_t now_ns_;
};

}  // namespace

void http_numbers::count(unsigned status) {
    const auto at = std::find(codes.begin(), codes.end(), status);
    responses[static_cast<std::size_t>(at - codes.begin())].fetch_add(1, std::memory_order_relaxed);
}

std::string metrics_text(const telemetry& node, const http_numbers& http, std::int64_t now_ns) {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, node_collectable(node, http, now_ns).Collect());
    return std::move(out).str();
}

}  // namespace fermata::http

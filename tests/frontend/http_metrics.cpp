// /metrics: every promised series from the first scrape on, live values, cumulative buckets.
#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>

#include "frontend/http/metrics.hpp"

using namespace fermata;

namespace {

// series (name with labels) -> value
std::map<std::string, double> scraped(telemetry const& t, http::http_numbers const& h, std::int64_t now_ns = 0) {
    std::map<std::string, double> result;
    std::istringstream in(http::metrics_text(t, h, now_ns));
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        auto const space = line.rfind(' ');
        result[line.substr(0, space)] = std::stod(line.substr(space + 1));
    }
    return result;
}

}  // namespace

TEST_CASE("every promised series exists at zero, those of parts not built yet included") {
    telemetry t;
    http::http_numbers h;
    auto const m = scraped(t, h);
    for (auto const* name :
         {"fermata_requests{state=\"queued\"}", "fermata_requests{state=\"waiting_source\"}", "fermata_requests{state=\"prefill\"}",
          "fermata_requests{state=\"decode\"}", "fermata_requests{state=\"replay\"}", "fermata_requests{state=\"paused\"}",
          "fermata_requests_total{outcome=\"stop\"}", "fermata_requests_total{outcome=\"length\"}", "fermata_requests_total{outcome=\"cancelled\"}",
          "fermata_requests_total{outcome=\"failed\"}", "fermata_requests_total{outcome=\"rejected\"}", "fermata_prompt_tokens_total",
          "fermata_reused_tokens_total{source=\"device\"}", "fermata_reused_tokens_total{source=\"host\"}", "fermata_reused_tokens_total{source=\"disk\"}",
          "fermata_prefill_tokens_total", "fermata_replayed_tokens_total", "fermata_generated_tokens_total",
          "fermata_draft_tokens_total{result=\"accepted\"}", "fermata_pages{pool=\"main\",state=\"active\"}", "fermata_pages{pool=\"main\",state=\"cached\"}",
          "fermata_pages{pool=\"main\",state=\"away\"}", "fermata_pages{pool=\"main\",state=\"free\"}", "fermata_pages{pool=\"mtp\",state=\"free\"}",
          "fermata_state_slots{state=\"free\"}", "fermata_host_bytes{state=\"used\"}", "fermata_disk_bytes{state=\"used\"}", "fermata_dead_kv_pages",
          "fermata_transfer_bytes_total{from=\"device\",to=\"host\"}", "fermata_preemptions_total{route=\"replay\"}",
          "fermata_reclaims_total{action=\"drop_pages\",reason=\"shortage\"}", "fermata_captures_total{kind=\"natural_end\",result=\"saved\"}",
          "fermata_bypass_total", "fermata_ttft_seconds_count", "fermata_inter_token_seconds_count", "fermata_queue_seconds_count",
          "fermata_cycle_seconds_count", "fermata_device_wait_seconds_total", "fermata_seconds_since_last_commit", "fermata_ready"}) {
        CHECK_MESSAGE(m.count(name) == 1, name);
        if (m.count(name) == 1) CHECK_MESSAGE(m.at(name) == 0, name);
    }
}

TEST_CASE("values are those of the moment") {  // fault 104
    telemetry t;
    http::http_numbers h;
    t.reused_tokens_device = 128;
    t.pages_free = 7;
    t.ready = true;
    t.ttft.observe(2'000'000);      // 2 ms
    t.ttft.observe(2'000'000);
    t.ttft.observe(100'000'000'000);  // beyond the last bound
    h.count(200);
    h.count(418);
    auto m = scraped(t, h);
    CHECK(m["fermata_reused_tokens_total{source=\"device\"}"] == 128);
    CHECK(m["fermata_pages{pool=\"main\",state=\"free\"}"] == 7);
    CHECK(m["fermata_ready"] == 1);
    CHECK(m["fermata_ttft_seconds_bucket{le=\"0.001\"}"] == 0);
    CHECK(m["fermata_ttft_seconds_bucket{le=\"0.0025\"}"] == 2);
    CHECK(m["fermata_ttft_seconds_bucket{le=\"60\"}"] == 2);
    CHECK(m["fermata_ttft_seconds_bucket{le=\"+Inf\"}"] == 3);
    CHECK(m["fermata_ttft_seconds_count"] == 3);
    CHECK(m["fermata_ttft_seconds_sum"] == doctest::Approx(100.004));
    CHECK(m["fermata_http_responses_total{code=\"200\"}"] == 1);
    CHECK(m["fermata_http_responses_total{code=\"other\"}"] == 1);
}

TEST_CASE("each number has one series, and each series its own number") {
    telemetry t;
    http::http_numbers h;
    std::uint64_t next = 1000;
    std::map<std::string, double> expected;
    const auto give = [&](auto& number, std::string const& series) {
        number = static_cast<std::decay_t<decltype(number.load())>>(++next);
        expected[series] = static_cast<double>(next);
    };
    give(t.requests_stop, "fermata_requests_total{outcome=\"stop\"}");
    give(t.requests_length, "fermata_requests_total{outcome=\"length\"}");
    give(t.requests_cancelled, "fermata_requests_total{outcome=\"cancelled\"}");
    give(t.requests_failed, "fermata_requests_total{outcome=\"failed\"}");
    give(t.requests_rejected, "fermata_requests_total{outcome=\"rejected\"}");
    give(t.reclaims_pages_shortage, "fermata_reclaims_total{action=\"drop_pages\",reason=\"shortage\"}");
    give(t.reclaims_pages_background, "fermata_reclaims_total{action=\"drop_pages\",reason=\"background\"}");
    give(t.reclaims_records_shortage, "fermata_reclaims_total{action=\"drop_record\",reason=\"shortage\"}");
    give(t.reclaims_records_background, "fermata_reclaims_total{action=\"drop_record\",reason=\"background\"}");
    give(t.captures_natural_end, "fermata_captures_total{kind=\"natural_end\",result=\"saved\"}");
    give(t.captures_input_point, "fermata_captures_total{kind=\"input_point\",result=\"saved\"}");
    give(t.captures_input_point_skipped, "fermata_captures_total{kind=\"input_point\",result=\"skipped\"}");
    give(t.pages_touched, "fermata_pages_touched{pool=\"main\"}");
    auto m = scraped(t, h);
    double sum = 0;
    for (auto const& each : m)
        if (each.second > 1000) ++sum;
    CHECK(sum == static_cast<double>(expected.size()));  // and nowhere else
    for (auto const& each : expected) CHECK_MESSAGE(m[each.first] == each.second, each.first);
}

TEST_CASE("seconds since the last commit count only while there is work") {  // fault 71
    telemetry t;
    http::http_numbers h;
    t.last_commit_ns = 1'000'000'000;
    CHECK(scraped(t, h, 9'000'000'000)["fermata_seconds_since_last_commit"] == 0);
    t.work_since_ns = 4'000'000'000;
    CHECK(scraped(t, h, 9'000'000'000)["fermata_seconds_since_last_commit"] == 5);
    t.last_commit_ns = 8'000'000'000;
    CHECK(scraped(t, h, 9'000'000'000)["fermata_seconds_since_last_commit"] == 1);
}

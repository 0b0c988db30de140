// simulate --seeds A:B [--jobs N] [--resume FILE]: runs seeds A to B-1 and prints those that fail.
// simulate --seed N [--verbose]: runs one, and with --verbose prints every message.
//
// The resume file holds one line a finished seed range; a run that was cut goes on where it stopped. Exit 1 when a
// seed failed.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "world.hpp"

using namespace fermata::simulation;

namespace {

constexpr std::uint64_t batch = 50;  // seeds a line of the resume file

struct totals {
    std::mutex guard;
    std::vector<double> wall_ms;
    std::uint64_t seeds = 0, failed = 0, requests = 0, tokens = 0, pauses = 0, bypasses = 0, reuses = 0, copies = 0,
                  stale = 0, drops = 0, cancelled = 0, failures = 0, rejected = 0, cycles = 0;

    void add(const outcome& o, double ms) {
        const std::lock_guard lock(guard);
        ++seeds;
        wall_ms.push_back(ms);
        requests += o.requests, tokens += o.tokens, pauses += o.pauses, bypasses += o.bypasses, reuses += o.reuses;
        copies += o.copies, stale += o.stale, drops += o.drops, cancelled += o.ended_by_client;
        failures += o.failures, rejected += o.rejected, cycles += o.cycles;
        if (o.fault.empty()) return;
        ++failed;
        std::printf("FAILED seed %llu: %s\n  %s\n  again: simulate --seed %llu --verbose\n",
                    static_cast<unsigned long long>(o.seed), o.fault.c_str(), o.describe.c_str(),
                    static_cast<unsigned long long>(o.seed));
        std::fflush(stdout);
    }
};

double run_timed(std::uint64_t seed, bool verbose, outcome& result) {
    const auto begin = std::chrono::steady_clock::now();
    result = run_seed(seed, {verbose});
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

std::set<std::uint64_t> batches_done(const std::string& file) {
    std::set<std::uint64_t> done;
    std::ifstream in(file);
    std::string word;
    std::uint64_t first = 0;
    while (in >> word >> first)
        if (word == "done") done.insert(first);
    return done;
}

void print_totals(totals& t) {
    std::sort(t.wall_ms.begin(), t.wall_ms.end());
    const auto at = [&](double q) {
        return t.wall_ms.empty() ? 0.0 : t.wall_ms[static_cast<std::size_t>(q * static_cast<double>(t.wall_ms.size() - 1))];
    };
    const auto u = [](std::uint64_t x) { return static_cast<unsigned long long>(x); };
    std::printf("%llu seeds, %llu failed; %llu requests, %llu tokens, %llu cycles, %llu pauses, %llu bypasses, %llu reuses, "
                "%llu copies, %llu stale, %llu drops, %llu cancelled, %llu failures, %llu rejected; ms a seed p50 %.1f p99 %.1f\n",
                u(t.seeds), u(t.failed), u(t.requests), u(t.tokens), u(t.cycles), u(t.pauses), u(t.bypasses), u(t.reuses),
                u(t.copies), u(t.stale), u(t.drops), u(t.cancelled), u(t.failures), u(t.rejected), at(0.5), at(0.99));
}

int run_range(std::uint64_t first, std::uint64_t end, unsigned jobs, const std::string& resume) {
    const auto done = resume.empty() ? std::set<std::uint64_t>{} : batches_done(resume);
    totals t;
    std::atomic<std::uint64_t> next{first};
    std::mutex file_guard;
    const auto work = [&] {
        for (;;) {
            const std::uint64_t begin = next.fetch_add(batch);
            if (begin >= end) return;
            if (done.contains(begin)) continue;
            bool clean = true;
            for (std::uint64_t seed = begin; seed < std::min(begin + batch, end); ++seed) {
                outcome result;
                const double ms = run_timed(seed, false, result);
                clean &= result.fault.empty();
                t.add(result, ms);
            }
            if (resume.empty() || !clean) continue;  // failing batches are run again next time
            const std::lock_guard lock(file_guard);
            std::ofstream(resume, std::ios::app) << "done " << begin << '\n';
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(work);
    work();
    for (auto& each : threads) each.join();
    print_totals(t);
    return t.failed == 0 ? 0 : 1;
}

int run_one(std::uint64_t seed, bool verbose) {
    outcome result;
    const double ms = run_timed(seed, verbose, result);
    totals t;
    t.add(result, ms);
    std::printf("%s\ndigest %016llx\n", result.describe.c_str(), static_cast<unsigned long long>(result.digest));
    print_totals(t);
    return result.fault.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Runs whole nodes of the oracle model in virtual time, one seed a node."};
    std::string seeds, resume;
    std::uint64_t seed = 0;
    unsigned jobs = 1;
    bool verbose = false;
    auto* range = app.add_option("--seeds", seeds, "A:B, seeds A to B-1");
    auto* single = app.add_option("--seed", seed, "one seed");
    app.add_option("--jobs", jobs, "threads")->check(CLI::Range(1u, 64u));
    app.add_option("--resume", resume, "remember finished seeds in this file and skip them");
    app.add_flag("--verbose", verbose, "print every message (with --seed)");
    range->excludes(single);
    CLI11_PARSE(app, argc, argv);
    if (single->count()) return run_one(seed, verbose);
    std::uint64_t first = 0, end = 500;
    char colon = 0;
    std::istringstream parts(seeds);
    if (range->count() && (!(parts >> first >> colon >> end) || colon != ':' || !parts.eof() || first > end)) {
        std::fprintf(stderr, "--seeds: \"%s\" is not A:B with A <= B\n", seeds.c_str());
        return 2;
    }
    return run_range(first, end, jobs, resume);
}

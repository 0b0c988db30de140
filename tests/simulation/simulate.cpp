// simulate --seeds A:B [--jobs N] [--resume FILE]: runs seeds A to B-1 and prints those that fail.
// simulate --seed N [--verbose]: runs one, and with --verbose prints every message.
// --direct: without a Frontend, the clients speak to the Scheduler in its place.
//
// The resume file holds one line a finished seed range, with what was counted; a run that was cut (SIGINT and SIGTERM
// let the seeds under way finish) goes on where it stopped, and its totals are those of the whole range. Exit 1 when a
// seed failed, 130 when it was cut.
#include <xxhash.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "world.hpp"

using namespace fermata::simulation;

namespace {

constexpr std::uint64_t batch = 50;  // seeds a line of the resume file
volatile std::sig_atomic_t cut = 0;

struct figure {
    const char* name;
    std::uint64_t outcome::* of;
};
constexpr std::array figures{
    figure{"requests", &outcome::requests}, figure{"tokens", &outcome::tokens},      figure{"cycles", &outcome::cycles},
    figure{"pauses", &outcome::pauses},     figure{"bypasses", &outcome::bypasses},  figure{"reuses", &outcome::reuses},
    figure{"copies", &outcome::copies},     figure{"stale", &outcome::stale},        figure{"drops", &outcome::drops},
    figure{"deltas", &outcome::deltas},     figure{"cancelled", &outcome::ended_by_client},
    figure{"failures", &outcome::failures}, figure{"rejected", &outcome::rejected}};

// What some seeds came to.
struct tally {
    std::uint64_t seeds = 0, failed = 0;
    std::array<std::uint64_t, figures.size()> sums{};

    void add(const outcome& o) {
        ++seeds;
        failed += !o.fault.empty();
        for (std::size_t i = 0; i < figures.size(); ++i) sums[i] += o.*figures[i].of;
    }
    void add(const tally& other) {
        seeds += other.seeds;
        failed += other.failed;
        for (std::size_t i = 0; i < figures.size(); ++i) sums[i] += other.sums[i];
    }
};

double run_timed(std::uint64_t seed, const run_options& options, outcome& result) {
    const auto begin = std::chrono::steady_clock::now();
    result = run_seed(seed, options);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void print_failure(const outcome& o, const run_options& options) {
    if (o.fault.empty()) return;
    const auto seed = static_cast<unsigned long long>(o.seed);
    std::printf("FAILED seed %llu: %s\n  %s\n  again: simulate --seed %llu --verbose%s\n", seed, o.fault.c_str(),
                o.describe.c_str(), seed, options.direct ? " --direct" : "");
    std::fflush(stdout);
}

void print_totals(const tally& t, std::vector<double> wall_ms) {
    std::sort(wall_ms.begin(), wall_ms.end());
    const auto at = [&](double q) {
        return wall_ms.empty() ? 0.0 : wall_ms[static_cast<std::size_t>(q * static_cast<double>(wall_ms.size() - 1))];
    };
    std::printf("%llu seeds, %llu failed;", static_cast<unsigned long long>(t.seeds),
                static_cast<unsigned long long>(t.failed));
    for (std::size_t i = 0; i < figures.size(); ++i)
        std::printf("%s %llu %s", i == 0 ? "" : ",", static_cast<unsigned long long>(t.sums[i]), figures[i].name);
    std::printf("; ms a seed p50 %.1f p99 %.1f\n", at(0.5), at(0.99));
}

// The memory of a campaign that may be cut: batches without a failure, and the build they hold for.
class resume_file {
public:
    // Throws std::runtime_error when the file belongs to another build or another kind of run.
    resume_file(std::string name, bool direct) : name_(std::move(name)) {
        if (name_.empty()) return;
        std::ifstream self("/proc/self/exe", std::ios::binary);
        std::ostringstream bytes;
        bytes << self.rdbuf();
        const std::string program = bytes.str();
        std::ostringstream title;
        title << "simulate " << std::hex << XXH3_64bits(program.data(), program.size()) << (direct ? " direct" : "");
        std::ifstream in(name_);
        std::string line;
        if (!std::getline(in, line)) {
            std::ofstream(name_) << title.str() << '\n';
            return;
        }
        if (line != title.str())
            throw std::runtime_error(name_ + ": \"" + line + "\" is of another build or another kind of run than \"" +
                                     title.str() + "\"; remove it or name another file");
        while (std::getline(in, line)) read(line);
    }
    const tally* find(std::uint64_t begin, std::uint64_t seeds) const {
        const auto it = done_.find(begin);
        return it == done_.end() || it->second.seeds != seeds ? nullptr : &it->second;
    }
    void add(std::uint64_t begin, const tally& t) {
        if (name_.empty()) return;
        std::ostringstream line;  // in one piece, and never glued to one that was cut half way
        line << "\ndone " << begin << ' ' << t.seeds;
        for (const std::uint64_t each : t.sums) line << ' ' << each;
        line << " .\n";
        std::ofstream(name_, std::ios::app) << line.str();
    }

private:
    void read(const std::string& line) {
        std::istringstream in(line);
        std::string word;
        std::uint64_t begin = 0;
        tally t;
        in >> word >> begin >> t.seeds;
        for (std::uint64_t& each : t.sums) in >> each;
        std::string last;
        if (in >> last && word == "done" && last == ".") done_[begin] = t;  // else cut half way: run again
    }
    std::string name_;
    std::map<std::uint64_t, tally> done_;
};

int run_range(std::uint64_t first, std::uint64_t end, unsigned jobs, const std::string& resume,
              const run_options& options, std::uint64_t cut_after) {
    resume_file memory(resume, options.direct);
    tally total;
    std::vector<double> wall_ms;
    std::uint64_t earlier = 0;
    std::atomic<std::uint64_t> next{first};
    std::mutex guard;
    const auto run_batch = [&](std::uint64_t begin, std::uint64_t stop) {
        tally t;
        for (std::uint64_t seed = begin; seed < stop; ++seed) {
            if (cut) return;  // a batch half done is forgotten
            outcome result;
            const double ms = run_timed(seed, options, result);
            t.add(result);
            const std::lock_guard lock(guard);
            print_failure(result, options);
            wall_ms.push_back(ms);
            if (cut_after != 0 && wall_ms.size() == cut_after) std::raise(SIGINT);
        }
        const std::lock_guard lock(guard);
        total.add(t);
        if (t.failed == 0) memory.add(begin, t);  // failing batches are run again next time
    };
    const auto work = [&] {
        for (;;) {
            const std::uint64_t begin = next.fetch_add(batch);
            if (begin >= end || cut) return;
            const std::uint64_t stop = std::min(begin + batch, end);
            if (const tally* known = memory.find(begin, stop - begin)) {
                const std::lock_guard lock(guard);
                total.add(*known);
                earlier += known->seeds;
            } else {
                run_batch(begin, stop);
            }
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(work);
    work();
    for (auto& each : threads) each.join();
    if (earlier > 0) std::printf("%llu seeds were done before\n", static_cast<unsigned long long>(earlier));
    print_totals(total, wall_ms);
    if (cut)
        std::printf("cut: %llu of %llu seeds done%s\n", static_cast<unsigned long long>(total.seeds),
                    static_cast<unsigned long long>(end - first),
                    resume.empty() ? "; without --resume they are forgotten" : "; the same command goes on");
    return total.failed > 0 ? 1 : cut ? 130 : 0;
}

int run_one(std::uint64_t seed, const run_options& options) {
    outcome result;
    const double ms = run_timed(seed, options, result);
    tally t;
    t.add(result);
    print_failure(result, options);
    std::printf("%s\ndigest %016llx\n", result.describe.c_str(), static_cast<unsigned long long>(result.digest));
    print_totals(t, {ms});
    return result.fault.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Runs whole nodes of the oracle model in virtual time, one seed a node."};
    std::string seeds, resume;
    std::uint64_t seed = 0, cut_after = 0;
    unsigned jobs = 1;
    run_options options;
    auto* range = app.add_option("--seeds", seeds, "A:B, seeds A to B-1");
    auto* single = app.add_option("--seed", seed, "one seed");
    app.add_option("--jobs", jobs, "threads")->check(CLI::Range(1u, 64u));
    app.add_option("--resume", resume, "remember finished seeds in this file and skip them");
    app.add_option("--cut-after", cut_after, "raise SIGINT at oneself after so many seeds (for tests)");
    app.add_flag("--verbose", options.verbose, "print every message (with --seed)");
    app.add_flag("--direct", options.direct, "without a Frontend");
    range->excludes(single);
    CLI11_PARSE(app, argc, argv);
    if (single->count()) return run_one(seed, options);
    std::uint64_t first = 0, end = 500;
    char colon = 0;
    std::istringstream parts(seeds);
    if (range->count() && (!(parts >> first >> colon >> end) || colon != ':' || !parts.eof() || first > end)) {
        std::fprintf(stderr, "--seeds: \"%s\" is not A:B with A <= B\n", seeds.c_str());
        return 2;
    }
    options.verbose = false;
    std::signal(SIGINT, [](int) { cut = 1; });
    std::signal(SIGTERM, [](int) { cut = 1; });
    try {
        return run_range(first, end, jobs, resume, options, cut_after);
    } catch (const std::runtime_error& fault) {
        std::fprintf(stderr, "%s\n", fault.what());
        return 2;
    }
}

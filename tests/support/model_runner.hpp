// Runs a model without Program: page tables, chunks and company chosen by the test.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "native/cpu/cpu_backend.hpp"
#include "native/models/load.hpp"

namespace fermata::test_support {

struct runner_options {
    std::string simd = "best";
    unsigned threads = 1;
    compute_mode compute = compute_mode::int8;
    kv_dtype kv = kv_dtype::f16;
    std::uint32_t page_tokens = 64;
    std::size_t chunk = 512;
    std::size_t company = 0;       // other sequences in every unit, of other lengths and positions
    bool pages_backwards = false;  // page numbers descending
};

// Logits of every position, position after position.
inline std::vector<float> run_model(const std::string& path, const std::vector<token_id>& tokens,
                                    const runner_options& options) {
    cpu_options cpu;
    cpu.simd = options.simd;
    cpu.threads = options.threads;
    cpu.compute = options.compute;
    const std::shared_ptr<backend> device = make_cpu_backend(cpu);
    load_options load;
    load.kv = options.kv;
    load.page_tokens = options.page_tokens;
    const auto family = load_model(model_file::open(path), device, load);
    const model_layout& layout = family->layout();
    constexpr std::size_t company_tokens = 5;  // a unit, each
    const std::size_t chunk = std::min(options.chunk, tokens.size());
    const std::size_t units = (tokens.size() + chunk - 1) / chunk;
    const std::size_t own_pages = tokens.size() / options.page_tokens + 1;
    const std::size_t other_pages = units * (company_tokens + 2) / options.page_tokens + 1;
    const std::size_t page_count = own_pages + options.company * other_pages;
    buffer pool = device->allocate(page_count * layout.pools[0].page_bytes, memory_kind::device);
    std::fill(pool.data(), pool.data() + pool.size(), std::byte{0xff});  // nothing may depend on what lies there
    family->prepare(static_cast<std::uint32_t>(chunk + options.company * (company_tokens + 2)),
                    static_cast<std::uint32_t>(1 + options.company));
    family->attach({{pool.data()}, nullptr});
    std::vector<page_id> pages;
    for (std::size_t p = 0; p < page_count; ++p)
        pages.push_back(page_id(static_cast<std::uint32_t>(options.pages_backwards ? page_count - 1 - p : p)));

    std::vector<float> logits(tokens.size() * layout.vocabulary), other(layout.vocabulary);
    std::vector<std::size_t> done(options.company, 0);
    for (std::size_t first = 0; first < tokens.size(); first += chunk) {
        const std::size_t count = std::min(chunk, tokens.size() - first);
        std::vector<unit_row> rows;
        std::vector<std::vector<token_id>> others(options.company);
        for (std::size_t c = 0; c < options.company; ++c) {
            const std::size_t n = c % 3 == 0 ? 1 : company_tokens + c % 3;
            for (std::size_t i = 0; i < n; ++i)
                others[c].push_back(static_cast<token_id>((done[c] * 31 + i * 7 + c * 13) % layout.vocabulary));
            unit_row row;
            row.first = token_pos(static_cast<std::uint32_t>(done[c]));
            row.tokens = others[c];
            row.pages = std::span(pages).subspan(own_pages + c * other_pages, other_pages);
            row.logit_rows = c % 2 == 0 ? 1 : 0;
            row.logits = other.data();
            done[c] += n;
            rows.push_back(row);
        }
        unit_row row;
        row.first = token_pos(static_cast<std::uint32_t>(first));
        row.tokens = std::span(tokens).subspan(first, count);
        row.pages = std::span(pages).first(own_pages);
        row.logit_rows = static_cast<std::uint32_t>(count);
        row.logits = logits.data() + first * layout.vocabulary;
        rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(options.company / 2), row);
        unit work;
        work.rows = rows;
        family->run(work);
    }
    return logits;
}

}  // namespace fermata::test_support

// The determinism contract on whole models: for every weight format the logits are the same bits for any instruction
// set, number of threads, chunk, page size, page order and company.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "native/weights/error.hpp"
#include "tests/native/cpu_levels.hpp"
#include "tests/support/model_runner.hpp"
#include "tests/support/random_blocks.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

std::vector<token_id> some_tokens(std::size_t count) {
    std::vector<token_id> tokens;
    for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<token_id>((i * i * 7 + i * 3 + 1) % 256));
    return tokens;
}

struct variation {
    const char* what;
    runner_options options;
};

std::vector<variation> variations(const runner_options& base) {
    std::vector<variation> list;
    auto add = [&](const char* what, auto&& change) {
        runner_options options = base;
        change(options);
        list.push_back({what, options});
    };
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, std::size_t{64}})
        add("chunk", [&](runner_options& o) { o.chunk = chunk; });
    add("threads", [](runner_options& o) { o.threads = 2; });
    add("threads", [](runner_options& o) { o.threads = 3, o.chunk = 20; });
    add("threads", [](runner_options& o) { o.threads = 4, o.chunk = 1; });
    for (const std::uint32_t size : {16u, 32u, 128u}) add("page size", [&](runner_options& o) { o.page_tokens = size; });
    add("page order", [](runner_options& o) { o.page_tokens = 16, o.pages_backwards = true, o.chunk = 5; });
    add("company", [](runner_options& o) { o.company = 7, o.chunk = 9; });
    add("company", [](runner_options& o) { o.company = 7, o.chunk = 1, o.threads = 2; });
    for (const std::string& simd : cpu_simd_levels()) {
        add("simd", [&](runner_options& o) { o.simd = simd, o.chunk = 70; });
        add("simd", [&](runner_options& o) { o.simd = simd, o.chunk = 3; });
    }
    return list;
}

void check_all(const std::string& path, const runner_options& base, std::size_t tokens) {
    const auto prompt = some_tokens(tokens);
    const std::vector<float> right = run_model(path, prompt, base);
    for (const float v : right) REQUIRE(std::isfinite(v));
    for (const variation& v : variations(base)) {
        INFO(v.what << ": simd " << v.options.simd << " threads " << v.options.threads << " chunk " << v.options.chunk
                    << " page " << v.options.page_tokens << " company " << v.options.company);
        CHECK(fermata::test::same_bits(run_model(path, prompt, v.options), right));
    }
}

}  // namespace

TEST_CASE("same bits on every route, for every weight format") {
    const temporary_folder folder;
    for (const dtype format : all_dtypes()) {
        INFO("format " << traits_of(format).name);
        random_model_options model;
        model.format = format;
        model.layers = 1;
        model.feed_forward_width = 768;
        const std::string path = folder.path() + "/model.gguf";
        write_random_gguf(path, model);
        check_all(path, {}, 70);
    }
}

TEST_CASE("same bits on every route with float32 activations and each KV type") {
    const temporary_folder folder;
    random_model_options model;
    model.format = dtype::q4_k;
    model.layers = 2;
    model.feed_forward_width = 512;
    const std::string path = folder.path() + "/model.gguf";
    write_random_gguf(path, model);
    runner_options base;
    base.compute = compute_mode::f32;
    base.kv = kv_dtype::f32;
    check_all(path, base, 40);
    base.kv = kv_dtype::bf16;
    check_all(path, base, 40);
}

TEST_CASE("same bits on every route for odd heads, biases and norms") {
    const temporary_folder folder;
    random_model_options model;
    model.layers = 2;
    model.format = dtype::q8_0;
    model.feed_forward_width = 544;
    struct shape {
        const char* architecture;
        std::uint32_t width, heads, kv_heads, head_width;
    };
    for (const shape& s : {shape{"llama", 96, 1, 1, 96}, shape{"llama", 240, 3, 1, 80}, shape{"qwen2", 320, 5, 5, 64},
                           shape{"qwen3", 64, 6, 2, 128}}) {
        INFO(s.architecture << " width " << s.width);
        model.architecture = s.architecture;
        model.width = s.width;
        model.heads = s.heads;
        model.kv_heads = s.kv_heads;
        model.head_width = s.head_width;
        if (s.width % 32 != 0) model.format = dtype::bf16;
        const std::string path = folder.path() + "/model.gguf";
        write_random_gguf(path, model);
        check_all(path, {}, 40);
        model.format = dtype::q8_0;
    }
}

TEST_CASE("one token's logits don't depend on what was in its pages before") {
    // fault 11's kind: the runner fills pages with 0xff; a pool of zeros must give the same.
    const temporary_folder folder;
    random_model_options model;
    model.layers = 1;
    const std::string path = folder.path() + "/model.gguf";
    write_random_gguf(path, model);
    const auto device = std::shared_ptr<backend>(make_cpu_backend({1, "best", compute_mode::int8}));
    const auto family = load_model(model_file::open(path), device, {});
    family->prepare(8, 1);
    buffer pool = device->allocate(family->layout().pools[0].page_bytes, memory_kind::device);
    family->attach({{pool.data()}, nullptr});
    const std::vector<token_id> prompt = some_tokens(8);
    const page_id page{0};
    std::vector<float> logits(8 * family->layout().vocabulary);
    unit_row row;
    row.tokens = prompt;
    row.pages = {&page, 1};
    row.logit_rows = 8;
    row.logits = logits.data();
    unit work;
    work.rows = {&row, 1};
    CHECK(family->run(work) == unit_status::done);
    CHECK(fermata::test::same_bits(run_model(path, prompt, {}), logits));

    // A raised stop flag abandons the unit.
    const std::atomic<bool> stop{true};
    work.stop = &stop;
    CHECK(family->run(work) == unit_status::stopped);
}

TEST_CASE("chunks without logits, and fewer logits than tokens, change nothing") {
    const temporary_folder folder;
    random_model_options model;
    const std::string path = folder.path() + "/model.gguf";
    write_random_gguf(path, model);
    const std::vector<token_id> prompt = some_tokens(40);
    const std::vector<float> right = run_model(path, prompt, {});
    const auto device = std::shared_ptr<backend>(make_cpu_backend({2, "best", compute_mode::int8}));
    const auto family = load_model(model_file::open(path), device, {});
    const std::size_t vocabulary = family->layout().vocabulary;
    family->prepare(32, 2);
    buffer pool = device->allocate(2 * family->layout().pools[0].page_bytes, memory_kind::device);
    family->attach({{pool.data()}, nullptr});
    const page_id pages[2] = {page_id(0), page_id(1)};
    std::vector<float> logits(3 * vocabulary), other(2 * vocabulary);
    auto row = [&](std::size_t page, std::size_t first, std::size_t count, std::uint32_t wanted, float* out) {
        unit_row r;
        r.first = token_pos(static_cast<std::uint32_t>(first));
        r.tokens = std::span(prompt).subspan(first, count);
        r.pages = std::span(pages).subspan(page, 1);
        r.logit_rows = wanted;
        r.logits = out;
        return r;
    };
    const unit_row silent[] = {row(0, 0, 17, 0, nullptr), row(1, 0, 10, 0, nullptr)};
    const unit_row mixed[] = {row(0, 17, 23, 3, logits.data()), row(1, 10, 2, 2, other.data())};
    unit work;
    work.rows = silent;
    CHECK(family->run(work) == unit_status::done);
    work.rows = mixed;
    CHECK(family->run(work) == unit_status::done);
    CHECK(std::memcmp(logits.data(), right.data() + 37 * vocabulary, 3 * vocabulary * sizeof(float)) == 0);
    CHECK(std::memcmp(other.data(), right.data() + 10 * vocabulary, 2 * vocabulary * sizeof(float)) == 0);
}

TEST_CASE("units that break the contract are refused, not read") {
    const temporary_folder folder;
    random_model_options model;
    model.layers = 1;
    const std::string path = folder.path() + "/model.gguf";
    write_random_gguf(path, model);
    const auto device = std::shared_ptr<backend>(make_cpu_backend({}));
    const auto family = load_model(model_file::open(path), device, {});
    family->prepare(4, 1);
    buffer pool = device->allocate(family->layout().pools[0].page_bytes, memory_kind::device);
    family->attach({{pool.data()}, nullptr});
    const page_id page{0};
    auto run = [&](std::vector<token_id> tokens, std::uint32_t first) {
        unit_row row;
        row.first = token_pos(first);
        row.tokens = tokens;
        row.pages = {&page, 1};
        unit work;
        work.rows = {&row, 1};
        family->run(work);
    };
    CHECK_NOTHROW(run({1, 2, 3, 4}, 0));
    CHECK_THROWS_AS(run({1, 2, 3, 4, 5}, 0), std::logic_error);
    CHECK_THROWS_AS(run({-1}, 0), std::logic_error);
    CHECK_THROWS_AS(run({1000000}, 0), std::logic_error);
    CHECK_THROWS_AS(run({1}, 64), std::logic_error);
}

TEST_CASE("options are refused by name") {
    CHECK_THROWS_WITH_AS(make_cpu_backend({1, "sse9", compute_mode::int8}),
                         "--simd sse9: unknown; one of best, scalar, avx2, avx512, neon", backend_error);
#if defined(__x86_64__)
    CHECK_THROWS_AS(make_cpu_backend({1, "neon", compute_mode::int8}), backend_error);
#else
    CHECK_THROWS_AS(make_cpu_backend({1, "avx2", compute_mode::int8}), backend_error);
#endif
    CHECK_THROWS_WITH_AS(parse_kv_dtype("fp8"), "--kv-dtype fp8: not in this version; one of f32, f16, bf16",
                         backend_error);
    CHECK_THROWS_AS(parse_kv_dtype("q4"), backend_error);
    CHECK_THROWS_AS(parse_compute_mode("fp4"), backend_error);
    CHECK(cpu_simd_levels().back() == "scalar");
}

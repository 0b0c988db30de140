// Logits against transformers in float32. The fixtures are written by tools/fixtures/llama_fixtures.py.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/support/demo_model.hpp"
#include "tests/support/model_runner.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

const std::string fixtures = std::string(FERMATA_SOURCE_DIR) + "/tests/parity/fixtures/llama/";

class reader {
public:
    explicit reader(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        REQUIRE_MESSAGE(file.good(), "no file " << path);
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
    }
    template <class T>
    std::vector<T> take(std::size_t count) {
        REQUIRE(at_ + count * sizeof(T) <= bytes_.size());
        std::vector<T> values(count);
        std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
        at_ += count * sizeof(T);
        return values;
    }

private:
    std::string bytes_;
    std::size_t at_ = 0;
};

}  // namespace

TEST_CASE("tiny checkpoints of every variant: logits within 1e-4 of transformers") {
    for (const char* name : {"llama_gqa_tied", "llama3_scaling", "llama_biases", "mistral", "qwen2", "qwen3"}) {
        INFO(std::string(name));
        reader file(fixtures + name + "/reference.bin");
        const auto sizes = file.take<std::uint32_t>(2);
        const auto tokens = file.take<token_id>(sizes[0]);
        const auto reference = file.take<float>(std::size_t{sizes[0]} * sizes[1]);
        runner_options options;
        options.compute = compute_mode::f32;
        options.kv = kv_dtype::f32;
        options.chunk = 11;
        options.page_tokens = 16;
        const auto logits = run_model(fixtures + name, tokens, options);
        REQUIRE(logits.size() == reference.size());
        float worst = 0;
        for (std::size_t i = 0; i < logits.size(); ++i) worst = std::max(worst, std::abs(logits[i] - reference[i]));
        MESSAGE(std::string(name) << ": largest difference " << worst);
        CHECK(worst <= 1e-4f);
    }
}

TEST_CASE("the demo model: within 2e-3 of transformers over 256 positions, same best token") {
    const std::string path = demo_model_path(FERMATA_SOURCE_DIR);
    if (path.empty()) {
        MESSAGE("skipped: the demo model isn't here (tools/model.sh gets it)");
        return;
    }
    reader file(fixtures + "smollm2_135m_q4_1.bin");
    const auto sizes = file.take<std::uint32_t>(2);
    const std::size_t positions = sizes[0], samples = sizes[1];
    const auto tokens = file.take<token_id>(positions);
    const auto ids = file.take<std::int32_t>(positions * samples);
    const auto reference = file.take<float>(positions * samples);
    runner_options options;
    options.compute = compute_mode::f32;
    options.kv = kv_dtype::f32;
    options.chunk = 128;
    options.threads = 2;
    const auto logits = run_model(path, tokens, options);
    const std::size_t vocabulary = logits.size() / positions;
    float worst = 0;
    for (std::size_t p = 0; p < positions; ++p) {
        const float* row = logits.data() + p * vocabulary;
        for (std::size_t s = 0; s < samples; ++s)
            worst = std::max(worst, std::abs(row[ids[p * samples + s]] - reference[p * samples + s]));
        const auto best = std::max_element(row, row + vocabulary) - row;
        if (reference[p * samples] - reference[p * samples + 1] > 4e-3f) CHECK(best == ids[p * samples]);
    }
    MESSAGE("largest difference " << worst);
    CHECK(worst <= 2e-3f);
}

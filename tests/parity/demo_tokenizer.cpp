// The tokenizer as the product builds it from the demo model's GGUF, against the expectations that the
// `tokenizers` library wrote for SmolLM2's own tokenizer.json: what the GGUF leaves unsaid (single digits,
// special tokens) must not be lost.
#include <doctest/doctest.h>

#include "frontend/tokenizer/tokenizer.hpp"
#include "native/weights/model_file.hpp"
#include "native/weights/vocabulary.hpp"
#include "tests/frontend/tokenizer_support.hpp"
#include "tests/support/demo_model.hpp"

using namespace fermata;
using namespace tokenizer_support;

TEST_CASE("the demo model's file gives the ids of the reference for 20,000 texts") {
    const std::string path = test_support::demo_model_path(FERMATA_SOURCE_DIR);
    REQUIRE_MESSAGE(!path.empty(), "the demo model is missing: bash tools/model.sh gets it");
    const auto words = text::tokenizer::from_vocabulary(read_vocabulary(model_file::open(path)));
    const auto expected = nlohmann::json::parse(read_file(fixtures() + "smollm.json"));
    REQUIRE(expected.at("vocabulary") == "smollm");
    const auto strings = expected.at("strings").get<std::size_t>(),
               block = expected.at("block").get<std::size_t>();
    check_round(*words, expected.at("plain"), strings, block, false);
    check_round(*words, expected.at("special"), strings, block, true);
}

// What a request can never be longer than needs no buffers: the workspace follows the context that is served, not the one
// that the model was trained for, and no bit of a logit changes.
#include <doctest/doctest.h>

#include "tests/support/model_runner.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

std::unique_ptr<model> loaded(const std::string& path, std::uint32_t context_tokens_max) {
    load_options options;
    options.context_tokens_max = context_tokens_max;
    auto family = load_model(model_file::open(path), make_cpu_backend({}), options);
    family->prepare(64, 4);
    return family;
}

}  // namespace

TEST_CASE("the workspace is made for the context that is served") {
    const temporary_folder folder;
    write_random_gguf(folder / "m.gguf", {});
    const auto whole = loaded(folder / "m.gguf", 0), part = loaded(folder / "m.gguf", 128), beyond = loaded(folder / "m.gguf", 1u << 30);
    CHECK(whole->layout().max_context_tokens == 4096);
    CHECK(part->layout().max_context_tokens == 128);
    CHECK(beyond->layout().max_context_tokens == 4096);
    CHECK(beyond->layout().workspace_bytes == whole->layout().workspace_bytes);
    CHECK(part->layout().workspace_bytes < whole->layout().workspace_bytes);
    CHECK(part->layout().fingerprint == whole->layout().fingerprint);
}

// Folders in Hugging Face layout: single and sharded, and what is wrong with others.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "native/weights/model_file.hpp"
#include "tests/support/model_error.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/safetensors_builder.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

random_model_options small() {
    random_model_options options;
    options.width = 64;
    options.heads = 4;
    options.kv_heads = 2;
    options.head_width = 16;
    options.feed_forward_width = 96;
    return options;
}

std::string open(const std::string& path) {
    return refusal([&] { model_file::open(path); });
}

constexpr const char* index_name = "/model.safetensors.index.json";

}  // namespace

TEST_CASE("folder: three shards equal the single file") {
    const temporary_folder folder;
    random_model_options options = small();
    write_random_folder(folder / "one", options);
    options.shards = 3;
    write_random_folder(folder / "three", options);
    const auto one = model_file::open(folder / "one");
    const auto three = model_file::open((folder / "three") + "/");
    CHECK(one.format() == model_format::safetensors);
    CHECK(three.file_count() == 3);
    CHECK(three.name().empty() == false);
    CHECK(one.parameters() == three.parameters());
    CHECK(one.architecture() == "llama");
    CHECK(one.config()["hidden_size"] == 64);
    for (const auto& tensor : one.tensors()) {
        const tensor_view& twin = three.require(tensor.view.name, tensor.view.rows, tensor.view.columns);
        CHECK(std::memcmp(twin.data.data(), tensor.view.data.data(), twin.data.size()) == 0);
    }
    CHECK(three.require("model.layers.1.self_attn.k_proj.weight", 32, 64).rows == 32);
}

TEST_CASE("folder: a multimodal checkpoint shows its text part") {
    const temporary_folder folder;
    random_model_options options = small();
    options.multimodal = true;
    write_random_folder(folder.path(), options);
    const auto file = model_file::open(folder.path());
    CHECK(file.config()["model_type"] == "llava");
    CHECK(file.architecture() == "llama");
    CHECK(file.text_config()["hidden_size"] == 64);
    CHECK(file.find("model.language_model.norm.weight") != nullptr);
}

TEST_CASE("folder: moving a model_file keeps its views") {
    const temporary_folder folder;
    write_random_folder(folder.path(), small());
    auto first = model_file::open(folder.path());
    const tensor_view* const view = first.find("model.norm.weight");
    model_file second = std::move(first);
    CHECK(second.find("model.norm.weight") == view);
    CHECK(view->name == "model.norm.weight");
    CHECK(second.text_config()["hidden_size"] == 64);
}

TEST_CASE("folder faults: what is missing") {
    const temporary_folder folder;
    CHECK(mentions(open(folder.path()), "has no config.json; a folder in Hugging Face layout or a GGUF file is needed"));
    write_file(folder / "config.json", R"({"model_type":"llama"})");
    CHECK(mentions(open(folder.path()), "has neither model.safetensors nor model.safetensors.index.json"));
    write_file(folder / "pytorch_model.bin", "x");
    CHECK(mentions(open(folder.path()), "holds weights as 'pytorch_model.bin', which can run code when read"));
    write_file(folder / "adapter.safetensors", "x");
    CHECK(mentions(open(folder.path()), "only 'adapter.safetensors'; rename it or add the index"));
}

TEST_CASE("folder faults: config.json") {
    const temporary_folder folder;
    write_random_folder(folder.path(), small());
    const auto with_config = [&](const std::string& text) {
        write_file(folder / "config.json", text);
        return open(folder.path());
    };
    CHECK(mentions(with_config("{\"a\":1,}"), "config.json: at byte 7: isn't valid JSON"));
    CHECK(mentions(with_config(""), "config.json: at byte 0: isn't valid JSON"));
    CHECK(mentions(with_config("[1]"), "config.json: should hold a JSON object"));
    CHECK(mentions(with_config("{\"a\":\"\xff\"}"), "isn't valid JSON"));
    CHECK(mentions(with_config("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}"), "nests deeper than 64"));
    CHECK(mentions(with_config("{\"a\":1e999}"), "holds a number that is out of range"));
    CHECK(mentions(with_config(R"({"text_config":[]})"), "key text_config should be an object"));
    CHECK(mentions(with_config(std::string(5 << 20, ' ')), "has 5242880 bytes; at most 4194304 are allowed"));
    std::string many = "{\"a\":0";
    for (int i = 0; i < 20000; ++i) many += ",\"k" + std::to_string(i) + "\":0";
    CHECK(mentions(with_config(many + "}"), "JSON has more than 16384 members"));
    // A byte order mark before the object does no harm.
    CHECK(with_config("\xEF\xBB\xBF{\"model_type\":\"llama\"}").empty());
}

TEST_CASE("folder faults: the index of shards") {
    const temporary_folder folder;
    random_model_options options = small();
    options.shards = 2;
    write_random_folder(folder.path(), options);
    const std::string first = "model-00001-of-00002.safetensors", second = "model-00002-of-00002.safetensors";
    REQUIRE(open(folder.path()).empty());
    const auto with_map = [&](const nlohmann::json& map) {
        write_file(folder.path() + index_name, nlohmann::json{{"weight_map", map}}.dump());
        return open(folder.path());
    };

    SUBCASE("a shard is missing") {
        std::filesystem::remove(folder / second);
        CHECK(mentions(open(folder.path()), "index.json: needs the file '" + second + "', which isn't in the folder"));
    }
    SUBCASE("names that lead out of the folder") {
        for (const char* const name : {"../other.safetensors", "/etc/passwd", "sub/x.safetensors", "..\\x.safetensors",
                                       ".safetensors", "..", ""}) {
            CAPTURE(name);
            CHECK(mentions(with_map({{"w", name}}), "names the shard"));
        }
        CHECK(mentions(with_map({{"w", std::string("a\0.safetensors", 14)}}), "the plain name of a file"));
        CHECK(mentions(with_map({{"w", "config.json"}}), "only .safetensors files can be read"));
    }
    SUBCASE("a tensor in another shard than the index says") {
        CHECK(mentions(with_map({{"model.norm.weight", first}, {"model.embed_tokens.weight", second}}),
                       "but it isn't there"));
        CHECK(mentions(with_map({{"no.such.tensor", first}}), "says tensor 'no.such.tensor' is in '" + first + "'"));
    }
    SUBCASE("a tensor in two shards") {
        safetensors_builder again;
        again.add("model.embed_tokens.weight", "F32", {1}, "abcd");
        write_file(folder / second, again.build());
        const std::string message = with_map({{"model.embed_tokens.weight", first}, {"x", second}});
        CHECK(mentions(message, "tensor 'model.embed_tokens.weight' is also in"));
        CHECK(mentions(message, second + ": "));
    }
    SUBCASE("an index of another form") {
        CHECK(mentions(with_map(nlohmann::json::object()), "names no shard"));
        CHECK(mentions(with_map(nlohmann::json::array()), "needs a member weight_map"));
        CHECK(mentions(with_map({{"w", 1}}), "gives tensor 'w' no file name"));
        write_file(folder.path() + index_name, "{}");
        CHECK(mentions(open(folder.path()), "needs a member weight_map"));
        write_file(folder.path() + index_name, "{");
        CHECK(mentions(open(folder.path()), "index.json: at byte 1: isn't valid JSON"));
    }
    SUBCASE("a shard is damaged") {
        write_file(folder / second, read_file(folder / second).substr(0, 2000));
        CHECK(mentions(open(folder.path()), second + ": tensor"));
    }
}

TEST_CASE("folder: text files are read within a limit") {
    const temporary_folder folder;
    write_file(folder / "b.json", "12345");
    write_file(folder / "a.json", "");
    std::filesystem::create_directory(folder / "sub");
    std::string text = "before";
    CHECK_FALSE(read_text_file(folder.path(), "none.json", text));
    CHECK(read_text_file(folder.path(), "b.json", text));
    CHECK(text == "12345");
    CHECK(read_text_file(folder.path(), "a.json", text));
    CHECK(text.empty());
    CHECK(mentions(refusal([&] { read_text_file(folder.path(), "b.json", text, 4); }), "has 5 bytes; at most 4"));
    CHECK(mentions(refusal([&] { read_text_file(folder.path(), "sub", text); }), "isn't a regular file"));
    CHECK(list_folder(folder.path()) == std::vector<std::string>{"a.json", "b.json"});
    CHECK(mentions(refusal([&] { list_folder(folder / "gone"); }), "can't be listed"));
}

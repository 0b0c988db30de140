// make_random_model: writes a small random model for tests that run programs.
//   make_random_model --format q4_k --out model.gguf [--layers 2 --width 512 ...]
//   make_random_model --format bf16 --out folder --folder [--shards 2] [--multimodal]
#include <CLI/CLI.hpp>
#include <iostream>

#include "tests/support/random_blocks.hpp"
#include "tests/support/random_model.hpp"

int main(int argc, char** argv) {
    using namespace fermata::test_support;
    random_model_options options;
    std::string format = "f32", embedding_format, out;
    bool folder = false, own_head = false, vocabulary_only = false;
    std::uint32_t split = 1;
    CLI::App app("writes a small llama-like model with random weights");
    app.add_option("--out", out, "file (or folder) to write; with --split the prefix")->required();
    app.add_option("--format", format, "f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q4_k q5_k q6_k");
    app.add_option("--embedding-format", embedding_format, "format of embedding and head (default: as --format)");
    app.add_option("--architecture", options.architecture, "llama, mistral, qwen2 or qwen3");
    app.add_option("--layers", options.layers);
    app.add_option("--width", options.width);
    app.add_option("--heads", options.heads);
    app.add_option("--kv-heads", options.kv_heads);
    app.add_option("--head-width", options.head_width);
    app.add_option("--feed-forward-width", options.feed_forward_width);
    app.add_option("--context", options.context_tokens);
    app.add_option("--vocabulary", options.vocabulary, "rows of the embedding (default: the tokens there are)");
    app.add_option("--rope-theta", options.rope_theta);
    app.add_option("--seed", options.seed);
    app.add_option("--gguf-version", options.version);
    app.add_option("--alignment", options.alignment_bytes);
    app.add_option("--split", split, "parts of a split GGUF");
    app.add_option("--shards", options.shards, "shards of a folder");
    app.add_flag("--own-head", own_head, "an output head of its own");
    app.add_flag("--rope-divisors", options.rope_divisors, "RoPE scaled as in Llama 3");
    app.add_flag("--folder", folder, "Hugging Face layout instead of GGUF");
    app.add_flag("--multimodal", options.multimodal, "folder: as the text part of a multimodal checkpoint");
    app.add_flag("--vocabulary-only", vocabulary_only, "GGUF without tensors");
    CLI11_PARSE(app, argc, argv);
    try {
        options.format = dtype_of_name(format);
        options.embedding_as_format = embedding_format.empty();
        if (!embedding_format.empty()) options.embedding_format = dtype_of_name(embedding_format);
        options.tied_head = !own_head;
        options.with_tensors = !vocabulary_only;
        if (folder)
            write_random_folder(out, options);
        else if (split > 1)
            write_random_split_gguf(out, options, split);
        else
            write_random_gguf(out, options);
    } catch (const std::exception& error) {
        std::cerr << "make_random_model: " << error.what() << '\n';
        return 1;
    }
    return 0;
}

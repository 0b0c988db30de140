// Any text as config.json and, after the first zero byte, as the index of shards of a folder with one small shard.
// Only model_file_error may come out, with a message of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "native/weights/describe.hpp"
#include "native/weights/tensor_names.hpp"

using namespace fermata;

namespace {

void write(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// One folder for the process, removed at exit.
struct scratch_folder {
    std::string path;
    scratch_folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "fermata-fuzz-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        path = pattern;
        const std::string header = R"({"model.norm.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )";
        const std::uint64_t length = header.size();
        write(path + "/a.safetensors",
              std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(4, '\0'));
    }
    ~scratch_folder() { std::filesystem::remove_all(path); }
};

template <typename Action>
void tolerate(Action&& action) {
    try {
        action();
    } catch (const model_file_error& error) {
        if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const scratch_folder folder;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t split = input.find('\0');
    write(folder.path + "/config.json", input.substr(0, split));
    write(folder.path + "/model.safetensors.index.json",
          split == std::string_view::npos ? R"({"weight_map":{"model.norm.weight":"a.safetensors"}})"
                                          : input.substr(split + 1));
    tolerate([&] {
        const model_file model = model_file::open(folder.path);
        tolerate([&] { to_text(describe(model)); });
        tolerate([&] {
            llama_hyperparameters sizes = read_llama_hyperparameters(model);
            const llama_tensors tensors(model, sizes);
        });
    });
    return 0;
}

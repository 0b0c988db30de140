// Any bytes as a GGUF file: the reader on exactly these bytes (an address sanitiser sees one too many), and what is
// built on it (hyperparameters, tensors by role, vocabulary, summary) over a file in memory. Only model_file_error may
// come out, with a message of one line.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "native/weights/describe.hpp"
#include "native/weights/gguf.hpp"
#include "native/weights/tensor_names.hpp"
#include "native/weights/vocabulary.hpp"

using namespace fermata;

namespace {

template <typename Action>
void tolerate(Action&& action) {
    try {
        action();
    } catch (const model_file_error& error) {
        if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
    }
}

// Every value through every getter, first and last byte of every tensor.
void use(const weights::gguf_contents& contents) {
    for (const std::string_view key : contents.values.keys()) {
        tolerate([&] { contents.values.unsigned_integer(key); });
        tolerate([&] { contents.values.number(key); });
        tolerate([&] { contents.values.boolean(key); });
        tolerate([&] { contents.values.string(key); });
        tolerate([&] { contents.values.strings(key); });
        tolerate([&] { contents.values.integers(key); });
    }
    volatile unsigned sum = 0;
    for (const weights::file_tensor& tensor : contents.tensors)
        if (!tensor.view.data.empty())
            sum = sum + static_cast<unsigned>(tensor.view.data.front()) + static_cast<unsigned>(tensor.view.data.back());
}

void use_as_model(const std::uint8_t* data, std::size_t size) {
    const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    tolerate([&] {
        const model_file model = model_file::open(path);
        tolerate([&] { to_text(describe(model)); });
        tolerate([&] { read_vocabulary(model); });
        tolerate([&] {
            llama_hyperparameters sizes = read_llama_hyperparameters(model);
            const llama_tensors tensors(model, sizes);
            tensors.require(tensor_role::query, 0, std::size_t{sizes.heads} * sizes.head_width, sizes.width);
        });
        tolerate([&] { model.content_digest(); });
    });
    ::close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    bool readable = false;
    tolerate([&] {
        use(weights::read_gguf(std::as_bytes(std::span(data, size)), "fuzz"));
        readable = true;
    });
    if (readable) use_as_model(data, size);
    return 0;
}

// Any bytes as a safetensors file. Only model_file_error may come out, with a message of one line; what is accepted
// has every tensor inside the bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "native/weights/error.hpp"
#include "native/weights/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fermata;
    try {
        const auto contents = weights::read_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
        volatile unsigned sum = 0;
        for (const weights::file_tensor& tensor : contents.tensors)
            if (!tensor.view.data.empty())
                sum = sum + static_cast<unsigned>(tensor.view.data.front()) +
                      static_cast<unsigned>(tensor.view.data.back()) + static_cast<unsigned>(tensor.view.name.size());
    } catch (const model_file_error& error) {
        if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
    }
    return 0;
}

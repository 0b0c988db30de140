// The reader of one safetensors file, on bytes alone. The form: 8 bytes header length (little-endian), that many
// bytes of JSON `{"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..}}`, then
// the data, which the tensors cover without gap or overlap to the very end of the file (as the reference library
// demands). Everything returned has been checked. The JSON is read event by event: memory is bounded by the table of
// tensors, nesting by the form.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "native/weights/file_tensor.hpp"

namespace fermata::weights {

struct safetensors_contents {
    std::deque<std::string> names;     // what the views' names point to; grows without moving
    std::vector<file_tensor> tensors;  // in order of their data
    std::vector<std::pair<std::string, std::string>> metadata;
};

// `file` names the bytes in errors. Throws model_file_error.
safetensors_contents read_safetensors(std::span<const std::byte> bytes, std::string_view file);

}  // namespace fermata::weights

#include "tests/support/safetensors_builder.hpp"

namespace fermata::test_support {

void safetensors_builder::add(std::string_view name, std::string_view type, const std::vector<std::uint64_t>& shape,
                              std::string_view data) {
    header_ += ",\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(type) + "\",\"shape\":[";
    for (std::size_t i = 0; i < shape.size(); ++i) header_ += (i == 0 ? "" : ",") + std::to_string(shape[i]);
    header_ += "],\"data_offsets\":[" + std::to_string(data_.size()) + ",";
    data_ += data;
    header_ += std::to_string(data_.size()) + "]}";
}

std::string safetensors_builder::build() const {
    std::string header = header_ + "}";
    while (header.size() % 8 != 0) header += ' ';
    return assemble(header, data_);
}

std::string safetensors_builder::assemble(std::string_view header, std::string_view data) {
    std::string file;
    const std::uint64_t length = header.size();
    file.append(reinterpret_cast<const char*>(&length), sizeof length);
    return file.append(header).append(data);
}

}  // namespace fermata::test_support

// Random tensors of every element type a model file may hold: valid blocks whose values have about a chosen standard
// deviation. The same seed gives the same bytes everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "native/tensor/dtype.hpp"

namespace fermata::test_support {

class random_source {
public:
    explicit random_source(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() noexcept;                      // splitmix64
    std::uint32_t below(std::uint32_t bound) noexcept;  // 0 .. bound - 1
    float uniform(float low, float high) noexcept;

private:
    std::uint64_t state_;
};

// `elements` values (a multiple of the type's block) as the file stores them.
std::string random_tensor(dtype type, std::size_t elements, float deviation, random_source& random);
// Values near `center`, F32: norms and biases.
std::string random_vector(std::size_t elements, float center, float spread, random_source& random);

std::uint32_t gguf_type_number(dtype type) noexcept;
// "q4_k" or "Q4_K"; throws std::invalid_argument for another name.
dtype dtype_of_name(std::string_view name);
const std::vector<dtype>& all_dtypes();

}  // namespace fermata::test_support

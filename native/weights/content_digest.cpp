// The identity of a model's weights: what two files must share for contexts to be interchangeable between them.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "native/weights/model_file.hpp"

namespace fermata {
namespace {

class digest {
public:
    digest() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_128bits_reset(state_.get()); }

    void bytes(const void* data, std::size_t size) { XXH3_128bits_update(state_.get(), data, size); }
    void number(std::uint64_t value) { bytes(&value, sizeof value); }
    // The length goes first, so that two texts don't run into one.
    void text(std::string_view value) {
        number(value.size());
        bytes(value.data(), value.size());
    }
    std::string hex() const {
        const XXH128_hash_t value = XXH3_128bits_digest(state_.get());
        char result[33];
        std::snprintf(result, sizeof result, "%016llx%016llx", static_cast<unsigned long long>(value.high64),
                      static_cast<unsigned long long>(value.low64));
        return result;
    }

private:
    std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace

std::string model_file::content_digest() const {
    digest sum;
    for (const std::string_view key : metadata_.keys()) {
        const weights::metadata_value& value = *metadata_.find(key);
        sum.text(key);
        sum.number(static_cast<std::uint64_t>(value.type));
        sum.text({reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()});
    }
    if (config_ != nullptr) sum.text(config().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    // Data order, not name order: the file is read forwards once.
    std::vector<const weights::file_tensor*> order;
    for (const weights::file_tensor& tensor : tensors_) order.push_back(&tensor);
    std::ranges::sort(order, {}, [](const weights::file_tensor* tensor) {
        return std::pair(tensor->part, tensor->view.data.data());
    });
    for (const weights::file_tensor* const tensor : order) {
        sum.text(tensor->view.name);
        sum.text(tensor->type_name);
        for (unsigned i = 0; i < tensor->dimensions; ++i) sum.number(tensor->shape[i]);
        sum.number(tensor->view.data.size());
        sum.bytes(tensor->view.data.data(), tensor->view.data.size());
        release(tensor->view);
    }
    return sum.hex();
}

}  // namespace fermata

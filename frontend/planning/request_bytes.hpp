// What a request keeps in memory while the node has it, so that all requests together can be bounded (byte_budget.hpp in
// actors/). Estimates of what is on the heap: exact for texts and lists, a constant for the rest.
#pragma once

#include <cstdint>

#include "messages/ingress.hpp"

namespace fermata {

// As it was sent, until it is prepared.
std::uint64_t bytes_of(const submit& request);
std::uint64_t bytes_of(const tokenize_text& request);
std::uint64_t bytes_of(const detokenize_tokens& request);

// As it runs: the prompt once, and what each choice has of its own.
std::uint64_t bytes_of(const prepared& result);

}  // namespace fermata

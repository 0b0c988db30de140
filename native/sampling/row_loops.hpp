// The loops over a whole row of logits (50k to 250k floats), the only costly part of sampling. One source, compiled for
// the base instruction set and for AVX2; all versions give the same bits: elementwise arithmetic without fused
// operations, sums over 16 partial sums (element i into sum i mod 16) and one tree 8-4-2-1, in double.
#pragma once

#include <cstddef>

namespace fermata::sampling {

// Weights are summed up in blocks of so many.
inline constexpr std::size_t weight_block = 1024;

struct row_loops {
    bool (*all_finite)(const float* x, std::size_t n);
    float (*best)(const float* x, std::size_t n);  // n > 0; NaN only if the first element is
    std::size_t (*first_equal)(const float* x, std::size_t n, float value);  // n when there is none
    double (*sum_of_exp)(const float* x, std::size_t n, float best);         // sum of e^(x - best)
    // weights[i] = e^((x[i] - best) / temperature), 0 where that is below `smallest`; blocks[b] = the sum of block b.
    // Returns the sum of all.
    double (*weigh)(const float* x, std::size_t n, float best, float temperature, float smallest, float* weights,
                    double* blocks);
    double (*mass_at_least)(const float* weights, std::size_t n, float threshold);
    // Indices of elements >= threshold, ascending; `out` has room for n + 1. Returns how many.
    std::size_t (*collect_at_least)(const float* x, std::size_t n, float threshold, int* out);
};

const row_loops& base_loops();
// The fastest version this machine can run.
const row_loops& loops();

}  // namespace fermata::sampling

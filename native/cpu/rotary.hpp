// Sine and cosine of our own, in plain double arithmetic: the same bits with any compiler, library and processor.
#pragma once

namespace fermata::cpu {

// For |x| up to about 1e9; the results, rounded to float, are the correctly rounded ones but for one in millions.
void sine_cosine(double x, float& sine, float& cosine) noexcept;

}  // namespace fermata::cpu

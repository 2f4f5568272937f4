// exp(-x) of many numbers at once, four at a time where the machine can.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vectors.hpp"

namespace truecast {

// Numbers that are worked on together.
constexpr std::size_t exponents = 64;

// Writes exp(-x) for n <= 64 numbers x >= 0, within two units in the last place; below 2^-1022,
// within two units there. Each is 2^k e^r, where k is whole and |r| <= log(2) / 2: the series of
// e^r is cut off after r^13 / 13!, and what is left out is below 2^-57.
//
// Added to 1.5 2^52, a number is rounded to a whole one, which is then in the lowest bits.
TRUECAST_INLINE void exp_of_minus(const double* x, std::size_t n, double* out) {
    constexpr double rounder = 0x1.8p52, per_log2 = 0x1.71547652b82fep0;
    constexpr double log2_high = 0x1.62e42fee00000p-1;  // 32 bits: times k, it is exact
    constexpr double log2_low = 0x1.a39ef35793c76p-33;
    constexpr std::uint64_t bits_of_rounder = 0x4338000000000000, above = 2048;
    double shifted[exponents], rests[exponents], low[exponents], high[exponents];
    std::uint64_t words[exponents], halves[exponents];
    for (std::size_t i = 0; i < n; ++i) rests[i] = std::min(x[i], 800.0);  // of more, it is 0
    for (std::size_t i = 0; i < n; ++i) {
        shifted[i] = rounder - rests[i] * per_log2;
        const double k = shifted[i] - rounder;
        rests[i] = (-rests[i] - k * log2_high) - k * log2_low;
    }
    std::memcpy(words, shifted, n * sizeof *words);
    // 2^k as the product of two that are not too small for a double
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t k = words[i] - bits_of_rounder + above, half = k >> 1;
        words[i] = (half - 1) << 52;
        halves[i] = (k - half - 1) << 52;
    }
    std::memcpy(low, words, n * sizeof *low);
    std::memcpy(high, halves, n * sizeof *high);
    for (std::size_t i = 0; i < n; ++i) {
        const double r = rests[i];
        double sum = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
        sum = sum * r + 1.0 / 39916800.0;
        sum = sum * r + 1.0 / 3628800.0;
        sum = sum * r + 1.0 / 362880.0;
        sum = sum * r + 1.0 / 40320.0;
        sum = sum * r + 1.0 / 5040.0;
        sum = sum * r + 1.0 / 720.0;
        sum = sum * r + 1.0 / 120.0;
        sum = sum * r + 1.0 / 24.0;
        sum = sum * r + 1.0 / 6.0;
        sum = sum * r + 0.5;
        out[i] = (1.0 + (r + r * r * sum)) * low[i] * high[i];
    }
}

}  // namespace truecast

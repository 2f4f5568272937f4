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

// Replaces x >= 0 by exp(-x), within two units in the last place; below 2^-1022, within two units
// there. It is 2^k e^r, where k is whole and |r| <= log(2) / 2: the series of e^r is cut off after
// r^13 / 13!, and what is left out is below 2^-57.
//
// Added to 1.5 2^52, a number is rounded to a whole one, which is then in the lowest bits.
TRUECAST_INLINE void exp_of_minus(Block& x) {
    constexpr double rounder = 0x1.8p52, per_log2 = 0x1.71547652b82fep0;
    constexpr double log2_high = 0x1.62e42fee00000p-1;  // 32 bits: times k, it is exact
    constexpr double log2_low = 0x1.a39ef35793c76p-33;
    constexpr std::uint64_t bits_of_rounder = 0x4338000000000000, above = 2048;
    const Block most = Block{} + 800.0;
    x = x < most ? x : most;  // of more, it is 0
    const Block shifted = rounder - x * per_log2, k = shifted - rounder;
    const Block r = (-x - k * log2_high) - k * log2_low;
    // 2^k as the product of two that are not too small for a double
    BlockBits whole;
    std::memcpy(&whole, &shifted, sizeof whole);
    whole = whole - bits_of_rounder + above;
    const BlockBits half = whole >> 1, low_bits = (half - 1) << 52;
    const BlockBits high_bits = (whole - half - 1) << 52;
    Block low, high;
    std::memcpy(&low, &low_bits, sizeof low);
    std::memcpy(&high, &high_bits, sizeof high);
    Block sum = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
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
    x = (1.0 + (r + r * r * sum)) * low * high;
}

// The same of n numbers.
TRUECAST_INLINE void exp_of_minus(const double* x, std::size_t n, double* out) {
    Block block;
    std::size_t i = 0;
    for (; i + per_block <= n; i += per_block) {
        read(block, x + i);
        exp_of_minus(block);
        write(block, out + i);
    }
    if (i == n) return;
    double last[per_block] = {};
    std::copy(x + i, x + n, last);
    read(block, last);
    exp_of_minus(block);
    write(block, last);
    std::copy(last, last + (n - i), out + i);
}

}  // namespace truecast

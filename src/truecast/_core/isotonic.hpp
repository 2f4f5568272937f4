// Isotonic regression of outcomes on forecasts by pooling adjacent violators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wide.hpp"

namespace truecast {

// Whether ones1 / (zeros1 + ones1) >= ones2 / (zeros2 + ones2): exactly ones1 zeros2 >= ones2
// zeros1.
inline bool at_least(std::int64_t zeros1, std::int64_t ones1, std::int64_t zeros2,
                     std::int64_t ones2) {
    const auto u = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    if (((u(zeros1) | u(ones1) | u(zeros2) | u(ones2)) >> 32) == 0)
        return u(ones1) * u(zeros2) >= u(ones2) * u(zeros1);
    return product(u(ones2), u(zeros1)) <= product(u(ones1), u(zeros2));
}

inline bool at_least(double zeros1, double ones1, double zeros2, double ones2) {
    return ones1 * zeros2 >= ones2 * zeros1;
}

// Writes the blocks: where each starts, its zeros and its ones; returns how many. Rates increase
// strictly. Invariant: the blocks so far are the regression of the forecasts so far.
template <typename Count>
std::size_t isotonic(const Count* zeros, const Count* ones, std::size_t n, std::int64_t* starts,
                     Count* block_zeros, Count* block_ones) {
    std::size_t blocks = 0;
    for (std::size_t i = 0; i < n; ++i) {
        std::int64_t start = static_cast<std::int64_t>(i);
        Count of_zero = zeros[i], of_one = ones[i];
        while (blocks > 0 &&
               at_least(block_zeros[blocks - 1], block_ones[blocks - 1], of_zero, of_one)) {
            --blocks;
            start = starts[blocks];
            of_zero += block_zeros[blocks];
            of_one += block_ones[blocks];
        }
        starts[blocks] = start;
        block_zeros[blocks] = of_zero;
        block_ones[blocks] = of_one;
        ++blocks;
    }
    return blocks;
}

}  // namespace truecast

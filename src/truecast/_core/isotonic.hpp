// Isotonic regression of outcomes on forecasts by pooling adjacent violators.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "totals.hpp"
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

// Proper scores of blocks, each forecast at its own rate, and of all rounds at the rate of all:
// means per round. No term is negative, so each is as precise as its terms, up to a few units in
// the last place.
struct ScoresOfRates {
    double brier, log, brier_of_all, log_of_all;
};

inline double brier_of_rate(double zeros, double ones) { return zeros * (ones / (zeros + ones)); }

inline double log_of_rate(double zeros, double ones) {
    const auto of = [](double side, double other) {
        return side > 0.0 ? side * std::log1p(other / side) : 0.0;
    };
    return of(zeros, ones) + of(ones, zeros);
}

template <typename Count>
ScoresOfRates scores_of_rates(const Count* zeros, const Count* ones, std::size_t blocks) {
    Total brier, log, no, yes;
    for (std::size_t b = 0; b < blocks; ++b) {
        const double z = static_cast<double>(zeros[b]), o = static_cast<double>(ones[b]);
        brier.add(brier_of_rate(z, o));
        log.add(log_of_rate(z, o));
        no.add(z);
        yes.add(o);
    }
    const double z = no.value(), o = yes.value(), total = z + o;
    return {brier.value() / total, log.value() / total, brier_of_rate(z, o) / total,
            log_of_rate(z, o) / total};
}

}  // namespace truecast

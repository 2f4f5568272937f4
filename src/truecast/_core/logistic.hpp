// Logistic regression on one variable: how well a line fits, with derivatives, in one pass.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "totals.hpp"

namespace truecast {

// Of the outcomes at log-odds a + b z: the log loss; its derivatives by a and b; and the second
// ones, by a twice, by a and b, and by b twice. Works with exp(-|a + b z|), which is small: nothing
// overflows, and 1 - p is as precise as p.
template <typename Count>
std::array<double, 6> logistic_fit(const double* z, const Count* zeros, const Count* ones,
                                   std::size_t n, double a, double b) {
    constexpr std::size_t block = 64;
    double odds[block], smalls[block], logs[block];
    std::array<Total, 6> sums;
    // Block by block, functions first: no call comes between the sums, which stay in registers.
    for (std::size_t from = 0, to; from < n; from = to) {
        to = std::min(from + block, n);
        for (std::size_t i = from; i < to; ++i) odds[i - from] = a + b * z[i];
        for (std::size_t k = 0; k < to - from; ++k) smalls[k] = std::exp(-std::fabs(odds[k]));
        for (std::size_t k = 0; k < to - from; ++k) logs[k] = std::log1p(smalls[k]);
        for (std::size_t i = from; i < to; ++i) {
            const double at = odds[i - from], small = smalls[i - from];
            const double larger = 1.0 / (1.0 + small), smaller = small * larger;
            const double p = at < 0.0 ? smaller : larger, q = at < 0.0 ? larger : smaller;
            const double no = static_cast<double>(zeros[i]), yes = static_cast<double>(ones[i]);
            const double miss = no * p - yes * q, bend = (no + yes) * (smaller * larger);
            sums[0].add((no + yes) * logs[i - from]);
            sums[0].add(no * std::max(at, 0.0) + yes * std::max(-at, 0.0));
            sums[1].add(miss);
            sums[2].add(miss * z[i]);
            sums[3].add(bend);
            sums[4].add(bend * z[i]);
            sums[5].add(bend * z[i] * z[i]);
        }
    }
    std::array<double, 6> values{};
    std::transform(sums.begin(), sums.end(), values.begin(),
                   [](const Total& sum) { return sum.value(); });
    return values;
}

// Mean and standard deviation of z, weighted by the counts.
template <typename Count>
std::array<double, 2> moments(const double* z, const Count* zeros, const Count* ones,
                              std::size_t n) {
    Total all, first, second;
    for (std::size_t i = 0; i < n; ++i) {
        const double weight = static_cast<double>(zeros[i] + ones[i]);
        all.add(weight);
        first.add(weight * z[i]);
    }
    const double mean = first.value() / all.value();
    for (std::size_t i = 0; i < n; ++i) {
        const double off = z[i] - mean;
        second.add(static_cast<double>(zeros[i] + ones[i]) * (off * off));
    }
    return {mean, std::sqrt(second.value() / all.value())};
}

}  // namespace truecast

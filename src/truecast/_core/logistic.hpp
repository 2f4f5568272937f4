// Logistic regression on one variable: how well a line fits, and derivatives, each in one pass.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "exponential.hpp"
#include "totals.hpp"
#include "vectors.hpp"

namespace truecast {

// Outcomes at log-odds a + b z, of a block of neighbours.
//
// Works with exp(-|a + b z|), which is small: nothing overflows, and 1 - p is as precise as p.
struct LogisticBlock {
    static constexpr std::size_t size = exponents;

    double misses[size];  // the derivatives of the log loss by a, of each
    double bends[size];   // the second ones

    template <typename Count>
    TRUECAST_INLINE void set(const double* z, const Count* zeros, const Count* ones, std::size_t n,
                             double a, double b) {
        double odds[size], sizes[size], smalls[size], no[size], yes[size];
        for (std::size_t i = 0; i < n; ++i) odds[i] = a + b * z[i];
        for (std::size_t i = 0; i < n; ++i) sizes[i] = std::fabs(odds[i]);
        for (std::size_t i = 0; i < n; ++i) no[i] = static_cast<double>(zeros[i]);
        for (std::size_t i = 0; i < n; ++i) yes[i] = static_cast<double>(ones[i]);
        exp_of_minus(sizes, n, smalls);
        for (std::size_t i = 0; i < n; ++i) {
            const double larger = 1.0 / (1.0 + smalls[i]), smaller = smalls[i] * larger;
            const double p = odds[i] < 0.0 ? smaller : larger, q = odds[i] < 0.0 ? larger : smaller;
            misses[i] = no[i] * p - yes[i] * q;
            bends[i] = (no[i] + yes[i]) * (smaller * larger);
        }
        for (std::size_t i = n; i < size; ++i) misses[i] = bends[i] = 0.0;
    }
};

// Eight compensated sums side by side, and all of them.
class Totals {
  public:
    // Entries of a whole block.
    template <typename Entry>
    TRUECAST_INLINE void add(Entry entry) {
        for (std::size_t from = 0; from < LogisticBlock::size; from += lanes)
            for (std::size_t l = 0; l < lanes; ++l) {
                const double x = entry(from + l), next = sums_[l] + x, added = next - sums_[l];
                rests_[l] += (sums_[l] - (next - added)) + (x - added);
                sums_[l] = next;
            }
    }
    double value() const {
        Total all;
        for (const double sum : sums_) all.add(sum);
        for (const double rest : rests_) all.add(rest);
        return all.value();
    }

  private:
    static constexpr std::size_t lanes = 8;

    double sums_[lanes] = {}, rests_[lanes] = {};
};

// The derivatives of the log loss of outcomes at log-odds a + z, by a: first and second.
template <typename Count>
TRUECAST_INLINE std::array<double, 2> shift_sums(const double* z, const Count* zeros,
                                                 const Count* ones, std::size_t n, double a) {
    LogisticBlock block;
    Totals first, second;
    for (std::size_t from = 0; from < n; from += block.size) {
        block.set(z + from, zeros + from, ones + from, std::min(block.size, n - from), a, 1.0);
        first.add([&](std::size_t i) { return block.misses[i]; });
        second.add([&](std::size_t i) { return block.bends[i]; });
    }
    return {first.value(), second.value()};
}

// The same at log-odds a + b z: the derivatives by a and b; and the second ones, by a twice, by a
// and b, and by b twice.
template <typename Count>
TRUECAST_INLINE std::array<double, 5> line_sums(const double* z, const Count* zeros,
                                                const Count* ones, std::size_t n, double a,
                                                double b) {
    LogisticBlock block;
    Totals sums[5];
    double places[block.size];
    for (std::size_t from = 0; from < n; from += block.size) {
        const std::size_t count = std::min(block.size, n - from);
        block.set(z + from, zeros + from, ones + from, count, a, b);
        std::fill(std::copy(z + from, z + from + count, places), places + block.size, 0.0);
        sums[0].add([&](std::size_t i) { return block.misses[i]; });
        sums[1].add([&](std::size_t i) { return block.misses[i] * places[i]; });
        sums[2].add([&](std::size_t i) { return block.bends[i]; });
        sums[3].add([&](std::size_t i) { return block.bends[i] * places[i]; });
        sums[4].add([&](std::size_t i) { return block.bends[i] * places[i] * places[i]; });
    }
    return {sums[0].value(), sums[1].value(), sums[2].value(), sums[3].value(), sums[4].value()};
}

template <typename Count>
TRUECAST_FOUR_AT_A_TIME std::array<double, 2> shift_sums_by_fours(const double* z,
                                                                  const Count* zeros,
                                                                  const Count* ones, std::size_t n,
                                                                  double a) {
    return shift_sums(z, zeros, ones, n, a);
}
template <typename Count>
TRUECAST_FOUR_AT_A_TIME std::array<double, 5> line_sums_by_fours(const double* z,
                                                                 const Count* zeros,
                                                                 const Count* ones, std::size_t n,
                                                                 double a, double b) {
    return line_sums(z, zeros, ones, n, a, b);
}

// The log loss at log-odds a + b z.
template <typename Count>
double logistic_loss(const double* z, const Count* zeros, const Count* ones, std::size_t n,
                     double a, double b) {
    Total sum;
    for (std::size_t i = 0; i < n; ++i) {
        const double at = a + b * z[i], no = static_cast<double>(zeros[i]),
                     yes = static_cast<double>(ones[i]);
        sum.add((no + yes) * std::log1p(std::exp(-std::fabs(at))));
        sum.add(no * std::max(at, 0.0) + yes * std::max(-at, 0.0));
    }
    return sum.value();
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

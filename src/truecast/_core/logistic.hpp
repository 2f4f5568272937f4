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
    double turns[size];   // the third ones

    template <typename Count>
    TRUECAST_INLINE void set(const double* z, const Count* zeros, const Count* ones, std::size_t n,
                             double a, double b) {
        double odds[size], sizes[size] = {}, smalls[size], no[size], yes[size];
        for (std::size_t i = 0; i < n; ++i) no[i] = static_cast<double>(zeros[i]);
        for (std::size_t i = 0; i < n; ++i) yes[i] = static_cast<double>(ones[i]);
        for (std::size_t i = 0; i < n; ++i) odds[i] = a + b * z[i];
        for (std::size_t i = 0; i < n; ++i) sizes[i] = std::fabs(odds[i]);
        exp_of_minus(sizes, n, smalls);
        for (std::size_t i = 0; i < n; ++i) {
            const double larger = 1.0 / (1.0 + smalls[i]), smaller = smalls[i] * larger;
            const double p = odds[i] < 0.0 ? smaller : larger, q = odds[i] < 0.0 ? larger : smaller;
            misses[i] = no[i] * p - yes[i] * q;
            bends[i] = (no[i] + yes[i]) * (smaller * larger);
            turns[i] = bends[i] * (q - p);
        }
    }
};

// Compensated sums side by side, and all of them.
class Totals {
  public:
    // The first n entries of a block.
    template <typename Entry>
    TRUECAST_INLINE void add(std::size_t n, Entry entry) {
        std::size_t from = 0;
        for (; from + lanes <= n; from += lanes)
            for (std::size_t l = 0; l < lanes; ++l) add(l, entry(from + l), 0.0);
        for (std::size_t l = 0; from + l < n; ++l) add(l, entry(from + l), 0.0);
    }
    TRUECAST_INLINE double value() {
        for (std::size_t half = lanes / 2; half > 0; half /= 2)
            for (std::size_t l = 0; l < half; ++l) add(l, sums_[half + l], rests_[half + l]);
        return sums_[0] + rests_[0];
    }

  private:
    static constexpr std::size_t lanes = 32;

    TRUECAST_INLINE void add(std::size_t l, double x, double rest) {
        const double next = sums_[l] + x, added = next - sums_[l];
        rests_[l] += ((sums_[l] - (next - added)) + (x - added)) + rest;
        sums_[l] = next;
    }

    double sums_[lanes] = {}, rests_[lanes] = {};
};

// Outcomes at log-odds z, which increase: zeros and ones, or their weights, at each.
template <typename Count>
struct Graded {
    const double* z;
    const Count *zeros, *ones;
    std::size_t n;

    // The derivatives of the log loss at log-odds a + z, by a: the first three.
    std::array<double, 3> shifted(double a) const {
        return TRUECAST_HAS_FOUR ? shifted_by_fours(a) : shifted_each(a);
    }

    // The same at log-odds a + b z: the derivatives by a and b; and the second ones, by a twice, by
    // a and b, and by b twice.
    std::array<double, 5> lined(double a, double b) const {
        return TRUECAST_HAS_FOUR ? lined_by_fours(a, b) : lined_each(a, b);
    }

    // The log loss itself.
    double loss(double a, double b) const {
        return TRUECAST_HAS_FOUR ? loss_by_fours(a, b) : loss_each(a, b);
    }

    // How far a + b z is from 0, at most.
    double reach(double a, double b) const {
        return std::max(std::fabs(a + b * z[0]), std::fabs(a + b * z[n - 1]));
    }

    // All zeros, or all ones.
    double total_of(const Count* counts) const {
        Total sum;
        for (std::size_t i = 0; i < n; ++i) sum.add(static_cast<double>(counts[i]));
        return sum.value();
    }

    // Mean and standard deviation of z, weighted by the counts.
    std::array<double, 2> moments() const {
        Total all, first, second;
        for (std::size_t i = 0; i < n; ++i) {
            all.add(weight(i));
            first.add(weight(i) * z[i]);
        }
        const double mean = first.value() / all.value();
        for (std::size_t i = 0; i < n; ++i) {
            const double off = z[i] - mean;
            second.add(weight(i) * (off * off));
        }
        return {mean, std::sqrt(second.value() / all.value())};
    }

  private:
    double weight(std::size_t i) const {
        return static_cast<double>(zeros[i]) + static_cast<double>(ones[i]);
    }

    // log(1 + x) is log(u) + c / u, within c^2, if u is the rounded sum and c what that lost.
    TRUECAST_INLINE double loss_each(double a, double b) const {
        constexpr std::size_t size = exponents;
        double odds[size], sizes[size] = {}, smalls[size];
        Total sum;
        for (std::size_t from = 0; from < n; from += size) {
            const std::size_t count = std::min(size, n - from);
            for (std::size_t i = 0; i < count; ++i) odds[i] = a + b * z[from + i];
            for (std::size_t i = 0; i < count; ++i) sizes[i] = std::fabs(odds[i]);
            exp_of_minus(sizes, count, smalls);
            for (std::size_t i = 0; i < count; ++i) {
                const double no = static_cast<double>(zeros[from + i]),
                             yes = static_cast<double>(ones[from + i]);
                const double u = 1.0 + smalls[i], c = smalls[i] - (u - 1.0);
                sum.add((no + yes) * (std::log(u) + c / u));
                sum.add(no * std::max(odds[i], 0.0) + yes * std::max(-odds[i], 0.0));
            }
        }
        return sum.value();
    }
    TRUECAST_FOUR_AT_A_TIME double loss_by_fours(double a, double b) const {
        return loss_each(a, b);
    }

    TRUECAST_INLINE std::array<double, 3> shifted_each(double a) const {
        LogisticBlock block;
        Totals sums[3];
        for (std::size_t from = 0; from < n; from += block.size) {
            const std::size_t count = std::min(block.size, n - from);
            block.set(z + from, zeros + from, ones + from, count, a, 1.0);
            sums[0].add(count, [&](std::size_t i) { return block.misses[i]; });
            sums[1].add(count, [&](std::size_t i) { return block.bends[i]; });
            sums[2].add(count, [&](std::size_t i) { return block.turns[i]; });
        }
        return {sums[0].value(), sums[1].value(), sums[2].value()};
    }
    TRUECAST_FOUR_AT_A_TIME std::array<double, 3> shifted_by_fours(double a) const {
        return shifted_each(a);
    }

    TRUECAST_INLINE std::array<double, 5> lined_each(double a, double b) const {
        LogisticBlock block;
        Totals sums[5];
        for (std::size_t from = 0; from < n; from += block.size) {
            const std::size_t count = std::min(block.size, n - from);
            block.set(z + from, zeros + from, ones + from, count, a, b);
            const double* const places = z + from;
            sums[0].add(count, [&](std::size_t i) { return block.misses[i]; });
            sums[1].add(count, [&](std::size_t i) { return block.misses[i] * places[i]; });
            sums[2].add(count, [&](std::size_t i) { return block.bends[i]; });
            sums[3].add(count, [&](std::size_t i) { return block.bends[i] * places[i]; });
            sums[4].add(count,
                        [&](std::size_t i) { return block.bends[i] * places[i] * places[i]; });
        }
        return {sums[0].value(), sums[1].value(), sums[2].value(), sums[3].value(),
                sums[4].value()};
    }
    TRUECAST_FOUR_AT_A_TIME std::array<double, 5> lined_by_fours(double a, double b) const {
        return lined_each(a, b);
    }
};

}  // namespace truecast

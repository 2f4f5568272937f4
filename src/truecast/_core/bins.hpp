// Zeros, ones and the sum of forecasts in bins [e_k, e_{k+1}), the last one closed. Forecasts are
// summed as multiples of 2^-62, cut off below: integers, so the order of rounds does not matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tally.hpp"
#include "totals.hpp"
#include "wide.hpp"

namespace truecast {

// By way of a signed integer, which machines convert to at once.
inline std::uint64_t fixed_point(double p) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(p * 0x1p62));
}

// Each round straight to its bin of equal width, with edges k / bins as doubles. `out` has a row
// (zeros, ones, low word, high word) for each bin, all 0. False if some round is invalid.
template <typename Y>
bool sum_rounds(const double* p, const Y* y, std::size_t n, const double* edges, std::size_t bins,
                std::uint64_t* out) {
    const double scale = static_cast<double>(bins);
    const std::int64_t last = static_cast<std::int64_t>(bins) - 1;
    std::vector<std::uint64_t> bits(
        bins + 1, ~std::uint64_t{0});  // of the edges; the last bin has no upper one
    for (std::size_t k = 0; k < bins; ++k) bits[k] = bits_of(edges[k]);
    const std::uint64_t* const starts = bits.data();
    for (std::size_t i = 0; i < n; ++i) {
        const Round round(p[i], y[i]);
        if (round.invalid()) return false;
        std::int64_t k =
            static_cast<std::int64_t>(p[i] * scale);  // off by at most one, by rounding
        k -= k > last;
        k -= round.forecast < starts[k];
        k += round.forecast >= starts[k + 1];
        std::uint64_t* bin = out + 4 * k;
        ++bin[round.outcome];
        const std::uint64_t x = fixed_point(p[i]);
        bin[2] += x;
        bin[3] += bin[2] < x;
    }
    return true;
}

// A sum of fixed points, rounded once.
inline double forecast_sum(const Wide& sum) {
    const std::uint64_t digits[4] = {sum.low & 0xffffffff, sum.low >> 32, sum.high & 0xffffffff,
                                     sum.high >> 32};
    return nearest(digits, 4, -62);
}

// What is in bins, a column each; in empty ones, means are NaN.
struct BinColumns {
    std::int64_t *zeros, *ones;
    double *forecast, *rate;

    void set(std::size_t k, std::int64_t no, std::int64_t yes, const Wide& sum) const {
        const double count = static_cast<double>(no + yes);
        zeros[k] = no;
        ones[k] = yes;
        forecast[k] = forecast_sum(sum) / count;
        rate[k] = static_cast<double>(yes) / count;
    }
};
template <typename Y>
bool bin_rounds(const double* p, const Y* y, std::size_t n, const double* edges, std::size_t bins,
                const BinColumns& to) {
    std::vector<std::uint64_t> sums(4 * bins);
    if (!sum_rounds(p, y, n, edges, bins, sums.data())) return false;
    for (std::size_t k = 0; k < bins; ++k) {
        const std::uint64_t* const bin = &sums[4 * k];
        to.set(k, static_cast<std::int64_t>(bin[0]), static_cast<std::int64_t>(bin[1]),
               {bin[2], bin[3]});
    }
    return true;
}

enum class Norm { l1, l2, max };

// The gaps between rates and mean forecasts in bins, of which some may be empty.
template <typename Count>
double gap_norm(const Count* zeros, const Count* ones, const double* forecast, const double* rate,
                std::size_t bins, Norm norm) {
    Total all, sum;
    double largest = 0.0;
    for (std::size_t k = 0; k < bins; ++k) {
        const double count = static_cast<double>(zeros[k] + ones[k]);
        if (!(count > 0.0)) continue;
        const double gap = std::fabs(rate[k] - forecast[k]);
        all.add(count);
        sum.add(count * (norm == Norm::l2 ? gap * gap : gap));
        largest = std::max(largest, gap);
    }
    if (norm == Norm::max) return largest;
    const double mean = sum.value() / all.value();
    return norm == Norm::l2 ? std::sqrt(mean) : mean;
}

// The mean of the absolute value of a normal variable.
inline double folded_normal_mean(double mean, double deviation) {
    if (deviation == 0.0) return std::fabs(mean);
    constexpr double pi = 3.14159265358979323846;
    const double z = mean / deviation;
    return deviation * std::sqrt(2.0 / pi) * std::exp(-z * z / 2.0) +
           mean * std::erf(z / std::sqrt(2.0));
}

// The norm without what chance adds to it, on average; for the mean gap or its square.
inline double debiased_norm(const std::int64_t* zeros, const std::int64_t* ones,
                            const double* forecast, const double* rate, std::size_t bins,
                            Norm norm) {
    Total all, sum;
    for (std::size_t k = 0; k < bins; ++k) {
        const double count = static_cast<double>(zeros[k] + ones[k]);
        if (!(count > 0.0)) continue;
        const double gap = std::fabs(rate[k] - forecast[k]), spread = rate[k] * (1.0 - rate[k]);
        all.add(count);
        if (norm == Norm::l1)
            sum.add(count * (2.0 * gap - folded_normal_mean(gap, std::sqrt(spread / count))));
        else if (count > 1.0)  // a rate of one round does not tell its variance
            sum.add(count * (gap * gap - spread / (count - 1.0)));
    }
    const double mean = std::max(0.0, sum.value() / all.value());
    return norm == Norm::l1 ? mean : std::sqrt(mean);
}

// Edges of bins of equal counts, as far as ties allow: each begins at the least forecast with at
// least k / bins of all rounds below it.
template <typename Count>
std::vector<double> quantile_edges(const double* p, const Count* zeros, const Count* ones,
                                   std::size_t n, Count total, std::int64_t bins) {
    const auto wanted = [&](std::int64_t k) -> Count {
        if constexpr (std::is_floating_point_v<Count>)
            return static_cast<Count>(k) / static_cast<Count>(bins) * total;
        else  // rounded up; the product of k and the total may be too large
            return k * (total / bins) + (k * (total % bins) + bins - 1) / bins;
    };
    std::vector<double> edges(1, 0.0);
    Count below = 0;
    std::int64_t k = 1;
    // invariant: fewer than k / bins of all rounds have forecasts before i
    for (std::size_t i = 0; i + 1 < n && k < bins; ++i) {
        below += zeros[i] + ones[i];
        if (below < wanted(k)) continue;
        while (k < bins && !(below < wanted(k))) ++k;
        edges.push_back(p[i + 1]);
    }
    edges.push_back(1.0);
    return edges;
}

// The same bins of a tally, whose forecasts increase: those below a bin's upper edge that are in no
// bin before it.
inline void bin_tally(const double* p, const std::int64_t* zeros, const std::int64_t* ones,
                      std::size_t n, const double* edges, std::size_t bins, const BinColumns& to) {
    for (std::size_t k = 0, i = 0; k < bins; ++k) {
        Wide sum;
        std::int64_t no = 0, yes = 0;
        for (; i < n && (p[i] < edges[k + 1] || k + 1 == bins); ++i) {
            sum.add(product(static_cast<std::uint64_t>(zeros[i] + ones[i]), fixed_point(p[i])));
            no += zeros[i];
            yes += ones[i];
        }
        to.set(k, no, yes, sum);
    }
}

}  // namespace truecast

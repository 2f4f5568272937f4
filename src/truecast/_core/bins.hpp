// Zeros, ones and the sum of forecasts in bins [e_k, e_{k+1}), the last one closed. Forecasts are
// summed as multiples of 2^-62, cut off below: integers, so the order of rounds does not matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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

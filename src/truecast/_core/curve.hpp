// The reliability curve of a tally, and how far forecasts are from it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "isotonic.hpp"
#include "scores.hpp"
#include "sorting.hpp"
#include "totals.hpp"

namespace truecast {

template <typename Count>
double rate_of(Count zeros, Count ones) {
    return static_cast<double>(ones) / static_cast<double>(zeros + ones);
}

// The blocks of isotonic regression. There is room for as many as there are forecasts; blocks are
// few as a rule, and room that is not used is not touched.
template <typename Count>
struct Curve {
    std::unique_ptr<std::int64_t[]> starts;
    std::unique_ptr<Count[]> zeros, ones;
    std::size_t blocks;

    Curve(const Count* of_zero, const Count* of_one, std::size_t n)
        : starts(new std::int64_t[n]), zeros(new Count[n]), ones(new Count[n]) {
        blocks = isotonic(of_zero, of_one, n, starts.get(), zeros.get(), ones.get());
    }

    // The last forecast of a block, if there are n.
    std::size_t last(std::size_t block, std::size_t n) const {
        return (block + 1 < blocks ? static_cast<std::size_t>(starts[block + 1]) : n) - 1;
    }
};

// The least values that at least these shares of the weight do not exceed. The values may change
// places.
template <typename Count>
void quantiles(std::vector<double>& values, const Count* zeros, const Count* ones,
               const double* shares, std::size_t number, double* out) {
    const std::size_t n = values.size();
    if (number == 0) return;
    const auto weight = [&](std::size_t i) { return static_cast<double>(zeros[i] + ones[i]); };
    bool equal = true;
    for (std::size_t i = 0; i < n && equal; ++i) equal = zeros[i] + ones[i] == 1;
    if (equal) {  // nothing need be sorted
        for (std::size_t k = 0; k < number; ++k) {
            const double rank = std::ceil(shares[k] * static_cast<double>(n)) - 1.0;
            const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 0.0));
            std::nth_element(values.begin(), place, values.end());
            out[k] = *place;
        }
        return;
    }
    std::vector<PlacedValue> placed;
    placed.reserve(n);
    for (std::size_t i = 0; i < n; ++i) placed.emplace_back(values[i], i);
    sort_values(placed);
    std::vector<double> reached(n);
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) reached[i] = sum += weight(placed[i].place());
    for (std::size_t k = 0; k < number; ++k) {
        const auto first = std::lower_bound(reached.begin(), reached.end() - 1, shares[k] * sum);
        out[k] = placed[static_cast<std::size_t>(first - reached.begin())].value();
    }
}

// The sum over rounds of the distance of forecasts from the rates of their blocks: block k begins
// at lower(k) and has the rate rate(k). Then quantiles of it.
template <typename Count, typename Lower, typename Rate>
std::vector<double> curve_errors(const double* p, const Count* zeros, const Count* ones,
                                 std::size_t n, Lower lower, Rate rate, std::size_t blocks,
                                 const double* shares, std::size_t number) {
    std::vector<double> errors(number > 0 ? n : 0), found(1 + number);
    Total sum;
    double here = rate(0);
    for (std::size_t i = 0, block = 0; i < n; ++i) {
        while (block + 1 < blocks && lower(block + 1) <= p[i]) here = rate(++block);
        const double error = std::fabs(p[i] - here);
        if (number > 0) errors[i] = error;
        sum.add(error * static_cast<double>(zeros[i] + ones[i]));
    }
    found[0] = sum.value();
    quantiles(errors, zeros, ones, shares, number, found.data() + 1);
    return found;
}

}  // namespace truecast

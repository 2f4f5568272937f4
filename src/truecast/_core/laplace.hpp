// The double sum over all pairs of r_i r_j exp(-|p_i - p_j| / scale) in one pass over sorted p.
#pragma once

#include <cmath>
#include <cstddef>

#include "totals.hpp"

namespace truecast {

// 1 - exp(-x) for x >= 0. For small x, the rule where forecasts are dense, three terms of the series have a relative
// error below 2^-39 / 24, and the loss itself is small.
inline double loss(double x) { return x < 0x1p-13 ? x * (1.0 - x * (0.5 - x / 6.0)) : -std::expm1(-x); }

template <typename Count>
double laplace(const double* p, const Count* zeros, const Count* ones, std::size_t n, double scale) {
    Total sum;
    double left = 0.0;  // sum over j < i of r_j exp(-(p_i - p_j) / scale)
    const double rate = 1.0 / scale;
    for (std::size_t i = 0; i < n; ++i) {
        const double r = residual(p[i], zeros[i], ones[i]);
        if (i > 0) left -= left * loss((p[i] - p[i - 1]) * rate);  // no factor near 1, which would always round alike
        sum.add(r * (r + 2.0 * left));
        left += r;
    }
    return sum.value();
}

}  // namespace truecast

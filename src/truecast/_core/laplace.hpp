// The double sum over all pairs of r_i r_j exp(-|p_i - p_j| / scale) in one pass over sorted p.
#pragma once

#include <cmath>
#include <cstddef>

#include "totals.hpp"
#include "two.hpp"

namespace truecast {

// 1 - exp(-x) for x >= 0. For small x, the rule where forecasts are dense, three terms of the
// series have a relative error below 2^-39 / 24, and the loss itself is small.
inline double loss(double x) {
    return x < 0x1p-13 ? x * (1.0 - x * (0.5 - x * (1.0 / 6.0))) : -std::expm1(-x);
}

// One side of the sum, forecast by forecast: `near` is the sum over those so far of r exp(-distance
// / scale).
struct Decaying {
    double rate, place, near = 0.0;
    Total sum{};

    void add(double p, double r) {
        near -= near * loss(std::fabs(p - place) *
                            rate);  // not times a factor near 1, which would always round alike
        sum.add(r * (r + 2.0 * near));
        near += r;
        place = p;
    }
};

// From both ends to the middle, by a thread each if there are many forecasts: either side is one
// chain of operations that wait for each other.
template <typename Count>
double laplace(const double* p, const Count* zeros, const Count* ones, std::size_t n, double scale,
               bool threads) {
    if (n == 0) return 0.0;
    const std::size_t middle = n / 2;
    Decaying left{1.0 / scale, p[0]}, right{1.0 / scale, p[n - 1]};
    const auto add_left = [&] {
        Decaying side = left;
        for (std::size_t i = 0; i < middle; ++i) side.add(p[i], residual(p[i], zeros[i], ones[i]));
        left = side;
    };
    const auto add_right = [&] {
        Decaying side = right;
        for (std::size_t i = n; i-- > middle;) side.add(p[i], residual(p[i], zeros[i], ones[i]));
        right = side;
    };
    both(threads && n >= 1 << 18, add_left, add_right);
    const double between =
        left.near * right.near * (1.0 - loss((right.place - left.place) * left.rate));
    return left.sum.value() + right.sum.value() + 2.0 * between;
}

}  // namespace truecast

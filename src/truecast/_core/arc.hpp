// The kernel on the arc, K(p, q) = rise(min) fall(max), and the energy of residuals (docs/arc.md).
#pragma once

#include <cmath>
#include <cstddef>
#include <thread>

#include "totals.hpp"

namespace truecast {

// Both factors are this function of 1 - p and of p. Its relative error is below 2^-47 (docs/arc.md, section 6).
inline double arc_shape(double q) {
    const double x = 1.0 - std::sqrt(q), gap = 1.75 - x;
    return 121.0 / 123.0 * (4.0 + x * (6.0 + x * (45.0 * x - 30.0))) / (gap * gap);
}

struct Shape {
    double rise, fall;
    explicit Shape(double p) : rise(arc_shape(1.0 - p)), fall(arc_shape(p)) {}
};

// Forecasts from one end inwards: the factor that grows inwards is `inner`, the other one `outer`.
// After each: `near` is the sum of r inner, `energy` the double sum of r r' K, `gross` that of |r r'| K.
struct ArcSide {
    Total near, energy, expected;
    double gross_near = 0.0, gross = 0.0;

    void add(double r, double inner, double outer, double price) {
        const double in = r * inner, out = r * outer;
        energy.add(out * (2.0 * near.value() + in));
        near.add(in);
        gross += std::fabs(out) * (2.0 * gross_near + std::fabs(in));
        gross_near += std::fabs(in);
        expected.add(price);
    }
};

struct ArcEnergy {
    double energy;    // of all pairs
    double gross;     // of the residuals' magnitudes: what rounding errors are relative to
    double expected;  // the mean of the energy if the forecasts are right
};

// From both ends to the middle, by a thread each if there are many forecasts.
template <typename Count>
ArcEnergy arc_energy(const double* p, const Count* zeros, const Count* ones, std::size_t n) {
    const std::size_t middle = n / 2;
    const auto add = [=](ArcSide& side, std::size_t i, bool mirrored) {
        const Shape shape(p[i]);
        const double weight = static_cast<double>(zeros[i]) + static_cast<double>(ones[i]);
        const double price = weight * (p[i] * (1.0 - p[i])) * (shape.rise * shape.fall);
        const double r = residual(p[i], zeros[i], ones[i]);
        side.add(r, mirrored ? shape.fall : shape.rise, mirrored ? shape.rise : shape.fall, price);
    };
    ArcSide left, right;
    const auto add_right = [&] {
        ArcSide side;
        for (std::size_t i = n; i-- > middle;) add(side, i, true);
        right = side;
    };
    std::thread second;
    if (n >= 1 << 18) second = std::thread(add_right);
    for (std::size_t i = 0; i < middle; ++i) add(left, i, false);
    if (second.joinable())
        second.join();
    else
        add_right();
    return {left.energy.value() + right.energy.value() + 2.0 * left.near.value() * right.near.value(),
            left.gross + right.gross + 2.0 * left.gross_near * right.gross_near,
            left.expected.value() + right.expected.value()};
}

}  // namespace truecast

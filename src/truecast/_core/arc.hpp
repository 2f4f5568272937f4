// The kernel on the arc, K(p, q) = rise(min) fall(max), and the energy of residuals (docs/arc.md).
#pragma once

#include <cmath>
#include <cstddef>

#include "totals.hpp"
#include "two.hpp"

namespace truecast {

// Both factors are this function of 1 - p and of p. Its relative error is below 19 * 2^-53
// (docs/arc.md, section 6).
inline double arc_shape(double q) {
    const double x = 1.0 - std::sqrt(q), gap = 1.75 - x;
    return 121.0 / 123.0 * (4.0 + x * (6.0 + x * (45.0 * x - 30.0))) / (gap * gap);
}

struct Shape {
    double rise, fall;
    explicit Shape(double p) : rise(arc_shape(1.0 - p)), fall(arc_shape(p)) {}
    Shape(double rise_, double fall_) : rise(rise_), fall(fall_) {}
};

// A stretch of forecasts, r being their residuals. The energy of two stretches is a sum of
// products: `then`.
struct ArcEnergy {
    double near = 0.0, far = 0.0;              // sums of r rise and of r fall
    double energy = 0.0;                       // of all pairs
    double gross_near = 0.0, gross_far = 0.0;  // the same of the residuals' magnitudes,
    double gross = 0.0;                        // which is what rounding errors are relative to
    double expected = 0.0;                     // the mean of the energy if the forecasts are right

    // This stretch and one above it.
    ArcEnergy then(const ArcEnergy& above) const {
        return {near + above.near,
                far + above.far,
                energy + above.energy + 2.0 * near * above.far,
                gross_near + above.gross_near,
                gross_far + above.gross_far,
                gross + above.gross + 2.0 * gross_near * above.gross_far,
                expected + above.expected};
    }
};

constexpr std::size_t arc_few = 32;  // forecasts that are summed one by one
constexpr std::size_t arc_many =
    1 << 18;  // forecasts from which on a second thread is worth starting

// The residuals of a tally, and what they would be squared on average.
template <typename Count>
struct TallyResiduals {
    const Count *zeros, *ones;

    double residual(std::size_t i, double p) const {
        return truecast::residual(p, zeros[i], ones[i]);
    }
    double variance(std::size_t i, double p) const {
        return (static_cast<double>(zeros[i]) + static_cast<double>(ones[i])) * (p * (1.0 - p));
    }
};

inline Shape shape_of(double p) { return Shape(p); }

// A forecast whose shape is known, and its residual as such, of which no more is known.
struct Shaped {
    double rise, fall, residual;
};

inline Shape shape_of(const Shaped& point) { return {point.rise, point.fall}; }

struct PlainResiduals {
    double residual(std::size_t, const Shaped& point) const { return point.residual; }
    double variance(std::size_t, const Shaped&) const { return 0.0; }
};

// Apart: what is independent, which a compiler can do for several forecasts at once, and the sums.
template <typename Point, typename Residuals>
ArcEnergy arc_energy_of_few(const Point* p, const Residuals& of, std::size_t from, std::size_t n) {
    double rise[arc_few], fall[arc_few], r[arc_few], price[arc_few];
    for (std::size_t i = 0; i < n; ++i) {
        const Shape shape = shape_of(p[from + i]);
        rise[i] = shape.rise;
        fall[i] = shape.fall;
    }
    for (std::size_t i = 0; i < n; ++i) {
        r[i] = of.residual(from + i, p[from + i]);
        price[i] = of.variance(from + i, p[from + i]) * (rise[i] * fall[i]);
    }
    ArcEnergy sum;
    for (std::size_t i = 0; i < n; ++i) {
        const double in = r[i] * rise[i], out = r[i] * fall[i], size_in = std::fabs(in),
                     size_out = std::fabs(out);
        sum.energy += out * (2.0 * sum.near + in);
        sum.gross += size_out * (2.0 * sum.gross_near + size_in);
        sum.near += in;
        sum.far += out;
        sum.gross_near += size_in;
        sum.gross_far += size_out;
        sum.expected += price[i];
    }
    return sum;
}

// Of n forecasts from one on. By halves: a sum then passes few others, and its error is small
// (docs/arc.md, section 6). They are the same halves whether a second thread takes one of them or
// not.
template <typename Point, typename Residuals>
ArcEnergy arc_energy(const Point* p, const Residuals& of, std::size_t n, std::size_t from = 0,
                     bool threads = true) {
    if (n <= arc_few) return arc_energy_of_few(p, of, from, n);
    const std::size_t half = n / 2;
    ArcEnergy below, above;
    both(
        threads && n >= arc_many, [&] { below = arc_energy(p, of, half, from, false); },
        [&] { above = arc_energy(p, of, n - half, from + half, false); });
    return below.then(above);
}

}  // namespace truecast

// The forecaster on the arc: counts at dyadic forecasts, and a tree of sums to search for the next
// one.
//
// The forecast is a function of the counts alone; the tree only makes finding it quick
// (docs/arc.md, section 4).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "arc.hpp"

namespace truecast {

// A forecast that was said, or an ancestor of one: the middle of a cell that halving [0, 1] makes.
struct alignas(64) Knot {
    double p, rise, fall;
    double rises = 0.0, falls = 0.0;  // residual * rise and residual * fall, summed over the cell
    std::int64_t zeros = 0, ones = 0;
    std::uint32_t child[2] = {0,
                              0};  // the knots of the lower and the upper half; 0 if there is none

    explicit Knot(double p_, Shape shape) : p(p_), rise(shape.rise), fall(shape.fall) {}
    double residual() const { return truecast::residual(p, zeros, ones); }
};

class ArcTree {
  public:
    std::int64_t rounds = 0;
    bool issued = false, busy = false;

    // The first knot stands for "none": its sums are and stay 0. The second is the root.
    ArcTree() : knots_{Knot(0.0, Shape(0.0)), Knot(0.5, Shape(0.5))} {}

    double predict() {
        said_ = search();
        issued = true;
        return said_;
    }

    // Play a round whose forecast `predict` gave.
    void observe(bool y) {
        settle(said_, !y, y);
        issued = false;
    }

    double step(bool y) {
        const double p = predict();
        observe(y);
        return p;
    }

    // Add outcomes at a forecast: a dyadic fraction inside (0, 1), with a denominator of at most
    // 2^52.
    void add(double p, std::int64_t zeros, std::int64_t ones) {
        depth_ = 1;
        settle(p, zeros, ones);
    }

    // Call `visit` with every knot that was said, from the lowest to the highest.
    template <typename Visit>
    void each(Visit visit) const {
        std::vector<std::uint32_t> above;
        std::uint32_t here = 1;
        while (here || !above.empty()) {
            for (; here; here = knots_[here].child[0]) above.push_back(here);
            const Knot& knot = knots_[above.back()];
            above.pop_back();
            if (knot.zeros + knot.ones) visit(knot);
            here = knot.child[1];
        }
    }

    std::size_t knots() const { return knots_.size() - 1; }

  private:
    std::vector<Knot> knots_;
    double said_ = 0.5;
    std::uint32_t path_[52] = {1};  // knots from the root towards what was said
    int depth_ = 1;                 // how many

    // Halve the cell towards the root of the field until a round at the middle costs little beyond
    // its price. Invariant: the field is > 0 at `low`, unless that is 0, and <= 0 at `high`, unless
    // that is 1; `below` is the sum of residual * rise up to `low`, `above` that of residual * fall
    // from `high` on.
    double search() {
        const double rare = 14.0 / static_cast<double>(rounds + 1);
        double low = 0.0, high = 1.0, below = 0.0, above = 0.0;
        Knot unsaid = knots_[0];
        int depth = 0;
        for (std::uint32_t here = 1;;) {
            const double p = (low + high) / 2;
            const Knot& knot = here ? knots_[here] : (unsaid = Knot(p, Shape(p)));
            const double r = knot.residual(), self = knot.rise * knot.fall,
                         price = p * (1.0 - p) * self;
            const double to_here = below + knots_[knot.child[0]].rises + r * knot.rise;
            const double beyond = above + knots_[knot.child[1]].falls;
            const double field = knot.fall * to_here + knot.rise * beyond + self * (0.5 - p);
            const double cost = 2.0 * field * (field > 0.0 ? 1.0 - p : -p);
            if (here) {
                path_[depth] = here;
                depth_ = ++depth;
            }
            if (cost <= price / 64.0 + std::min(rare, 1.0 - price)) return p;
            if (high - low <= 0x1p-51) {
                depth_ = 1;  // what is said lies above
                return p > 0.5 ? low : high;
            }
            const bool upper = field > 0.0;
            if (upper) {
                low = p;
                below = to_here;
            } else {
                high = p;
                above = beyond + r * knot.fall;
            }
            here = knot.child[upper];
        }
    }

    // Add outcomes at a forecast below the last knot of the path, or at that.
    void settle(double p, std::int64_t zeros, std::int64_t ones) {
        std::uint32_t here = path_[depth_ - 1];
        for (double step = std::ldexp(0.5, -depth_); knots_[here].p != p; step /= 2) {
            const bool upper = p > knots_[here].p;
            here = path_[depth_++] = grown(here, upper, knots_[here].p + (upper ? step : -step));
        }
        knots_[here].zeros += zeros;
        knots_[here].ones += ones;
        rounds += zeros + ones;
        while (depth_ > 0) sum(knots_[path_[--depth_]]);
    }

    std::uint32_t grown(std::uint32_t parent, bool upper, double p) {
        if (const std::uint32_t child = knots_[parent].child[upper]) return child;
        if (knots_.size() > std::numeric_limits<std::uint32_t>::max()) throw std::bad_alloc();
        knots_.emplace_back(p, Shape(p));
        return knots_[parent].child[upper] = static_cast<std::uint32_t>(knots_.size() - 1);
    }

    // Always from the counts, so that no rounding error gathers and a saved state gives the same
    // sums.
    void sum(Knot& knot) {
        const double r = knot.residual();
        knot.rises = knots_[knot.child[0]].rises + r * knot.rise + knots_[knot.child[1]].rises;
        knot.falls = knots_[knot.child[0]].falls + r * knot.fall + knots_[knot.child[1]].falls;
    }
};

}  // namespace truecast

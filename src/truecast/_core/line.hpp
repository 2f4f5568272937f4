// The shift, or the line, of log-odds that fits outcomes best: Newton's method on logistic.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "logistic.hpp"
#include "totals.hpp"

namespace truecast {

constexpr int newton_steps = 200;
constexpr double newton_close = 1e-8;  // a step this short leaves an error of about its square

// Outcomes with stretches of neighbours at their mean. What fits those is where to begin: the steps
// that are left are few.
class Stretched {
  public:
    static constexpr std::size_t many = 1 << 14, stretch = 64;

    template <typename Count>
    explicit Stretched(const Graded<Count>& all) {
        for (std::size_t from = 0; from < all.n; from += stretch) {
            const std::size_t to = std::min(from + stretch, all.n);
            double z = 0.0, no = 0.0, yes = 0.0;
            for (std::size_t i = from; i < to; ++i) {
                z += all.z[i];
                no += static_cast<double>(all.zeros[i]);
                yes += static_cast<double>(all.ones[i]);
            }
            z_.push_back(z / static_cast<double>(to - from));
            zeros_.push_back(no);
            ones_.push_back(yes);
        }
    }
    Graded<double> graded() const { return {z_.data(), zeros_.data(), ones_.data(), z_.size()}; }

  private:
    std::vector<double> z_, zeros_, ones_;
};

struct Shift {
    double a, variance;
};

// The a that fits sigmoid(a + z) best. There are both zeros and ones. Halley's method, within an
// interval that always holds the root: at its ends, every a + z is below, or above, the log-odds of
// the mean outcome. After a step this short, the second derivative is known from the third.
template <typename Count>
Shift best_shift(const Graded<Count>& at) {
    const double rate = std::log(at.total_of(at.ones) / at.total_of(at.zeros));
    double low = rate - at.z[at.n - 1], high = rate - at.z[0];
    double a = at.n < Stretched::many ? 0.0 : best_shift(Stretched(at).graded()).a;
    a = std::min(std::max(a, low), high);
    double bend = 0.0;
    for (int k = 0; k < newton_steps; ++k) {
        const auto [slope, curvature, turn] = at.shifted(a);
        (slope < 0.0 ? low : high) = a;
        double next = a - slope / (curvature - slope * turn / (2.0 * curvature));
        if (!(low <= next && next <= high)) next = (low + high) / 2.0;
        const double step = next - a;
        a = next;
        bend = curvature + turn * step;
        if (std::fabs(step) <= newton_close * std::max(1.0, std::fabs(a))) break;
    }
    return {a, 1.0 / bend};
}

struct Line {
    double a, b;
    std::array<double, 5> sums;  // the derivatives, as Graded::lined has them

    double size() const { return std::max(std::fabs(a), std::fabs(b)); }

    // The second derivatives, as lean = ab / aa and what is left of bb beyond it. That may be rounded
    // away where one forecast outweighs all others: it is not taken to be less than its rounding, so
    // that steps stay finite, and can be halved.
    double lean() const { return sums[3] / sums[2]; }
    double rest() const { return std::max(sums[4] - sums[3] * lean(), 0x1p-50 * sums[4]); }
};

template <typename Count>
Line line_at(const Graded<Count>& at, double a, double b) {
    return {a, b, at.lined(a, b)};
}

// Newton's step from a line: the solution of a system of two equations.
inline Line newton_step(const Line& from) {
    const double b = (from.lean() * from.sums[0] - from.sums[1]) / from.rest();
    return {-(from.sums[0] + from.sums[3] * b) / from.sums[2], b, {}};
}

// Whether a step may have made the fit worse. Not if the loss still falls at its end, as it is
// convex. Nor if no log-odds moved by more than M = 1.75: second derivatives change by a factor of
// e^M at most, and along Newton's step the loss falls at first as g and bends by g; so it has
// changed by at most g ((e^M - M - 1) / M^2 - 1), which is negative.
template <typename Count>
bool may_be_worse(const Graded<Count>& at, const Line& step, const Line& next) {
    const double rise = next.sums[0] * step.a + next.sums[1] * step.b;
    return !(rise <= 0.0 || at.reach(step.a, step.b) <= 1.75);
}

// The a and b that fit sigmoid(a + b x) best, where the mean of x is 0 and its deviation 1. No
// threshold separates zeros from ones, so that there are such numbers. A step that makes the fit
// worse, by more than rounding can, is halved.
template <typename Count>
Line best_line(const Graded<Count>& at, double centre, double scale) {
    constexpr double rounding = 1.0 + 1e-12;
    Line best{centre, scale, {}};  // what was forecast
    if (at.n >= Stretched::many) best = best_line(Stretched(at).graded(), centre, scale);
    best = line_at(at, best.a, best.b);
    for (int k = 0; k < newton_steps; ++k) {
        Line step = newton_step(best);
        if (!std::isfinite(step.size())) break;  // no forecast bends the loss: nothing to go by
        Line next = line_at(at, best.a + step.a, best.b + step.b);
        const double shortest = newton_close * std::max(1.0, best.size());
        if (may_be_worse(at, step, next)) {
            const double no = at.total_of(at.zeros), yes = at.total_of(at.ones);
            const double flat = no * std::log1p(yes / no) + yes * std::log1p(no / yes);
            const double most = at.loss(best.a, best.b) * rounding;
            if (!(most <= flat * rounding * rounding)) {  // no slope at all fits better
                best = line_at(at, std::log(yes / no), 0.0);
                continue;
            }
            while (!(at.loss(next.a, next.b) <= most) && step.size() > shortest) {
                step.a /= 2.0;
                step.b /= 2.0;
                next = line_at(at, best.a + step.a, best.b + step.b);
            }
        }
        best = next;
        if (step.size() <= shortest) break;
    }
    return best;
}

// 1 - p and the quotient are each rounded by a half unit in their last place at most: that moves
// the logarithm by less than 2^-52.
inline double log_odds(double p) { return std::log(p / (1.0 - p)); }

// Forecasts that are neither 0 nor 1, at their log-odds; the weight left out with the others, and
// whether one of those was wrong. Counts stay where they are, in the tally.
template <typename Count>
class Uncertain {
  public:
    double left_out = 0.0;
    bool wrong = false;

    Uncertain(const double* p, const Count* zeros, const Count* ones, std::size_t n) {
        std::size_t from = 0, to = n;
        if (to > 0 && p[0] == 0.0) leave_out(zeros[from], ones[from], ones[from] > 0), ++from;
        if (to > from && p[n - 1] == 1.0) --to, leave_out(zeros[to], ones[to], zeros[to] > 0);
        z_.resize(to - from);
        std::transform(p + from, p + to, z_.begin(), log_odds);
        zeros_ = zeros + from;
        ones_ = ones + from;
    }

    std::size_t size() const { return z_.size(); }
    std::vector<double>& z() { return z_; }
    Graded<Count> graded() const { return {z_.data(), zeros_, ones_, z_.size()}; }

    // The first and the last place with a count above 0; the first is size() if there is none.
    std::pair<std::size_t, std::size_t> ends_of_zeros() const { return ends(zeros_); }
    std::pair<std::size_t, std::size_t> ends_of_ones() const { return ends(ones_); }

  private:
    void leave_out(Count zeros, Count ones, bool missed) {
        wrong = wrong || missed;
        left_out += static_cast<double>(zeros) + static_cast<double>(ones);
    }
    std::pair<std::size_t, std::size_t> ends(const Count* counts) const {
        std::size_t first = 0, last = size();
        while (first < size() && !(counts[first] > 0)) ++first;
        while (last > first && !(counts[last - 1] > 0)) --last;
        return {first, last - (last > first)};
    }

    std::vector<double> z_;
    const Count *zeros_, *ones_;
};

// Why no line, or no shift, fits best; numbered as in measures/clinical.py.
enum class NoFit { none, wrong, certain, zeros, ones, one_forecast, rises, falls };

template <typename Count>
NoFit why_no_shift(const Uncertain<Count>& rounds) {
    if (rounds.wrong) return NoFit::wrong;
    if (rounds.size() == 0) return NoFit::certain;
    if (rounds.ends_of_ones().first == rounds.size()) return NoFit::zeros;
    if (rounds.ends_of_zeros().first == rounds.size()) return NoFit::ones;
    return NoFit::none;
}

template <typename Count>
NoFit why_no_line(const Uncertain<Count>& rounds) {
    const NoFit why = why_no_shift(rounds);
    if (why != NoFit::none) return why;
    if (rounds.size() == 1) return NoFit::one_forecast;
    const auto zeros = rounds.ends_of_zeros(), ones = rounds.ends_of_ones();
    if (zeros.second <= ones.first) return NoFit::rises;
    if (ones.second <= zeros.first) return NoFit::falls;
    return NoFit::none;
}

// Why there is no shift, if there is none; the shift and its variance.
template <typename Count>
std::array<double, 3> shift_of(const double* p, const Count* zeros, const Count* ones,
                               std::size_t n) {
    const Uncertain rounds(p, zeros, ones, n);
    const NoFit why = why_no_shift(rounds);
    if (why != NoFit::none) return {static_cast<double>(why), 0.0, 0.0};
    const Shift found = best_shift(rounds.graded());
    return {0.0, found.a, found.variance};
}

// The weight left out, and why there is no line, if there is none; intercept and slope, and their
// variances.
template <typename Count>
std::array<double, 6> line_of(const double* p, const Count* zeros, const Count* ones,
                              std::size_t n) {
    Uncertain rounds(p, zeros, ones, n);
    const NoFit why = why_no_line(rounds);
    if (why != NoFit::none) return {rounds.left_out, static_cast<double>(why), 0.0, 0.0, 0.0, 0.0};
    const Graded<Count> at = rounds.graded();
    const auto [centre, scale] = at.moments();
    for (double& z : rounds.z()) z = (z - centre) / scale;
    const Line best = best_line(at, centre, scale);
    const double away = centre / scale, lean = best.lean() + away;
    return {rounds.left_out,
            0.0,
            best.a - away * best.b,
            best.b / scale,
            1.0 / best.sums[2] + lean * lean / best.rest(),
            1.0 / best.rest() / (scale * scale)};
}

}  // namespace truecast

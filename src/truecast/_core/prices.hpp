// Best prices at nodes (docs/measures.md, section 4): a linear programme on a path, by an interior
// point method.
//
// Maximise  sum of zeros_k A_k + ones_k B_k  over prices A, B at nodes v_k, where 1 - d and 1 + d
// must not be negative for the slopes d of A and of B in every gap, nor -((1 - v_k) A_k + v_k B_k)
// at any node. These five families are the slacks s; the dual variables x of the first four are
// flows through gaps (times the gaps), of the last calibrated forecasts at nodes: the atoms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "vectors.hpp"

namespace truecast {

// Mehrotra's predictor and corrector, O(n) an iteration: the normal equations are block
// tridiagonal, two prices a node.
//
// Invariant: x > 0 and s > 0, the prices are strictly feasible, and s are their slacks up to
// rounding. The atoms need not be calibrated before the end; every full step makes them so. An
// iterate is left only for a finite one, and near the end the best prices and atoms are kept:
// whatever happens, they are there.
class Prices {
  public:
    // From 2 nodes, increasing from 0 to 1; masses sum to 1. Prices and atoms are written where
    // they are asked for.
    Prices(const double* v, const double* zeros, const double* ones, std::size_t n, double* prices,
           double* atoms)
        : n_(n),
          middle_(n / 2),
          nodes_(v),
          masses_{zeros, ones},
          prices_{prices, prices + n},
          room_(32 * n) {
        double* next = room_.data();
        const auto array = [&] { return (next += n) - n; };
        for (auto* family : {dual_, slack_, per_slack_, term_})
            for (std::size_t c = 0; c < 5; ++c)
                family[c] = family == dual_ && c == 4 ? atoms : array();
        for (auto* row : {&slack_step_[0], &slack_step_[1], &slack_step_[2], &right_[0], &right_[1],
                          &coupling_[0], &coupling_[1], &left_[0], &left_[1], &left_[2],
                          &second_pivot_, &first_pivot_, &per_gap_})
            *row = array();
    }

    // Stops when prices and atoms are within `tolerance` of each other, relative to the cost of the
    // atoms, or at a difference that doubles do not resolve; or after `most` iterations, or when
    // rounding allows no progress. Returns the number of iterations.
    std::size_t solve(double tolerance, std::size_t most) {
        return TRUECAST_HAS_FOUR ? solve_by_fours(tolerance, most) : solve_each(tolerance, most);
    }

  private:
    TRUECAST_FOUR_AT_A_TIME std::size_t solve_by_fours(double tolerance, std::size_t most) {
        return solve_each(tolerance, most);
    }
    TRUECAST_INLINE std::size_t solve_each(double tolerance, std::size_t most) {
        if (one_sided()) return 0;
        start();
        const double pairs = 5.0 * static_cast<double>(n_) - 4.0;
        double least = 1e300;
        std::size_t i = 0;
        for (std::size_t since = 0; i < most; ++i) {
            const double enough = tolerance * std::max(worth_, 0.0) + resolved;
            if (gap_ <= std::max(16.0 * enough, rough) &&
                keep() <= std::max(tolerance * least_cost_, resolved))
                break;
            if (gap_ < 0.9 * least) {
                least = gap_;
                since = i;
            }
            if (i - since > (gap_ <= enough ? patience / 4 : patience)) break;
            factor();
            mean_ = gap_ / pairs;
            Step step = substitute<false>();
            const double x = std::min(1.0, 1.0 / step.most_x), s = std::min(1.0, 1.0 / step.most_s);
            const double left = 1.0 - x + ((s - x) * step.x_ds + x * s * step.dx_ds) / gap_;
            // not far below what is enough: where x s is lost in rounding, neither prices nor atoms
            // get better
            target_ = std::max(mean_ * std::pow(std::min(std::max(left, 0.0), 1.0), 4),
                               enough / 8.0 / pairs);
            eliminate();
            step = substitute<true>();
            if (!(std::isfinite(step.x_ds + step.dx_ds) && step.most_x < 1e8 && step.most_s < 1e8))
                break;
            const double back = std::min(0.9995, std::max(0.9, 1.0 - gap_));
            move(std::min(1.0, back / step.most_x), std::min(1.0, back / step.most_s));
        }
        if (!kept_atoms_.empty()) {
            std::copy(kept_[0].begin(), kept_[0].end(), prices_[0]);
            std::copy(kept_[1].begin(), kept_[1].end(), prices_[1]);
            std::copy(kept_atoms_.begin(), kept_atoms_.end(), dual_[4]);
        }
        return i;
    }

    static constexpr double resolved = 0x1p-48, rough = 0x1p-24;
    static constexpr std::size_t patience = 25;

    // The greatest -dx/x and -ds/s, and sums over all pairs.
    struct Step {
        double most_x = 0.0, most_s = 0.0, x_ds = 0.0, dx_ds = 0.0;
    };

    // If there are only zeros, or only ones, all move to one end, and the other prices have no
    // bound below.
    bool one_sided() const {
        double sums[2] = {0.0, 0.0};
        for (std::size_t k = 0; k < n_; ++k) {
            sums[0] += masses_[0][k];
            sums[1] += masses_[1][k];
        }
        if (sums[0] > 0.0 && sums[1] > 0.0) return false;
        const double sign = sums[1] > 0.0 ? -1.0 : 1.0;
        for (std::size_t k = 0; k < n_; ++k) {
            prices_[0][k] = sign * nodes_[k];
            prices_[1][k] = sign * (nodes_[k] - 1.0);
            dual_[4][k] = 0.0;
        }
        dual_[4][sums[1] > 0.0 ? n_ - 1 : 0] = 1.0;
        return true;
    }

    // The weight of a node's pair on the central path; that of a slope is 1.
    double weight(std::size_t k) const {
        return 0.5 + 0.5 * static_cast<double>(n_) * (masses_[0][k] + masses_[1][k]);
    }

    TRUECAST_INLINE void start() {
        const double level = 0.25, product = level / static_cast<double>(n_);
        for (std::size_t k = 0; k < n_; ++k) {
            for (std::size_t c = 0; c < 4; ++c) {
                slack_[c][k] = 1.0;
                dual_[c][k] = product;
            }
            slack_[4][k] = level;
            dual_[4][k] = weight(k) * product / level;
            prices_[0][k] = prices_[1][k] = -level;
            if (k + 1 < n_) per_gap_[k] = 1.0 / (nodes_[k + 1] - nodes_[k]);
        }
        move(0.0, 0.0);
    }

    // Keeps the prices if they are the best so far, and the atoms if they are; returns how far the
    // best are apart.
    double keep() {
        const double cost = this->cost();
        if (kept_atoms_.empty() || cost < least_cost_) {
            least_cost_ = cost;
            kept_atoms_.assign(dual_[4], dual_[4] + n_);
        }
        if (kept_[0].empty() || worth_ > most_worth_) {
            most_worth_ = worth_;
            for (int side : {0, 1}) kept_[side].assign(prices_[side], prices_[side] + n_);
        }
        return least_cost_ - most_worth_;
    }

    // What it costs to move all to the atoms, made calibrated: scaled down until they need no more
    // than there is, the rest to 0 and 1.
    double cost() const {
        double have[2] = {0.0, 0.0}, need[2] = {0.0, 0.0};
        for (std::size_t k = 0; k < n_; ++k) {
            have[0] += masses_[0][k];
            have[1] += masses_[1][k];
            need[0] += (1.0 - nodes_[k]) * dual_[4][k];
            need[1] += nodes_[k] * dual_[4][k];
        }
        const double part = std::min(1.0, std::min(have[0] / need[0], have[1] / need[1]));
        double flow[2] = {part * need[0] - have[0], 0.0}, sum = 0.0;
        for (std::size_t k = 0; k + 1 < n_; ++k) {
            flow[0] += masses_[0][k] - (1.0 - nodes_[k]) * dual_[4][k] * part;
            flow[1] += masses_[1][k] - nodes_[k] * dual_[4][k] * part;
            sum += (nodes_[k + 1] - nodes_[k]) * (std::fabs(flow[0]) + std::fabs(flow[1]));
        }
        return sum;
    }

    // What elimination from one end brings to the next node: E = ((a, b), (b, c)), its determinant
    // d, and a right side.
    struct Brought {
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0, right[2] = {0.0, 0.0};
    };

    // The gap between a node and the next towards the middle, from the left or from the right.
    template <bool from_left>
    TRUECAST_INLINE static std::size_t gap_at(std::size_t k) {
        return from_left ? k : k - 1;
    }

    // Calls from the left and from the right in turn, for nodes from the ends to the middle: two
    // chains of dependent operations, of which one need not wait for the other.
    template <typename Left, typename Right>
    TRUECAST_INLINE void inwards(Left left, Right right) const {
        for (std::size_t k = 0; k < middle_; ++k) {
            left(k);
            if (n_ - 1 - k > middle_) right(n_ - 1 - k);
        }
    }
    template <typename Left, typename Right>
    TRUECAST_INLINE void outwards(Left left, Right right) const {
        for (std::size_t k = 1; k <= middle_; ++k) {
            left(middle_ - k);
            if (middle_ + k < n_) right(middle_ + k);
        }
    }

    // The normal matrix has diagonal blocks z_k (1 - v_k, v_k)(1 - v_k, v_k)' + W_k + W_k-1 and
    // -W_k beside them, with z = x/s of the node and W_k diagonal, of x/s of the slopes.
    // Eliminating from the left leaves E_k + W_k at k, where E_0 = 0 before its z, and E_k+1 starts
    // as the parallel sum W (W + E)^-1 E: W - W (W + E)^-1 W without cancellation. The same from
    // the right; at the middle, both add. The determinant of E is carried along, as a sum of terms
    // that are not negative. The predictor's right side, for products that should become 0, is
    // eliminated in the same pass.
    TRUECAST_INLINE void factor() {
        for (std::size_t c = 0; c < 5; ++c) invert(slack_[c], count(c), per_slack_[c]);
        Brought left, right;
        inwards([&](std::size_t k) { factor_at<true>(k, left); },
                [&](std::size_t k) { factor_at<false>(k, right); });
        left.d += right.d + across(left, right);
        left.a += right.a;
        left.b += right.b;
        left.c += right.c;
        for (const int side : {0, 1}) left.right[side] += right.right[side];
        add_node<true>(middle_, left);
        first_pivot_[middle_] = 1.0 / left.a;
        second_pivot_[middle_] = left.a / left.d;
    }

    // The determinant of a sum of two such matrices, less both determinants: a c' + c a' - 2 b b'
    // without cancellation.
    static double across(const Brought& left, const Brought& right) {
        if (!(right.c > 0.0)) return 0.0;  // nothing is right of the middle
        const double r = left.b / left.a, q = right.b / right.c, off = 1.0 - r * q;
        return left.a * right.c * off * off + left.d / left.a * right.a +
               left.a * r * r * right.d / right.c;
    }

    // From the left a is never small, and from the right c.
    template <bool from_left>
    TRUECAST_INLINE void add_node(std::size_t k, Brought& e) {
        const double z = dual_[4][k] * per_slack_[4][k], one = nodes_[k], zero = 1.0 - one;
        const double large = from_left ? e.a : e.c, own = from_left ? one : zero,
                     other = from_left ? zero : one;
        const double inverse = large > 0.0 ? 1.0 / large : 0.0, off = own - other * e.b * inverse;
        e.d += z * (large * off * off + other * other * e.d * inverse);
        e.a += z * zero * zero;
        e.b += z * zero * one;
        e.c += z * one * one;
        left_[0][k] = e.a;
        left_[1][k] = e.b;
        left_[2][k] = e.c;
        for (const int side : {0, 1}) right_[side][k] = masses_[side][k] + e.right[side];
    }

    template <bool from_left>
    TRUECAST_INLINE void factor_at(std::size_t k, Brought& e) {
        const std::size_t g = gap_at<from_left>(k);
        add_node<from_left>(k, e);
        const double h = per_gap_[g];
        const double w0 = (dual_[0][g] * per_slack_[0][g] + dual_[1][g] * per_slack_[1][g]) * h * h;
        const double w1 = (dual_[2][g] * per_slack_[2][g] + dual_[3][g] * per_slack_[3][g]) * h * h;
        const double f = 1.0 / (w0 * w1 + w0 * e.c + w1 * e.a + e.d), both = w0 * w1 * f;
        coupling_[0][g] = w0;
        coupling_[1][g] = w1;
        first_pivot_[k] = 1.0 / (w0 + e.a);
        second_pivot_[k] = (w0 + e.a) * f;
        divide(k, right_[0][k], right_[1][k], e.right[0], e.right[1]);
        e.right[0] *= w0;
        e.right[1] *= w1;
        e.a = both * e.a + w0 * e.d * f;
        e.c = both * e.c + w1 * e.d * f;
        e.b *= both;
        e.d *= both;
    }

    // The right side of the normal equations, for products that should become target * weight + t,
    // with what elimination brings from both ends.
    TRUECAST_INLINE void eliminate() {
        double left[2] = {0.0, 0.0}, right[2] = {0.0, 0.0};
        inwards([&](std::size_t k) { eliminate_at<true>(k, left); },
                [&](std::size_t k) { eliminate_at<false>(k, right); });
        const double from[2] = {left[0] + right[0], left[1] + right[1]};
        set_right(middle_, from);
    }

    TRUECAST_INLINE void set_right(std::size_t k, const double* from) {
        const double z = (target_ * weight(k) + term_[4][k]) * per_slack_[4][k];
        right_[0][k] = masses_[0][k] - (1.0 - nodes_[k]) * z + from[0];
        right_[1][k] = masses_[1][k] - nodes_[k] * z + from[1];
    }

    template <bool from_left>
    TRUECAST_INLINE void eliminate_at(std::size_t k, double* from) {
        const std::size_t g = gap_at<from_left>(k);
        const double h = from_left ? per_gap_[g] : -per_gap_[g];
        const double flow0 = ((target_ + term_[0][g]) * per_slack_[0][g] -
                              (target_ + term_[1][g]) * per_slack_[1][g]) *
                             h;
        const double flow1 = ((target_ + term_[2][g]) * per_slack_[2][g] -
                              (target_ + term_[3][g]) * per_slack_[3][g]) *
                             h;
        set_right(k, from);
        right_[0][k] += flow0;
        right_[1][k] += flow1;
        divide(k, right_[0][k], right_[1][k], from[0], from[1]);
        from[0] = coupling_[0][g] * from[0] - flow0;
        from[1] = coupling_[1][g] * from[1] - flow1;
    }

    // (W + E)^-1 q, W = 0 at the middle, by a triangular factor: its products with W and E are
    // as exact as q.
    TRUECAST_INLINE void divide(std::size_t k, double q0, double q1, double& to0,
                                double& to1) const {
        to1 = (q1 - left_[1][k] * first_pivot_[k] * q0) * second_pivot_[k];
        to0 = (q0 - left_[1][k] * to1) * first_pivot_[k];
    }

    // From the middle to the ends: the change of the prices (in place of r), and with it those of s
    // and x. The differences of prices come straight from the elimination, (W + E)^-1 (E dy - r)
    // with dy at the neighbour, not from subtracting.
    template <bool corrector>
    TRUECAST_INLINE Step substitute() {
        double left[2], right[2];
        divide(middle_, right_[0][middle_], right_[1][middle_], left[0], left[1]);
        std::copy(left, left + 2, right);
        set_step(middle_, left);
        outwards([&](std::size_t k) { substitute_at<true>(k, left); },
                 [&](std::size_t k) { substitute_at<false>(k, right); });
        Step step;
        for (std::size_t c = 0; c < 5; ++c) change<corrector>(c, step);
        return step;
    }

    template <bool from_left>
    TRUECAST_INLINE void substitute_at(std::size_t k, double* y) {
        const std::size_t g = gap_at<from_left>(k);
        const double a = left_[0][k], b = left_[1][k], c = left_[2][k];
        const double h = from_left ? per_gap_[g] : -per_gap_[g];
        double d0, d1;
        divide(k, a * y[0] + b * y[1] - right_[0][k], b * y[0] + c * y[1] - right_[1][k], d0, d1);
        y[0] -= d0;
        y[1] -= d1;
        slack_step_[0][g] = d0 * h;
        slack_step_[1][g] = d1 * h;
        set_step(k, y);
    }

    TRUECAST_INLINE void set_step(std::size_t k, const double* y) {
        right_[0][k] = y[0];
        right_[1][k] = y[1];
        slack_step_[2][k] = -((1.0 - nodes_[k]) * y[0] + nodes_[k] * y[1]);
    }

    // What is the same for all entries of a row is done for several at once, in lanes.
    static constexpr std::size_t lanes = 8;
    template <typename Each>
    TRUECAST_INLINE static void in_lanes(std::size_t count, Each each) {
        std::size_t k = 0;
        for (; k + lanes <= count; k += lanes)
            for (std::size_t l = 0; l < lanes; ++l) each(k + l, l);
        for (; k < count; ++k) each(k, 0);
    }
    TRUECAST_INLINE static double sum_of(const double* parts) {
        return ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
               ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    }

    // Entries of a family: the slopes are one fewer.
    std::size_t count(std::size_t c) const { return c < 4 ? n_ - 1 : n_; }

    // The change of a family's slacks is this, times a sign: prices that rise faster leave less.
    const double* steps(std::size_t c) const { return slack_step_[c / 2]; }
    static double sign(std::size_t c) { return c == 0 || c == 2 ? -1.0 : 1.0; }

    TRUECAST_INLINE static void invert(const double* from, std::size_t count,
                                       double* __restrict to) {
        for (std::size_t k = 0; k < count; ++k) to[k] = 1.0 / from[k];
    }

    // The predictor leaves minus the second-order terms dx ds in t, cut off where they are far from
    // the mean product, the corrector dx.
    template <bool corrector>
    TRUECAST_INLINE void change(std::size_t c, Step& step) {
        const double *const duals = dual_[c], *const inverse = per_slack_[c], *const by = steps(c);
        const double *const no = masses_[0], *const yes = masses_[1];
        double* __restrict const terms = term_[c];
        const double sign = this->sign(c), target = target_, mean = mean_;
        const double flat = c < 4 ? 1.0 : 0.5,
                     per_mass = c < 4 ? 0.0 : 0.5 * static_cast<double>(n_);
        double most_x[lanes] = {}, most_s[lanes] = {}, x_ds[lanes] = {}, dx_ds[lanes] = {};
        in_lanes(count(c), [&](std::size_t k, std::size_t l) {
            const double x = duals[k], i = inverse[k], ds = sign * by[k];
            const double weight = flat + per_mass * (no[k] + yes[k]);
            const double dx = ((corrector ? target * weight + terms[k] : 0.0) - x * ds) * i - x;
            const double off = -dx / x, down = -ds * i, second = -dx * ds;
            const double cut = second > -mean ? second : -mean;
            terms[k] = corrector ? dx : cut < 30.0 * mean ? cut : 30.0 * mean;
            most_x[l] = off > most_x[l] ? off : most_x[l];
            most_s[l] = down > most_s[l] ? down : most_s[l];
            x_ds[l] += x * ds;
            dx_ds[l] += dx * ds;
        });
        for (std::size_t l = 0; l < lanes; ++l) {
            step.most_x = std::max(step.most_x, most_x[l]);
            step.most_s = std::max(step.most_s, most_s[l]);
        }
        step.x_ds += sum_of(x_ds);
        step.dx_ds += sum_of(dx_ds);
    }

    TRUECAST_INLINE void move(double along_x, double along_s) {
        worth_ = gap_ = 0.0;
        for (const int side : {0, 1}) {
            const double *const by = right_[side], *const masses = masses_[side];
            double* __restrict const prices = prices_[side];
            double worth[lanes] = {};
            in_lanes(n_, [&](std::size_t k, std::size_t l) {
                prices[k] += along_s * by[k];
                worth[l] += masses[k] * prices[k];
            });
            worth_ += sum_of(worth);
        }
        for (std::size_t c = 0; c < 5; ++c) {
            const double *const by = steps(c), *const terms = term_[c];
            double* __restrict const x = dual_[c], * __restrict const s = slack_[c];
            const double along = sign(c) * along_s;
            double products[lanes] = {};
            in_lanes(count(c), [&](std::size_t k, std::size_t l) {
                x[k] += along_x * terms[k];
                s[k] += along * by[k];
                products[l] += x[k] * s[k];
            });
            gap_ += sum_of(products);
        }
    }

    // Each pointer is a row of n_ numbers; two rows are of zeros and of ones, five of the families.
    std::size_t n_, middle_;
    const double *nodes_, *masses_[2];
    double* prices_[2];
    double *dual_[5], *slack_[5];  // x and s of the head of this file; dual_[4] are the atoms
    double* per_slack_[5];         // 1 / s
    double* term_[5];              // the second-order terms, then the change of x
    double* slack_step_[3];        // the change of s: of the rising slopes, and of the nodes
    double* right_[2];             // the right side, then the change of the prices
    double* coupling_[2];          // W
    double* left_[3];              // E, of what is eliminated before
    double *first_pivot_, *second_pivot_;  // of W + E, inverted
    double* per_gap_;                      // 1 / the gap to the next node
    double worth_ = 0.0, gap_ = 0.0, mean_ = 0.0, target_ = 0.0, least_cost_ = 0.0,
           most_worth_ = 0.0;
    std::vector<double> room_, kept_[2], kept_atoms_;
};

}  // namespace truecast

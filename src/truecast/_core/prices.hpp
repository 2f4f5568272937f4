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
        : n_(n), nodes_(v), masses_{zeros, ones}, prices_{prices, prices + n}, room_(32 * n) {
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

  private:
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

    void start() {
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

    // The normal matrix has diagonal blocks z_k (1 - v_k, v_k)(1 - v_k, v_k)' + W_k + W_k-1 and
    // -W_k beside them, with z = x/s of the node and W_k diagonal, of x/s of the slopes.
    // Eliminating from the left leaves E_k + W_k at k, where E_0 = 0 before its z, and E_k+1 starts
    // as the parallel sum W (W + E)^-1 E: W - W (W + E)^-1 W without cancellation. E = ((a, b), (b,
    // c)); its determinant d is carried along, as a sum of terms that are not negative. The
    // predictor's right side, for products that should become 0, is eliminated in the same pass.
    void factor() {
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0, from0 = 0.0, from1 = 0.0;
        for (std::size_t k = 0; k < n_; ++k) {
            for (std::size_t f = k + 1 < n_ ? 0 : 4; f < 5; ++f)
                per_slack_[f][k] = 1.0 / slack_[f][k];
            const double z = dual_[4][k] * per_slack_[4][k], one = nodes_[k], zero = 1.0 - one;
            const double per_a = a > 0.0 ? 1.0 / a : 0.0, across = one - zero * b * per_a;
            d += z * (a * across * across + zero * zero * d * per_a);
            a += z * zero * zero;
            b += z * zero * one;
            c += z * one * one;
            left_[0][k] = a;
            left_[1][k] = b;
            left_[2][k] = c;
            right_[0][k] = masses_[0][k] + from0;
            right_[1][k] = masses_[1][k] + from1;
            if (k + 1 == n_) break;
            const double h = per_gap_[k];
            const double w0 =
                (dual_[0][k] * per_slack_[0][k] + dual_[1][k] * per_slack_[1][k]) * h * h;
            const double w1 =
                (dual_[2][k] * per_slack_[2][k] + dual_[3][k] * per_slack_[3][k]) * h * h;
            const double f = 1.0 / (w0 * w1 + w0 * c + w1 * a + d), both = w0 * w1 * f;
            coupling_[0][k] = w0;
            coupling_[1][k] = w1;
            first_pivot_[k] = 1.0 / (w0 + a);
            second_pivot_[k] = (w0 + a) * f;
            divide(k, right_[0][k], right_[1][k], from0, from1);
            from0 *= w0;
            from1 *= w1;
            a = both * a + w0 * d * f;
            c = both * c + w1 * d * f;
            b *= both;
            d *= both;
        }
        first_pivot_[n_ - 1] = 1.0 / a;
        second_pivot_[n_ - 1] = a / d;
    }

    // Forward: the right side of the normal equations, for products that should become target *
    // weight + t, with what elimination brings from the left.
    void eliminate() {
        double from0 = 0.0, from1 = 0.0;
        for (std::size_t k = 0; k < n_; ++k) {
            const double z = (target_ * weight(k) + term_[4][k]) * per_slack_[4][k];
            double r0 = masses_[0][k] - (1.0 - nodes_[k]) * z + from0,
                   r1 = masses_[1][k] - nodes_[k] * z + from1;
            if (k + 1 < n_) {
                const double flow0 = ((target_ + term_[0][k]) * per_slack_[0][k] -
                                      (target_ + term_[1][k]) * per_slack_[1][k]) *
                                     per_gap_[k];
                const double flow1 = ((target_ + term_[2][k]) * per_slack_[2][k] -
                                      (target_ + term_[3][k]) * per_slack_[3][k]) *
                                     per_gap_[k];
                r0 += flow0;
                r1 += flow1;
                divide(k, r0, r1, from0, from1);
                from0 = coupling_[0][k] * from0 - flow0;
                from1 = coupling_[1][k] * from1 - flow1;
            }
            right_[0][k] = r0;
            right_[1][k] = r1;
        }
    }

    // (W + E)^-1 q, W = 0 at the last node, by a triangular factor: its products with W and E are
    // as exact as q.
    void divide(std::size_t k, double q0, double q1, double& to0, double& to1) const {
        to1 = (q1 - left_[1][k] * first_pivot_[k] * q0) * second_pivot_[k];
        to0 = (q0 - left_[1][k] * to1) * first_pivot_[k];
    }

    // Backward: the change of the prices (in place of r), and with it those of s and x. The
    // differences of prices come straight from the elimination, (W + E)^-1 (E dy_k+1 - r), not from
    // subtracting. The predictor leaves minus the second-order terms dx ds in t, cut off where they
    // are far from the mean product, the corrector dx.
    template <bool corrector>
    Step substitute() {
        Step step;
        const auto pair = [&](std::size_t c, std::size_t k, double ds, double weight) {
            const double x = dual_[c][k], i = per_slack_[c][k];
            const double dx = ((corrector ? target_ * weight + term_[c][k] : 0.0) - x * ds) * i - x;
            term_[c][k] = corrector ? dx : std::min(std::max(-dx * ds, -mean_), 30.0 * mean_);
            if (-dx > step.most_x * x) step.most_x = -dx / x;
            if (-ds * i > step.most_s) step.most_s = -ds * i;
            step.x_ds += x * ds;
            step.dx_ds += dx * ds;
        };
        double y0 = 0.0, y1 = 0.0;
        for (std::size_t k = n_; k-- > 0;) {
            const double a = left_[0][k], b = left_[1][k], c = left_[2][k];
            if (k + 1 == n_) {
                divide(k, right_[0][k], right_[1][k], y0, y1);
            } else {
                const double h = per_gap_[k];
                double d0, d1;
                divide(k, a * y0 + b * y1 - right_[0][k], b * y0 + c * y1 - right_[1][k], d0, d1);
                y0 -= d0;
                y1 -= d1;
                slack_step_[0][k] = d0 * h;
                slack_step_[1][k] = d1 * h;
                pair(0, k, -d0 * h, 1.0);
                pair(1, k, d0 * h, 1.0);
                pair(2, k, -d1 * h, 1.0);
                pair(3, k, d1 * h, 1.0);
            }
            right_[0][k] = y0;
            right_[1][k] = y1;
            slack_step_[2][k] = -((1.0 - nodes_[k]) * y0 + nodes_[k] * y1);
            pair(4, k, slack_step_[2][k], corrector ? weight(k) : 0.0);
        }
        return step;
    }

    void move(double along_x, double along_s) {
        worth_ = gap_ = 0.0;
        for (std::size_t k = 0; k < n_; ++k) {
            prices_[0][k] += along_s * right_[0][k];
            prices_[1][k] += along_s * right_[1][k];
            worth_ += masses_[0][k] * prices_[0][k] + masses_[1][k] * prices_[1][k];
            gap_ += move(4, k, along_x, along_s * slack_step_[2][k]);
            if (k + 1 == n_) break;
            const double d0 = along_s * slack_step_[0][k], d1 = along_s * slack_step_[1][k];
            gap_ += (move(0, k, along_x, -d0) + move(1, k, along_x, d0)) +
                    (move(2, k, along_x, -d1) + move(3, k, along_x, d1));
        }
    }

    double move(std::size_t c, std::size_t k, double along_x, double ds) {
        const double x = dual_[c][k] += along_x * term_[c][k];
        return x * (slack_[c][k] += ds);
    }

    // Each pointer is a row of n_ numbers; two rows are of zeros and of ones, five of the families.
    std::size_t n_;
    const double *nodes_, *masses_[2];
    double* prices_[2];
    double *dual_[5], *slack_[5];  // x and s of the head of this file; dual_[4] are the atoms
    double* per_slack_[5];         // 1 / s
    double* term_[5];              // the second-order terms, then the change of x
    double* slack_step_[3];        // the change of s: of the rising slopes, and of the nodes
    double* right_[2];             // the right side, then the change of the prices
    double* coupling_[2];          // W
    double* left_[3];              // E, of what is eliminated to the left
    double *first_pivot_, *second_pivot_;  // of W + E, inverted
    double* per_gap_;                      // 1 / the gap to the next node
    double worth_ = 0.0, gap_ = 0.0, mean_ = 0.0, target_ = 0.0, least_cost_ = 0.0,
           most_worth_ = 0.0;
    std::vector<double> room_, kept_[2], kept_atoms_;
};

}  // namespace truecast

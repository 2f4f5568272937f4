// Best prices at nodes (docs/measures.md, section 4): a linear programme on a path, by an interior point method.
//
// Maximise  sum of zeros_k A_k + ones_k B_k  over prices A, B at nodes v_k, where 1 - d and 1 + d must not be negative
// for the slopes d of A and of B in every gap, nor -((1 - v_k) A_k + v_k B_k) at any node. These five families are the
// slacks s; the dual variables x of the first four are flows through gaps (times the gaps), of the last calibrated
// forecasts at nodes: the atoms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace truecast {

// Mehrotra's predictor and corrector, O(n) an iteration: the normal equations are block tridiagonal, two prices a node.
//
// Invariant: x > 0 and s > 0, the prices are strictly feasible, and s are their slacks up to rounding. The atoms need
// not be calibrated before the end; every full step makes them so. An iterate is left only for a finite one, and near
// the end the best prices and atoms are kept: whatever happens, they are there.
class Prices {
  public:
    // From 2 nodes, increasing from 0 to 1; masses sum to 1. Prices and atoms are written where they are asked for.
    Prices(const double* v, const double* zeros, const double* ones, std::size_t n, double* prices, double* atoms)
        : n_(n), v_(v), m_{zeros, ones}, y_{prices, prices + n}, room_(32 * n) {
        double* next = room_.data();
        const auto array = [&] { return (next += n) - n; };
        for (auto* family : {x_, s_, i_, t_})
            for (std::size_t c = 0; c < 5; ++c) family[c] = family == x_ && c == 4 ? atoms : array();
        for (auto* row :
             {&ds_[0], &ds_[1], &ds_[2], &r_[0], &r_[1], &w_[0], &w_[1], &e_[0], &e_[1], &e_[2], &f_, &g_, &h_})
            *row = array();
    }

    // Stops when prices and atoms are within `tolerance` of each other, relative to the cost of the atoms, or at a
    // difference that doubles do not resolve; or after `most` iterations, or when rounding allows no progress.
    // Returns the number of iterations.
    std::size_t solve(double tolerance, std::size_t most) {
        if (one_sided()) return 0;
        start();
        const double pairs = 5.0 * static_cast<double>(n_) - 4.0;
        double least = 1e300;
        std::size_t i = 0;
        for (std::size_t since = 0; i < most; ++i) {
            const double enough = tolerance * std::max(worth_, 0.0) + resolved;
            if (gap_ <= std::max(16.0 * enough, rough) && keep() <= std::max(tolerance * least_cost_, resolved)) break;
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
            // not far below what is enough: where x s is lost in rounding, neither prices nor atoms get better
            target_ = std::max(mean_ * std::pow(std::min(std::max(left, 0.0), 1.0), 4), enough / 8.0 / pairs);
            eliminate();
            step = substitute<true>();
            if (!(std::isfinite(step.x_ds + step.dx_ds) && step.most_x < 1e8 && step.most_s < 1e8)) break;
            const double back = std::min(0.9995, std::max(0.9, 1.0 - gap_));
            move(std::min(1.0, back / step.most_x), std::min(1.0, back / step.most_s));
        }
        if (!kept_atoms_.empty()) {
            std::copy(kept_[0].begin(), kept_[0].end(), y_[0]);
            std::copy(kept_[1].begin(), kept_[1].end(), y_[1]);
            std::copy(kept_atoms_.begin(), kept_atoms_.end(), x_[4]);
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

    // If there are only zeros, or only ones, all move to one end, and the other prices have no bound below.
    bool one_sided() const {
        double sums[2] = {0.0, 0.0};
        for (std::size_t k = 0; k < n_; ++k) sums[0] += m_[0][k], sums[1] += m_[1][k];
        if (sums[0] > 0.0 && sums[1] > 0.0) return false;
        const double sign = sums[1] > 0.0 ? -1.0 : 1.0;
        for (std::size_t k = 0; k < n_; ++k) {
            y_[0][k] = sign * v_[k];
            y_[1][k] = sign * (v_[k] - 1.0);
            x_[4][k] = 0.0;
        }
        x_[4][sums[1] > 0.0 ? n_ - 1 : 0] = 1.0;
        return true;
    }

    // The weight of a node's pair on the central path; that of a slope is 1.
    double weight(std::size_t k) const { return 0.5 + 0.5 * static_cast<double>(n_) * (m_[0][k] + m_[1][k]); }

    void start() {
        const double level = 0.25, product = level / static_cast<double>(n_);
        for (std::size_t k = 0; k < n_; ++k) {
            for (std::size_t c = 0; c < 4; ++c) s_[c][k] = 1.0, x_[c][k] = product;
            s_[4][k] = level;
            x_[4][k] = weight(k) * product / level;
            y_[0][k] = y_[1][k] = -level;
            if (k + 1 < n_) h_[k] = 1.0 / (v_[k + 1] - v_[k]);
        }
        move(0.0, 0.0);
    }

    // Keeps the prices if they are the best so far, and the atoms if they are; returns how far the best are apart.
    double keep() {
        const double cost = this->cost();
        if (kept_atoms_.empty() || cost < least_cost_) {
            least_cost_ = cost;
            kept_atoms_.assign(x_[4], x_[4] + n_);
        }
        if (kept_[0].empty() || worth_ > most_worth_) {
            most_worth_ = worth_;
            for (int side : {0, 1}) kept_[side].assign(y_[side], y_[side] + n_);
        }
        return least_cost_ - most_worth_;
    }

    // What it costs to move all to the atoms, made calibrated: scaled down until they need no more than there is, the
    // rest to 0 and 1.
    double cost() const {
        double have[2] = {0.0, 0.0}, need[2] = {0.0, 0.0};
        for (std::size_t k = 0; k < n_; ++k) {
            have[0] += m_[0][k], have[1] += m_[1][k];
            need[0] += (1.0 - v_[k]) * x_[4][k], need[1] += v_[k] * x_[4][k];
        }
        const double part = std::min(1.0, std::min(have[0] / need[0], have[1] / need[1]));
        double flow[2] = {part * need[0] - have[0], 0.0}, sum = 0.0;
        for (std::size_t k = 0; k + 1 < n_; ++k) {
            flow[0] += m_[0][k] - (1.0 - v_[k]) * x_[4][k] * part;
            flow[1] += m_[1][k] - v_[k] * x_[4][k] * part;
            sum += (v_[k + 1] - v_[k]) * (std::fabs(flow[0]) + std::fabs(flow[1]));
        }
        return sum;
    }

    // The normal matrix has diagonal blocks z_k (1 - v_k, v_k)(1 - v_k, v_k)' + W_k + W_k-1 and -W_k beside them, with
    // z = x/s of the node and W_k diagonal, of x/s of the slopes. Eliminating from the left leaves E_k + W_k at k,
    // where E_0 = 0 before its z, and E_k+1 starts as the parallel sum W (W + E)^-1 E: W - W (W + E)^-1 W without
    // cancellation. E = ((a, b), (b, c)); its determinant d is carried along, as a sum of terms that are not negative.
    // The predictor's right side, for products that should become 0, is eliminated in the same pass.
    void factor() {
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0, from0 = 0.0, from1 = 0.0;
        for (std::size_t k = 0; k < n_; ++k) {
            for (std::size_t f = k + 1 < n_ ? 0 : 4; f < 5; ++f) i_[f][k] = 1.0 / s_[f][k];
            const double z = x_[4][k] * i_[4][k], one = v_[k], zero = 1.0 - one;
            const double per_a = a > 0.0 ? 1.0 / a : 0.0, across = one - zero * b * per_a;
            d += z * (a * across * across + zero * zero * d * per_a);
            a += z * zero * zero, b += z * zero * one, c += z * one * one;
            e_[0][k] = a, e_[1][k] = b, e_[2][k] = c;
            r_[0][k] = m_[0][k] + from0, r_[1][k] = m_[1][k] + from1;
            if (k + 1 == n_) break;
            const double h = h_[k];
            const double w0 = (x_[0][k] * i_[0][k] + x_[1][k] * i_[1][k]) * h * h;
            const double w1 = (x_[2][k] * i_[2][k] + x_[3][k] * i_[3][k]) * h * h;
            const double f = 1.0 / (w0 * w1 + w0 * c + w1 * a + d), both = w0 * w1 * f;
            w_[0][k] = w0, w_[1][k] = w1, g_[k] = 1.0 / (w0 + a), f_[k] = (w0 + a) * f;
            divide(k, r_[0][k], r_[1][k], from0, from1);
            from0 *= w0, from1 *= w1;
            a = both * a + w0 * d * f, c = both * c + w1 * d * f, b *= both, d *= both;
        }
        g_[n_ - 1] = 1.0 / a, f_[n_ - 1] = a / d;
    }

    // Forward: the right side of the normal equations, for products that should become target * weight + t, with what
    // elimination brings from the left.
    void eliminate() {
        double from0 = 0.0, from1 = 0.0;
        for (std::size_t k = 0; k < n_; ++k) {
            const double z = (target_ * weight(k) + t_[4][k]) * i_[4][k];
            double r0 = m_[0][k] - (1.0 - v_[k]) * z + from0, r1 = m_[1][k] - v_[k] * z + from1;
            if (k + 1 < n_) {
                const double flow0 = ((target_ + t_[0][k]) * i_[0][k] - (target_ + t_[1][k]) * i_[1][k]) * h_[k];
                const double flow1 = ((target_ + t_[2][k]) * i_[2][k] - (target_ + t_[3][k]) * i_[3][k]) * h_[k];
                r0 += flow0, r1 += flow1;
                divide(k, r0, r1, from0, from1);
                from0 = w_[0][k] * from0 - flow0, from1 = w_[1][k] * from1 - flow1;
            }
            r_[0][k] = r0, r_[1][k] = r1;
        }
    }

    // (W + E)^-1 q, W = 0 at the last node, by a triangular factor: its products with W and E are as exact as q.
    void divide(std::size_t k, double q0, double q1, double& to0, double& to1) const {
        to1 = (q1 - e_[1][k] * g_[k] * q0) * f_[k];
        to0 = (q0 - e_[1][k] * to1) * g_[k];
    }

    // Backward: the change of the prices (in place of r), and with it those of s and x. The differences of prices come
    // straight from the elimination, (W + E)^-1 (E dy_k+1 - r), not from subtracting. The predictor leaves minus the
    // second-order terms dx ds in t, cut off where they are far from the mean product, the corrector dx.
    template <bool corrector>
    Step substitute() {
        Step step;
        const auto pair = [&](std::size_t c, std::size_t k, double ds, double weight) {
            const double x = x_[c][k], i = i_[c][k];
            const double dx = ((corrector ? target_ * weight + t_[c][k] : 0.0) - x * ds) * i - x;
            t_[c][k] = corrector ? dx : std::min(std::max(-dx * ds, -mean_), 30.0 * mean_);
            if (-dx > step.most_x * x) step.most_x = -dx / x;
            if (-ds * i > step.most_s) step.most_s = -ds * i;
            step.x_ds += x * ds, step.dx_ds += dx * ds;
        };
        double y0 = 0.0, y1 = 0.0;
        for (std::size_t k = n_; k-- > 0;) {
            const double a = e_[0][k], b = e_[1][k], c = e_[2][k];
            if (k + 1 == n_) {
                divide(k, r_[0][k], r_[1][k], y0, y1);
            } else {
                const double h = h_[k];
                double d0, d1;
                divide(k, a * y0 + b * y1 - r_[0][k], b * y0 + c * y1 - r_[1][k], d0, d1);
                y0 -= d0, y1 -= d1;
                ds_[0][k] = d0 * h, ds_[1][k] = d1 * h;
                pair(0, k, -d0 * h, 1.0), pair(1, k, d0 * h, 1.0);
                pair(2, k, -d1 * h, 1.0), pair(3, k, d1 * h, 1.0);
            }
            r_[0][k] = y0, r_[1][k] = y1;
            ds_[2][k] = -((1.0 - v_[k]) * y0 + v_[k] * y1);
            pair(4, k, ds_[2][k], corrector ? weight(k) : 0.0);
        }
        return step;
    }

    void move(double along_x, double along_s) {
        worth_ = gap_ = 0.0;
        for (std::size_t k = 0; k < n_; ++k) {
            y_[0][k] += along_s * r_[0][k], y_[1][k] += along_s * r_[1][k];
            worth_ += m_[0][k] * y_[0][k] + m_[1][k] * y_[1][k];
            gap_ += move(4, k, along_x, along_s * ds_[2][k]);
            if (k + 1 == n_) break;
            const double d0 = along_s * ds_[0][k], d1 = along_s * ds_[1][k];
            gap_ += (move(0, k, along_x, -d0) + move(1, k, along_x, d0)) +
                    (move(2, k, along_x, -d1) + move(3, k, along_x, d1));
        }
    }

    double move(std::size_t c, std::size_t k, double along_x, double ds) {
        const double x = x_[c][k] += along_x * t_[c][k];
        return x * (s_[c][k] += ds);
    }

    std::size_t n_;
    const double *v_, *m_[2];
    double *y_[2], *x_[5], *s_[5], *i_[5], *t_[5], *ds_[3], *r_[2], *w_[2], *e_[3], *f_, *g_, *h_;
    double worth_ = 0.0, gap_ = 0.0, mean_ = 0.0, target_ = 0.0, least_cost_ = 0.0, most_worth_ = 0.0;
    std::vector<double> room_, kept_[2], kept_atoms_;
};

}  // namespace truecast

// SmoothECE of few rounds: the same integral on the same lattice as measures/smooth_ece.py takes by
// Fourier transforms, from the few waves that smoothing leaves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "totals.hpp"
#include "vectors.hpp"

namespace truecast {

// Residuals on a lattice of N cells, mirrored at both ends, as waves: at bandwidth sigma, node j
// has the sum over k of a_k cos(pi k j / N), where a_k falls as exp(-(pi k sigma)^2 / 2).
//
// All cosines come from a few by turning: each turn adds an error of 2^-52 or so, and there are
// fewer than 1,000 in a row; so an integral is off by at most 2^-42 of the sum of all |a_k|.
class Heat {
  public:
    static constexpr unsigned most = 12;  // power of two for N

    template <typename Count>
    Heat(const double* p, const Count* zeros, const Count* ones, std::size_t n, double total,
         unsigned power)
        : cells_(std::size_t{1} << power), blocks_(cells_ / (2 * width)) {
        const double scale = static_cast<double>(cells_);
        for (std::size_t i = 0; i < n; ++i) {
            const double place = p[i] * scale, mass = residual(p[i], zeros[i], ones[i]);
            const std::size_t node = std::min(static_cast<std::size_t>(place), cells_ - 1);
            const double share = place - static_cast<double>(node);  // exact, like the place
            add(node, mass * (1.0 - share));
            add(node + 1, mass * share);
        }
        for (double& mass : masses_) {
            mass /= total;
            gross_ += std::fabs(mass);
        }
        masses_.resize((masses_.size() + lanes - 1) / lanes * lanes, 0.0);
        nodes_.resize(masses_.size(), 0);
        const std::vector<Turn> ones_apart = turns(pi / scale, width),
                                blocks_apart = turns(pi / scale * width, 2 * blocks_ + 1);
        for (const std::size_t node : nodes_) {
            const Turn step = blocks_apart[node / width].then(ones_apart[node % width]);
            step_cosines_.push_back(step.cosine);
            step_sines_.push_back(step.sine);
        }
        node_cosines_.assign(nodes_.size(), 1.0);
        node_sines_.assign(nodes_.size(), 0.0);
    }

    // The integral of the absolute smoothed residuals.
    double integral(double sigma) {
        if (sigma <= 0.0) return gross_;
        const double enough = std::ceil(left / sigma);  // waves beyond are below 2^-60 of these
        const std::size_t number =
            enough < static_cast<double>(cells_) ? static_cast<std::size_t>(enough) : cells_ + 1;
        while (sums_.size() < number) next_wave();
        std::vector<double> waves(number);
        for (std::size_t k = 0; k < number; ++k) {
            const double off = pi * sigma * static_cast<double>(k);
            const double once = k == 0 || k == cells_ ? 1.0 : 2.0;
            waves[k] = once / static_cast<double>(cells_) * sums_[k] * std::exp(-off * off / 2.0);
        }
        return TRUECAST_HAS_FOUR ? integral_by_fours(waves) : integral_of(waves);
    }

  private:
    static constexpr double pi = 3.14159265358979323846, left = 2.92;
    static constexpr std::size_t lanes = 32, width = 64;  // nodes that share their turns
    static constexpr std::size_t half = width / 2;

    struct Turn {
        double cosine, sine;

        Turn then(const Turn& other) const {
            return {cosine * other.cosine - sine * other.sine,
                    sine * other.cosine + cosine * other.sine};
        }
    };
    static Turn turn(double angle) { return {std::cos(angle), std::sin(angle)}; }

    // By 0, 1, 2, ... times an angle.
    static std::vector<Turn> turns(double angle, std::size_t number) {
        std::vector<Turn> found(1, {1.0, 0.0});
        const Turn once = turn(angle);
        while (found.size() < number) found.push_back(found.back().then(once));
        return found;
    }

    // Nodes come in order, but for one that may come again after its neighbour.
    void add(std::size_t node, double mass) {
        std::size_t at = nodes_.size();
        while (at > 0 && nodes_[at - 1] > node) --at;
        if (at == 0 || nodes_[at - 1] != node) {
            nodes_.push_back(node);
            masses_.push_back(0.0);
            at = nodes_.size();
        }
        masses_[at - 1] += mass;
    }

    // Masses times the cosines of the next wave. Invariant: before, node_cosines_ and node_sines_
    // are those of the nodes' angles times the number of waves so far.
    TRUECAST_INLINE double next_sum_each() {
        double parts[lanes] = {};
        double *const cosines = node_cosines_.data(), *const sines = node_sines_.data();
        for (std::size_t i = 0; i < nodes_.size(); i += lanes) {
            double turned[lanes];
            for (std::size_t l = i; l < i + lanes; ++l) {
                parts[l - i] += masses_[l] * cosines[l];
                turned[l - i] = cosines[l] * step_cosines_[l] - sines[l] * step_sines_[l];
            }
            for (std::size_t l = i; l < i + lanes; ++l) {
                sines[l] = sines[l] * step_cosines_[l] + cosines[l] * step_sines_[l];
                cosines[l] = turned[l - i];
            }
        }
        double sum = 0.0;
        for (const double part : parts) sum += part;
        return sum;
    }
    TRUECAST_FOUR_AT_A_TIME double next_sum_by_fours() { return next_sum_each(); }

    void next_wave() {
        const double angle = pi * static_cast<double>(sums_.size()) / static_cast<double>(cells_);
        sums_.push_back(TRUECAST_HAS_FOUR ? next_sum_by_fours() : next_sum_each());
        Turn near = turn(angle / 2.0), far = turn(angle * (half - 0.5));
        const Turn step = turn(angle), stride = turn(angle * width);
        for (std::size_t d = 0; d < half; ++d, near = near.then(step)) {
            cosines_.push_back(near.cosine);
            sines_.push_back(near.sine);
        }
        for (std::size_t b = 0; b < blocks_; ++b, far = far.then(stride)) middles_.push_back(far);
    }

    // Every second wave, in a block: what is the same left and right of its middle, and what is
    // opposite.
    TRUECAST_INLINE void add_waves(const std::vector<double>& waves, std::size_t parity,
                                   std::size_t block, double* same, double* other) const {
        double along[half] = {}, across[half] = {};
        for (std::size_t k = parity; k < waves.size(); k += 2) {
            const Turn& middle = middles_[k * blocks_ + block];
            const double a = waves[k] * middle.cosine, c = waves[k] * middle.sine;
            const double *const cosines = &cosines_[k * half], *const sines = &sines_[k * half];
            for (std::size_t d = 0; d < half; ++d) along[d] += a * cosines[d];
            for (std::size_t d = 0; d < half; ++d) across[d] += c * sines[d];
        }
        std::copy(along, along + half, same);
        std::copy(across, across + half, other);
    }

    // Nodes j and N - j at once: even waves are the same at both, odd ones opposite, so that the
    // absolute values sum to twice the larger of the two. Blocks of 64 nodes share their middle,
    // and two nodes as far left and right of it the cosines of their distance.
    TRUECAST_INLINE double integral_of(const std::vector<double>& waves) const {
        double sums[half] = {}, ends[2] = {0.0, 0.0}, centre = 0.0;
        for (std::size_t b = 0; b < blocks_; ++b) {
            double same[2][half] = {}, other[2][half] = {};  // of even waves, and of odd ones
            for (std::size_t parity = 0; parity < 2; ++parity)
                add_waves(waves, parity, b, same[parity], other[parity]);
            for (std::size_t d = 0; d < half; ++d) {
                const double even = std::fabs(same[0][d] - other[0][d]),
                             odd = std::fabs(same[1][d] - other[1][d]);
                sums[d] += even > odd ? even : odd;
            }
            for (std::size_t d = 0; d < half; ++d) {
                const double even = std::fabs(same[0][d] + other[0][d]),
                             odd = std::fabs(same[1][d] + other[1][d]);
                sums[d] += even > odd ? even : odd;
            }
        }
        for (std::size_t k = 0; k < waves.size(); ++k) {
            ends[k % 2] += waves[k];
            if (k % 2 == 0) centre += k % 4 == 0 ? waves[k] : -waves[k];
        }
        double sum = std::fabs(centre) - std::max(std::fabs(ends[0]), std::fabs(ends[1]));
        for (const double part : sums) sum += 2.0 * part;
        return sum;
    }
    TRUECAST_FOUR_AT_A_TIME double integral_by_fours(const std::vector<double>& waves) const {
        return integral_of(waves);
    }

    std::size_t cells_, blocks_;
    double gross_ = 0.0;
    std::vector<std::size_t> nodes_;  // those with a mass
    std::vector<double> masses_;
    std::vector<double> step_cosines_, step_sines_, node_cosines_, node_sines_;
    std::vector<double> sums_;             // of each wave so far: of masses times cosines
    std::vector<double> cosines_, sines_;  // of each wave, at distances 1/2, 3/2, ... from a middle
    std::vector<Turn> middles_;            // of each wave, at the middle of each block
};

// Solves integral(sigma) = sigma as measures/smooth_ece.py does: regula falsi that halves a stale
// end (Illinois), from around `near`, or from all of [0, 1] if that is below 0.
inline double fixed_point_of(Heat& heat, double near, double precision) {
    double margin = 1e-3 * near + 1e-12, low = 0.0, high = 1.0, excess, lack;
    for (;; margin *= 16.0) {
        if (near >= 0.0) {
            low = std::max(near - margin, 0.0);
            high = std::min(near + margin, 1.0);
        }
        excess = heat.integral(low) - low;
        lack = heat.integral(high) - high;
        if (excess > 0.0 && 0.0 > lack) break;
        if (low == 0.0 && excess <= 0.0) return low;
        if (high == 1.0 && lack >= 0.0) return high;
    }
    double sigma = near;
    int side = 0;
    // invariant: the solution is between low and high
    for (int k = 0; k < 100; ++k) {
        sigma = (low * lack - high * excess) / (lack - excess);
        const double value = heat.integral(sigma) - sigma;
        if (std::fabs(value) <= precision || high - low <= precision) break;
        if (value > 0.0) {
            low = sigma;
            excess = value;
            if (side == 1) lack *= 0.5;
            side = 1;
        } else {
            high = sigma;
            lack = value;
            if (side == -1) excess *= 0.5;
            side = -1;
        }
    }
    return sigma;
}

// SmoothECE at its own bandwidth; negative if that is too small for this way, which takes time as
// the square of 1 / sigma.
template <typename Count>
double smooth_ece(const double* p, const Count* zeros, const Count* ones, std::size_t n,
                  double total) {
    constexpr unsigned rough = 8;
    constexpr double nodes = 64.0;  // to a bandwidth
    Heat coarse(p, zeros, ones, n, total, rough);
    const double near = fixed_point_of(coarse, -1.0, 1e-4);
    if (!(near * (1 << Heat::most) >= nodes)) return -1.0;
    const unsigned power = static_cast<unsigned>(std::max(std::ceil(std::log2(nodes / near)), 4.0));
    Heat fine(p, zeros, ones, n, total, std::max(rough, power));
    return fixed_point_of(fine, near, 1e-13);
}

}  // namespace truecast

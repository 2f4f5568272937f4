// SmoothECE of few rounds: the same integral on the same lattice as measures/smooth_ece.py takes by
// Fourier transforms, from the few waves that smoothing leaves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "exponential.hpp"
#include "totals.hpp"
#include "vectors.hpp"

namespace truecast {

// Residuals on a lattice of N cells, mirrored at both ends, as waves: at bandwidth sigma, node j
// has the sum over k of a_k cos(pi k j / N), where a_k falls as exp(-(pi k sigma)^2 / 2).
//
// All cosines come from a few by turning. A turn adds an error of 2^-52 or so. The first wave's are
// at most 16 turns from what the library computes, the k-th wave's are k times those, and there are
// at most 257 waves; so an integral is off by at most 2^-40 of the sum of all |a_k|.
class Heat {
  public:
    static constexpr unsigned most = 12;  // power of two for N

    template <typename Count>
    Heat(const double* p, const Count* zeros, const Count* ones, std::size_t n, double total,
         unsigned power)
        : cells_(std::size_t{1} << power), blocks_(cells_ / (2 * width)) {
        const double scale = static_cast<double>(cells_);
        nodes_.reserve(2 * n + lanes);
        masses_.reserve(2 * n + lanes);
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
        at_nodes_.set(nodes_.size(), [&](std::size_t i) {
            return blocks_apart[nodes_[i] / width].then(ones_apart[nodes_[i] % width]);
        });
        const Turn first = turn(pi / scale / 2.0), middle = turn(pi / scale * (half - 0.5));
        in_blocks_.set(half, [&](std::size_t d) { return first.then(ones_apart[d]); });
        middles_.set(blocks_, [&](std::size_t b) { return middle.then(blocks_apart[b]); });
    }

    // The integral of the absolute smoothed residuals.
    double integral(double sigma) {
        if (sigma <= 0.0) return gross_;
        const double enough = std::ceil(left / sigma);  // waves beyond are below 2^-60 of these
        const std::size_t number =
            enough < static_cast<double>(cells_) ? static_cast<std::size_t>(enough) : cells_ + 1;
        return TRUECAST_HAS_FOUR ? integral_by_fours(sigma, number) : integral_each(sigma, number);
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

    // By 0, 1, 2, ... times an angle: each from two that are half as far.
    static std::vector<Turn> turns(double angle, std::size_t number) {
        std::vector<Turn> found;
        found.reserve(std::max(number, std::size_t{2}));
        found.push_back({1.0, 0.0});
        found.push_back(turn(angle));
        while (found.size() < number) {
            const std::size_t half_way = found.size() / 2;
            found.push_back(found[half_way].then(found[found.size() - half_way]));
        }
        return found;
    }

    // Angles that turn with each wave, each by its own step.
    class Angles {
      public:
        template <typename Step>
        void set(std::size_t size, Step step) {
            step_cosines_.resize(size);
            step_sines_.resize(size);
            cosines_.assign(size, 1.0);
            sines_.assign(size, 0.0);
            for (std::size_t i = 0; i < size; ++i) {
                const Turn by = step(i);
                step_cosines_[i] = by.cosine;
                step_sines_[i] = by.sine;
            }
        }
        std::size_t size() const { return cosines_.size(); }
        const double* cosines() const { return cosines_.data(); }
        const double* sines() const { return sines_.data(); }

        TRUECAST_INLINE void next() {
            double *const c = cosines_.data(), *const s = sines_.data();
            const double *const by_c = step_cosines_.data(), *const by_s = step_sines_.data();
            for (std::size_t i = 0; i < size(); ++i) {
                const double turned = c[i] * by_c[i] - s[i] * by_s[i];
                s[i] = s[i] * by_c[i] + c[i] * by_s[i];
                c[i] = turned;
            }
        }

      private:
        std::vector<double> step_cosines_, step_sines_, cosines_, sines_;
    };

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

    // The sum of masses times cosines.
    TRUECAST_INLINE double wave_sum() const {
        constexpr std::size_t together = lanes / per_block;
        Block sums[together], mass, cosine;
        for (Block& sum : sums) sum = Block{};
        for (std::size_t i = 0; i < masses_.size(); i += lanes)
            for (std::size_t k = 0; k < together; ++k) {
                read(mass, &masses_[i + k * per_block]);
                read(cosine, at_nodes_.cosines() + i + k * per_block);
                sums[k] += mass * cosine;
            }
        double parts[lanes];
        for (std::size_t k = 0; k < together; ++k) write(sums[k], parts + k * per_block);
        for (std::size_t rest = lanes / 2; rest > 0; rest /= 2)
            for (std::size_t l = 0; l < rest; ++l) parts[l] += parts[rest + l];
        return parts[0];
    }

    // Invariant: before, all angles are those of the first wave times the number of waves so far.
    TRUECAST_INLINE void next_wave() {
        sums_.push_back(wave_sum());
        cosines_.insert(cosines_.end(), in_blocks_.cosines(), in_blocks_.cosines() + half);
        sines_.insert(sines_.end(), in_blocks_.sines(), in_blocks_.sines() + half);
        middle_cosines_.insert(middle_cosines_.end(), middles_.cosines(),
                               middles_.cosines() + blocks_);
        middle_sines_.insert(middle_sines_.end(), middles_.sines(), middles_.sines() + blocks_);
        at_nodes_.next();
        in_blocks_.next();
        middles_.next();
    }

    void make_room(std::size_t waves) {
        if (waves <= sums_.capacity()) return;
        waves = std::max(waves, std::size_t{64});
        sums_.reserve(waves);
        cosines_.reserve(waves * half);
        sines_.reserve(waves * half);
        middle_cosines_.reserve(waves * blocks_);
        middle_sines_.reserve(waves * blocks_);
    }

    // What smoothing leaves of the first waves.
    TRUECAST_INLINE void smooth(double sigma, std::size_t number,
                                std::vector<double>& waves) const {
        waves.resize(number);
        double powers[exponents], left_of[exponents];
        for (std::size_t from = 0; from < number; from += exponents) {
            const std::size_t count = std::min(exponents, number - from);
            for (std::size_t i = 0; i < count; ++i) {
                const double off = pi * sigma * static_cast<double>(from + i);
                powers[i] = off * off / 2.0;
            }
            exp_of_minus(powers, count, left_of);
            for (std::size_t i = 0; i < count; ++i)
                waves[from + i] = 2.0 / static_cast<double>(cells_) * sums_[from + i] * left_of[i];
        }
        waves[0] /= 2.0;
        if (number > cells_) waves[cells_] /= 2.0;
    }

    // Each wave times its cosines, or its sines, at the middles of blocks.
    TRUECAST_INLINE void at_middles(const std::vector<double>& waves,
                                    const std::vector<double>& turned,
                                    std::vector<double>& found) const {
        found.resize(waves.size() * blocks_);
        for (std::size_t k = 0, i = 0; k < waves.size(); ++k)
            for (const std::size_t end = i + blocks_; i < end; ++i) found[i] = waves[k] * turned[i];
    }

    // The sum over every second wave, at all distances from the middle of a block, of a row of the
    // table times the factor for that block. The sums stay in registers.
    TRUECAST_INLINE void add_waves(const std::vector<double>& factors,
                                   const std::vector<double>& table, std::size_t block,
                                   std::size_t first, std::size_t number, double* out) const {
        constexpr std::size_t together = 8;
        static_assert(half % (together * per_block) == 0, "the sums must be whole groups");
        for (std::size_t from = 0; from < half; from += together * per_block) {
            Block sums[together], row;
            for (Block& sum : sums) sum = Block{};
            for (std::size_t k = first; k < number; k += 2) {
                const double factor = factors[k * blocks_ + block];
                for (std::size_t i = 0; i < together; ++i) {
                    read(row, &table[k * half + from + i * per_block]);
                    sums[i] += factor * row;
                }
            }
            for (std::size_t i = 0; i < together; ++i) write(sums[i], out + from + i * per_block);
        }
    }

    // Nodes j and N - j at once: even waves are the same at both, odd ones opposite, so that the
    // absolute values sum to twice the larger of the two. Blocks of 64 nodes share their middle,
    // and two nodes as far left and right of it the cosines of their distance.
    TRUECAST_INLINE double integral_each(double sigma, std::size_t number) {
        make_room(number);
        while (sums_.size() < number) next_wave();
        smooth(sigma, number, waves_);
        at_middles(waves_, middle_cosines_, along_);
        at_middles(waves_, middle_sines_, across_);
        double sums[half] = {}, ends[2] = {0.0, 0.0}, centre = 0.0;
        for (std::size_t b = 0; b < blocks_; ++b) {
            double same[2][half], other[2][half];  // of even waves, and of odd ones
            for (std::size_t parity = 0; parity < 2; ++parity) {
                add_waves(along_, cosines_, b, parity, number, same[parity]);
                add_waves(across_, sines_, b, parity, number, other[parity]);
            }
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
        for (std::size_t k = 0; k < number; ++k) {
            ends[k % 2] += waves_[k];
            if (k % 2 == 0) centre += k % 4 == 0 ? waves_[k] : -waves_[k];
        }
        double sum = std::fabs(centre) - std::max(std::fabs(ends[0]), std::fabs(ends[1]));
        for (const double part : sums) sum += 2.0 * part;
        return sum;
    }
    TRUECAST_FOUR_AT_A_TIME double integral_by_fours(double sigma, std::size_t number) {
        return integral_each(sigma, number);
    }

    std::size_t cells_, blocks_;
    double gross_ = 0.0;
    std::vector<std::size_t> nodes_;  // those with a mass
    std::vector<double> masses_;
    Angles at_nodes_, in_blocks_, middles_;  // of the next wave: at nodes with a mass, at distances
                                             // 1/2, 3/2, ... from a middle, at middles of blocks
    std::vector<double> sums_;               // of each wave so far: of masses times cosines
    std::vector<double> cosines_, sines_;    // of each wave, at the distances
    std::vector<double> middle_cosines_, middle_sines_;  // of each wave, at the middles
    std::vector<double> waves_, along_, across_;  // of one integral: smoothed, and at the middles
};

// Solves integral(sigma) = sigma as measures/smooth_ece.py does, from around `near`, or from all of
// [0, 1] if that is below 0: by the parabola through both ends and the last place, or in the middle
// where that leads outside, or nowhere.
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
    double sigma = (low * lack - high * excess) / (lack - excess);
    // invariant: the solution is between low and high, and so is sigma
    for (int k = 0; k < 100; ++k) {
        const double value = heat.integral(sigma) - sigma;
        if (std::fabs(value) <= precision || high - low <= precision) break;
        const double next = low * (value / (value - excess)) * (lack / (lack - excess)) +
                            sigma * (excess / (excess - value)) * (lack / (lack - value)) +
                            high * (excess / (excess - lack)) * (value / (value - lack));
        (value > 0.0 ? low : high) = sigma;
        (value > 0.0 ? excess : lack) = value;
        sigma = k < 20 && low < next && next < high ? next : (low + high) / 2.0;
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
    const double near = fixed_point_of(coarse, -1.0, 1e-5);
    if (!(near * (1 << Heat::most) >= nodes)) return -1.0;
    const unsigned power = static_cast<unsigned>(std::max(std::ceil(std::log2(nodes / near)), 4.0));
    Heat fine(p, zeros, ones, n, total, std::max(rough, power));
    return fixed_point_of(fine, near, 1e-13);
}

}  // namespace truecast

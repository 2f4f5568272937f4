// The smooth calibration error and its witness (docs/measures.md): a shortest flow on a path,
// solved exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bins.hpp"
#include "sorting.hpp"
#include "totals.hpp"

namespace truecast {

// A set of numbers below a given size, with its least and greatest: a tree of words of 64 flags.
//
// Invariant: flag x on the lowest level says whether x is a member; flag w on the level above says
// whether word w has any flag set, and so on up to a single word.
class Ranks {
  public:
    explicit Ranks(std::size_t size) {
        levels_.reserve(6);  // of 2^32 numbers
        do {
            size = (size + 63) / 64;
            levels_.emplace_back(size, 0);
        } while (size > 1);
    }

    void insert(std::size_t x) {
        least_ = std::min(least_, x);
        greatest_ = std::max(greatest_, x);
        for (auto& level : levels_) {
            std::uint64_t& word = level[x / 64];
            const bool known = word != 0;
            word |= std::uint64_t{1} << x % 64;
            if (known) return;
            x /= 64;
        }
    }

    std::size_t least() const { return least_; }
    std::size_t greatest() const { return greatest_; }

    // Not for the last member.
    void erase_least() {
        erase(least_);
        least_ = next(least_);
    }
    void erase_greatest() {
        erase(greatest_);
        greatest_ = previous(greatest_);
    }

    // The least member above x, which must exist: up to the first word with a flag beyond, then
    // down along the lowest flags.
    std::size_t next(std::size_t x) const {
        std::size_t depth = 0;
        for (;; ++depth, x /= 64) {
            const std::uint64_t above =
                x % 64 == 63 ? 0 : levels_[depth][x / 64] >> (x % 64 + 1) << (x % 64 + 1);
            if (above == 0) continue;
            x = x / 64 * 64 + lowest(above);
            while (depth > 0) x = x * 64 + lowest(levels_[--depth][x]);
            return x;
        }
    }

  private:
    void erase(std::size_t x) {
        for (auto& level : levels_) {
            std::uint64_t& word = level[x / 64];
            word &= ~(std::uint64_t{1} << x % 64);
            if (word != 0) return;
            x /= 64;
        }
    }

    std::size_t previous(std::size_t x) const {
        std::size_t depth = 0;
        for (;; ++depth, x /= 64) {
            const std::uint64_t below = levels_[depth][x / 64] & ((std::uint64_t{1} << x % 64) - 1);
            if (below == 0) continue;
            x = x / 64 * 64 + highest(below);
            while (depth > 0) x = x * 64 + highest(levels_[--depth][x]);
            return x;
        }
    }

#if defined(__GNUC__) || defined(__clang__)
    static unsigned lowest(std::uint64_t word) {
        return static_cast<unsigned>(__builtin_ctzll(word));
    }
    static unsigned highest(std::uint64_t word) {
        return 63 - static_cast<unsigned>(__builtin_clzll(word));
    }
#else
    static unsigned lowest(std::uint64_t word) {
        unsigned place = 0;
        for (unsigned half = 32; half; half /= 2)
            if ((word & ((std::uint64_t{1} << half) - 1)) == 0) word >>= half, place += half;
        return place;
    }
    static unsigned highest(std::uint64_t word) {
        unsigned place = 0;
        for (unsigned half = 32; half; half /= 2)
            if (word >> half) word >>= half, place += half;
        return place;
    }
#endif

    std::vector<std::vector<std::uint64_t>> levels_;
    std::size_t least_ = ~std::size_t{0}, greatest_ = 0;
};

// The value function of the flow, W(u) = -u + constant + sum of mass_k (u - x_k)^+, in the
// coordinate in which its breakpoints x_k = -S_k never move (S_k: the sum of the first k
// residuals).
//
// Step i adds gap_i |u - x_i| and cuts the slopes back to [-1, 1]: mass 2 gap_i enters at x_i,
// gap_i leaves at each end. Masses are integers, multiples of 2^-62, as in bins.hpp. Invariant:
// they sum to 2. Every breakpoint enters once and leaves once: O(n log n) in all.
class SmoothError {
  public:
    // Residuals, of which c(i) is one, at sorted places p. With `ends`, for a witness, keeps their
    // sums, and the least and greatest breakpoint after each step.
    template <typename Residual>
    SmoothError(const double* p, Residual c, std::size_t n, bool ends)
        : p_(p),
          n_(n),
          sums_(ends ? n + 1 : 0, 0.0),
          least_(ends ? n : 0),
          greatest_(ends ? n : 0) {
        std::vector<PlacedValue> breakpoints(n);
        Total sum;
        for (std::size_t i = 0; i < n; ++i) {
            breakpoints[i] = PlacedValue(-sum.value(), i);
            sum.add(c(i));
            if (ends) sums_[i + 1] = sum.value();
        }
        solve(std::move(breakpoints), -sum.value());
    }

    double value() const { return value_; }

    // Writes f with |f| <= 1 and |f_i - f_j| <= |p_i - p_j| that attains the value; needs the ends.
    // Walking back, the flow's potential u is clipped between the ends; where it is, f is 1 or -1;
    // where flow crosses a gap, f falls or rises by the whole gap. What is left free is settled by
    // intervals, forward, then back. The ends are lost by that: u, and the upper ends of intervals,
    // are written where they were, the lower ones where f will be. Not to be called twice.
    void witness(double* f) {
        const double end = -sums_[n_];
        double* const u = least_.data();
        double* const high = greatest_.data();
        for (std::size_t i = n_; i-- > 1;)
            u[i] = std::min(std::max(i + 1 < n_ ? u[i + 1] : end, u[i]), greatest_[i]);
        u[0] = 0.0;
        double a = -1.0, b = 1.0;
        // invariant: before each step, a and b are the ends of the interval before i
        for (std::size_t i = 0; i < n_; ++i) {
            if (i > 0) {
                const double gap = p_[i] - p_[i - 1], flow = u[i] + sums_[i];
                a += flow < 0.0 ? gap : -gap;
                b += flow > 0.0 ? -gap : gap;
            }
            const double after = i + 1 < n_ ? u[i + 1] : end;
            if (u[i] > after) a = 1.0;
            if (u[i] < after) b = -1.0;
            a = f[i] = std::min(std::max(a, -1.0), 1.0);
            b = high[i] = std::max(std::min(b, 1.0), -1.0);
        }
        double next = std::min(std::max(0.0, a), b);
        f[n_ - 1] = next;
        for (std::size_t i = n_ - 1; i > 0; --i) {
            const double gap = p_[i] - p_[i - 1], flow = u[i] + sums_[i];
            double lower = std::max(f[i - 1], next - gap),
                   upper = std::min(high[i - 1], next + gap);
            if (flow > 0.0) lower = next + gap;
            if (flow < 0.0) upper = next - gap;
            next =
                std::min(std::max(std::min(std::max(0.0, lower), upper), next - gap), next + gap);
            next = f[i - 1] = std::min(std::max(next, -1.0), 1.0);
        }
    }

  private:
    static constexpr double unit = 0x1p-62;

    // W at u, the place where all residuals are used up.
    void solve(std::vector<PlacedValue> breakpoints, double u) {
        if (n_ == 0) return;
        // breakpoints 0 ... n - 1, numbered in the order of x from here on
        sort_values(breakpoints);
        const auto x = [&](std::size_t r) { return breakpoints[r].value(); };
        std::vector<std::uint32_t> rank(n_);
        for (std::size_t r = 0; r < n_; ++r)
            rank[breakpoints[r].place()] = static_cast<std::uint32_t>(r);
        // Invariant: after step i, `mass` is what the breakpoints have, `present` those that have
        // any, and `constant` makes W the value function of the first i + 1 forecasts.
        Ranks present(n_);
        std::vector<std::uint64_t> mass(n_, 0);
        Total constant;
        const auto times = [](std::uint64_t units, double place) {
            return static_cast<double>(units) * unit * place;
        };
        present.insert(rank[0]);
        mass[rank[0]] = fixed_point(1.0) * 2;
        for (std::size_t i = 1; i < n_; ++i) {
            const std::uint64_t gap = fixed_point(p_[i]) - fixed_point(p_[i - 1]);
            const std::size_t r = rank[i];
            if (gap > 0) present.insert(r);
            mass[r] = 2 * gap;
            constant.add(times(gap, x(r)));
            // slopes below -1: mass leaves at the lower end, and the constant keeps W above
            for (std::uint64_t rest = gap; rest > 0;) {
                const std::size_t end = present.least();
                const std::uint64_t part = std::min(rest, mass[end]);
                constant.add(-times(part, x(end)));
                rest -= part;
                if ((mass[end] -= part) == 0) present.erase_least();
            }
            // slopes above 1: mass leaves at the upper end, and W stays as it is below
            for (std::uint64_t rest = gap; rest > 0;) {
                const std::size_t end = present.greatest();
                const std::uint64_t part = std::min(rest, mass[end]);
                rest -= part;
                if ((mass[end] -= part) == 0) present.erase_greatest();
            }
            if (!least_.empty()) {
                least_[i] = x(present.least());
                greatest_[i] = x(present.greatest());
            }
        }
        constant.add(-u);
        for (std::size_t k = present.least(); x(k) < u; k = present.next(k)) {
            constant.add(times(mass[k], u - x(k)));
            if (k == present.greatest()) break;
        }
        value_ = std::max(constant.value(), 0.0);
    }

    const double* p_;
    std::size_t n_;
    std::vector<double> sums_, least_, greatest_;
    double value_ = 0.0;
};

}  // namespace truecast

// The rounds that chains place, and what they cost at a value above their prices: reduced costs
// (docs/distance.md, theorem 2).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace truecast::chains {

// Signed, as ranges may be empty and differences negative.
using Count = std::int64_t;

constexpr double unreached = std::numeric_limits<double>::infinity();
constexpr double round_margin = 0x1p-49;  // a round's part of the error of a step

inline double real(Count x) { return static_cast<double>(x); }
inline std::size_t index(Count k) { return static_cast<std::size_t>(k); }

// s/r, and where it lies among integers over 2^shift.
struct Value {
    Count r, s, floor;
    bool whole;
    double value;

    Value(Count r_, Count s_, int shift) : r(r_), s(s_), value(real(s) / real(r)) {
        const int half = shift / 2;  // two steps of long division: r and s are below 2^31
        const Count high = (s << half) / r;
        const Count rest = (s << half) % r << (shift - half);
        floor = (high << (shift - half)) + rest / r;
        whole = rest % r == 0;
    }

    Count zeros() const { return r - s; }
    Count ones() const { return s; }
};

// The forecasts of one class, sorted, in integers over 2^shift, with a price for each.
class Side {
  public:
    Side(const Count* x, const Count* price, std::size_t n, int shift)
        : x_(x),
          size_(static_cast<Count>(n)),
          unit_(std::ldexp(1.0, -shift)),
          below_(n + 1),
          above_(n + 1) {
        for (std::size_t k = 0; k < n; ++k) {
            below_[k + 1] = below_[k] + x[k] + price[k];
            above_[k + 1] = above_[k] + x[k] - price[k];
        }
    }

    Count size() const { return size_; }
    double forecast(Count k) const { return real(x_[k]) * unit_; }

    Count up_to(const Value& v) const { return up_to(v.floor); }
    Count up_to(double v) const { return up_to(static_cast<Count>(v / unit_)); }
    Count less_than(const Value& v) const { return up_to(v.floor - v.whole); }

    // Sums over the points from i up to k, of x + price and of x - price.
    double below(Count i, Count k) const {
        return real(below_[index(k)] - below_[index(i)]) * unit_;
    }
    double above(Count i, Count k) const {
        return real(above_[index(k)] - above_[index(i)]) * unit_;
    }

    // What the points after the first i cost above their prices if all of them move down on the
    // way to their outcome, and if all move up.
    double lowered(Count i, double outcome) const {
        return above(i, size_) - outcome * real(size_ - i);
    }
    double raised(Count i, double outcome) const {
        return outcome * real(size_ - i) - below(i, size_);
    }

  private:
    const Count* x_;
    Count size_;
    double unit_;
    std::vector<Count> below_, above_;

    Count up_to(Count bound) const { return std::upper_bound(x_, x_ + size_, bound) - x_; }
};

// A side seen from a value: F(i) - F(c) is what the points between c and i cost there, above their
// prices, where c points lie up to the value.
struct View {
    const Side& side;
    double v, price;
    Count c;

    // What the d points after the first i cost: F(i + d) - F(i), to within d * 2^-50.
    double step(Count i, Count d) const {
        const Count low = std::min(std::max<Count>(c - i, 0), d);
        const Count k = i + low;
        return ((v + price) * real(low) - side.below(i, k)) +
               (side.above(k, i + d) + (price - v) * real(d - low));
    }
    double at(Count i) const { return i >= c ? step(c, i - c) : -step(i, c - i); }

    // F grows with i: the first i with F(i) - F(c) >= -t, and the last with F(i) - F(c) <= t.
    Count first(double t) const {
        return farthest(0, [&](Count i) { return at(i) >= -t; });
    }
    Count last(double t) const {
        return farthest(side.size(), [&](Count i) { return at(i) <= t; });
    }

  private:
    // The farthest place from c towards the end up to which all are good: strides double until one
    // is not good, then halve.
    template <typename Good>
    Count farthest(Count end, Good good_at) const {
        const Count sign = end < c ? -1 : 1;
        const Count most = (end - c) * sign;
        Count good = 0, bad = most + 1;
        for (Count stride = 1; good < most; stride *= 2) {
            const Count next = std::min(most, good + stride);
            if (!good_at(c + sign * next)) {
                bad = next;
                break;
            }
            good = next;
        }
        while (bad - good > 1) {
            const Count middle = good + (bad - good) / 2;
            (good_at(c + sign * middle) ? good : bad) = middle;
        }
        return c + sign * good;
    }
};

// Prices of a zero and of a one at a value.
struct PricePair {
    double zero, one;

    // How much a calibrated group of this value is short of paying for itself, a round.
    double slack(double v) const { return -((1 - v) * zero + v * one); }
};

// Prices at any value, linear between nodes. Mirrored: those of the other class at 1 - v.
struct PriceCurve {
    const double *nodes, *zero, *one;
    std::size_t size;
    bool mirrored;

    PricePair at(double v) const {
        const double place = mirrored ? 1.0 - v : v;
        const Count after = std::upper_bound(nodes, nodes + size, place) - nodes;
        const Count k = std::clamp<Count>(after - 1, 0, static_cast<Count>(size) - 2);
        const double t = (place - nodes[k]) / (nodes[k + 1] - nodes[k]);
        const double a = zero[k] + t * (zero[k + 1] - zero[k]);
        const double b = one[k] + t * (one[k + 1] - one[k]);
        return mirrored ? PricePair{b, a} : PricePair{a, b};
    }
};

// All rounds and their prices.
struct Problem {
    Side zeros, ones;
    PriceCurve prices;
    int shift;

    Count rounds() const { return zeros.size() + ones.size(); }
    View zeros_from(double v, PricePair price, Count c) const { return {zeros, v, price.zero, c}; }
    View ones_from(double v, PricePair price, Count c) const { return {ones, v, price.one, c}; }

    // What is left costs at least its bias, above its prices (docs/distance.md, theorem 3 (f)).
    double bias_after(Count i, Count j) const {
        return std::max(zeros.lowered(i, 0.0) + ones.lowered(j, 1.0),
                        zeros.raised(i, 0.0) + ones.raised(j, 1.0));
    }
};

}  // namespace truecast::chains

// Sums over a tally, compensated: the order is fixed, the error a few units in the last place.
#pragma once

#include <cmath>
#include <cstddef>

namespace truecast {

class Total {
  public:
    // What rounding takes from sum + x is a double, and this finds it without asking which of the
    // two is larger (Knuth's TwoSum): a branch would be guessed wrong too often.
    void add(double x) {
        const double next = sum_ + x, added = next - sum_;
        rest_ += (sum_ - (next - added)) + (x - added);
        sum_ = next;
    }
    double value() const { return std::isfinite(sum_) ? sum_ + rest_ : sum_; }

  private:
    double sum_ = 0.0, rest_ = 0.0;
};

// ones - (zeros + ones) p, at one forecast.
template <typename Count>
double residual(double p, Count zeros, Count ones) {
    return static_cast<double>(ones) * (1.0 - p) - static_cast<double>(zeros) * p;
}

template <typename Count>
double absolute_residuals(const double* p, const Count* zeros, const Count* ones, std::size_t n) {
    Total sum;
    for (std::size_t i = 0; i < n; ++i) sum.add(std::fabs(residual(p[i], zeros[i], ones[i])));
    return sum.value();
}

// The integral over thresholds q in [0, 1] of the squares of two sums of residuals: below q, and at
// q or above. Between neighbouring forecasts they do not change.
template <typename Count>
double two_bin_squares(const double* p, const Count* zeros, const Count* ones, std::size_t n) {
    Total all, below, sum;
    for (std::size_t i = 0; i < n; ++i) all.add(residual(p[i], zeros[i], ones[i]));
    double here = 0.0;
    for (std::size_t i = 0; i <= n; ++i) {
        const double next = i < n ? p[i] : 1.0, left = below.value(), right = all.value() - left;
        sum.add((next - here) * (left * left + right * right));
        if (i < n) below.add(residual(p[i], zeros[i], ones[i]));
        here = next;
    }
    return sum.value();
}

// What it costs to move from(i), at sorted places x, to `to`, at sorted places v, of the same
// total: the integral of the distance between the two cumulative sums.
template <typename From>
double transport(const double* x, From from, std::size_t n, const double* v, const double* to,
                 std::size_t m) {
    Total cost, surplus;  // surplus: what has started less what has arrived, left of here
    double here = 0.0;
    std::size_t i = 0, k = 0;
    while (i < n || k < m) {
        const bool data = k == m || (i < n && x[i] <= v[k]);
        const double next = data ? x[i] : v[k];
        cost.add(std::fabs(surplus.value()) * (next - here));
        surplus.add(data ? from(i++) : -to[k++]);
        here = next;
    }
    return cost.value();
}

// Each weight, at sorted places p within the range of the sorted nodes, to the two nodes around it,
// in shares that keep its place on average.
template <typename Weight>
void spread(const double* p, Weight weight, std::size_t n, const double* nodes, std::size_t m,
            double* out) {
    std::size_t k = 0;  // p lies in [nodes[k], nodes[k + 1]]
    for (std::size_t i = 0; i < n; ++i) {
        while (k + 2 < m && nodes[k + 1] <= p[i]) ++k;
        const double share = (p[i] - nodes[k]) / (nodes[k + 1] - nodes[k]), mass = weight(i);
        out[k] += mass * (1.0 - share);
        out[k + 1] += mass * share;
    }
}

}  // namespace truecast

// What trusting the forecasts can cost, over all decisions at once (docs/measures.md, theorem 5):
// twice the height at 1/2 of the concave envelope of the cost of threshold decisions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sorting.hpp"
#include "vectors.hpp"

namespace truecast {

constexpr std::size_t envelope_few = 32;  // points that there is room for at once

// The least concave function above points that come in order of x.
//
// Invariant: it is straight between the points kept so far, which turn right at each.
class Envelope {
  public:
    explicit Envelope(std::size_t points) : points_(points) {}

    // Apart: inlined, it is slower where it is hard to tell how many points go.
    TRUECAST_APART void add(double x, double height) {
        if (kept_ > 0 && points_[kept_ - 1].x == x) {
            if (points_[kept_ - 1].height >= height) return;
            --kept_;
        }
        const Point next{x, height};
        std::size_t kept = kept_;
        while (kept > 1 && !turns_right(points_[kept - 2], points_[kept - 1], next)) --kept;
        if (kept == points_.size()) points_.resize(2 * kept);
        points_[kept] = next;
        kept_ = kept + 1;
    }

    // Between the first point and the last.
    double at(double x) const {
        std::size_t k = 1;
        while (k + 1 < kept_ && points_[k].x < x) ++k;
        const Point &a = points_[k - 1], &b = points_[k];
        return a.height + (b.height - a.height) * ((x - a.x) / (b.x - a.x));
    }

  private:
    struct Point {
        double x, height;
    };

    static bool turns_right(const Point& a, const Point& b, const Point& c) {
        return (b.height - a.height) * (c.x - b.x) > (c.height - b.height) * (b.x - a.x);
    }

    std::vector<Point> points_;  // those kept, and room for others
    std::size_t kept_ = 0;
};

// Regret against the best constant: at a threshold c, total (rate - c)^+ less the sum of y - c over
// the forecasts above c; at a forecast, the worse of counting it as above and not.
template <typename Count>
double u_calibration(const double* p, const Count* zeros, const Count* ones, std::size_t n) {
    Count rounds = 0, outcomes = 0;
    for (std::size_t i = 0; i < n; ++i) {
        rounds += zeros[i] + ones[i];
        outcomes += ones[i];
    }
    const double total = static_cast<double>(rounds), all_ones = static_cast<double>(outcomes);
    double above = total, ones_above = all_ones;  // at this forecast and beyond
    Envelope envelope(std::min(n + 2, envelope_few));
    envelope.add(0.0, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        const double best = std::max(all_ones - total * p[i], 0.0),
                     with = ones_above - p[i] * above;
        above -= static_cast<double>(zeros[i] + ones[i]);
        ones_above -= static_cast<double>(ones[i]);
        envelope.add(p[i], best - std::min(with, ones_above - p[i] * above));
    }
    envelope.add(1.0, 0.0);
    return 2.0 * envelope.at(0.5);
}

// The forecasts in the order of their rates, equal ones as they come. Most rates are 0 or 1 if most
// forecasts came once: only the others are sorted.
template <typename Rate>
std::vector<std::uint32_t> order_of_rates(Rate rate, std::size_t n) {
    std::vector<std::uint32_t> order;
    order.reserve(n);
    std::vector<PlacedValue> between;
    for (std::size_t i = 0; i < n; ++i) {
        const double r = rate(i);
        if (r == 0.0)
            order.push_back(static_cast<std::uint32_t>(i));
        else if (r != 1.0)
            between.emplace_back(r, i);
    }
    sort_values(between);
    for (const PlacedValue& item : between)
        order.push_back(static_cast<std::uint32_t>(item.place()));
    for (std::size_t i = 0; i < n; ++i)
        if (rate(i) == 1.0) order.push_back(static_cast<std::uint32_t>(i));
    return order;
}

// Swap regret: a threshold c between a forecast and its rate, ends included, costs weight |rate -
// c|. The cost of all is a line between neighbouring places; forecasts enter and leave the sum as c
// grows.
template <typename Count>
double decision_loss(const double* p, const Count* zeros, const Count* ones, std::size_t n) {
    const auto rate = [&](std::size_t i) {
        return static_cast<double>(ones[i]) / static_cast<double>(zeros[i] + ones[i]);
    };
    const std::vector<std::uint32_t> order = order_of_rates(rate, n);
    double constant = 0.0, slope = 0.0;
    const auto change = [&](std::size_t i, double side) {  // by the line ones - weight c
        constant += side * static_cast<double>(ones[i]);
        slope -= side * static_cast<double>(zeros[i] + ones[i]);
    };
    Envelope envelope(std::min(n + 2, envelope_few));
    envelope.add(0.0, 0.0);
    // invariant: from the last place to the next, constant + slope c is what the forecasts cost
    // that have c between themselves and their rates
    std::size_t i = 0, k = 0;  // the next forecast, and the next rate
    const auto rate_at = [&](std::size_t r) {
        return r < n ? rate(order[r]) : std::numeric_limits<double>::infinity();
    };
    double next = rate_at(0);
    while (i < n || k < n) {
        const double c = i < n && p[i] <= next ? p[i] : next;
        const std::size_t first = k;
        for (; next == c; next = rate_at(k)) ++k;  // rates first ... k - 1 are c
        const bool forecast = i < n && p[i] == c, above = forecast && rate(i) >= c;
        if (above) change(i, 1.0);
        for (std::size_t r = first; r < k; ++r)
            if (c < p[order[r]]) change(order[r], -1.0);
        envelope.add(c, std::max(constant + slope * c, 0.0));
        for (std::size_t r = first; r < k; ++r)
            if (c >= p[order[r]]) change(order[r], -1.0);
        if (forecast && !above) change(i, 1.0);
        i += forecast;
    }
    envelope.add(1.0, 0.0);
    return 2.0 * envelope.at(0.5);
}

}  // namespace truecast

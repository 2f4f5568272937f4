// The lower distance to calibration, between two proven bounds (docs/measures.md, section 4): best
// prices at nodes, repaired so that they are valid everywhere; more nodes where that cost too much.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "curve.hpp"
#include "prices.hpp"
#include "totals.hpp"

namespace truecast {

using Column = std::vector<double>;

// Prices at increasing places from 0 to 1, linear in between: for a zero, and for a one.
struct PriceCurve {
    Column at, of_zero, of_one;

    std::size_t size() const { return at.size(); }

    // The prices at place k are calibrated with this surplus: (1 - v) A + v B, at most 0 if valid.
    double surplus(std::size_t k) const { return (1.0 - at[k]) * of_zero[k] + at[k] * of_one[k]; }

    // The greatest surplus in each cell between two places: that of a parabola.
    Column excess() const {
        Column greatest(size() - 1);
        for (std::size_t k = 0; k + 1 < size(); ++k) {
            const double left = at[k], gap = at[k + 1] - left, a = of_zero[k], b = of_one[k];
            const double slope_a = (of_zero[k + 1] - a) / gap, slope_b = (of_one[k + 1] - b) / gap;
            // at left + x: q0 + q1 x + q2 x^2
            const double q0 = surplus(k), q2 = slope_b - slope_a,
                         q1 = (1.0 - left) * slope_a + left * slope_b + b - a;
            const double x = q2 < 0.0 ? std::min(std::max(-q1 / (2.0 * q2), 0.0), gap) : 0.0;
            greatest[k] = std::max(q0 + q1 * x + q2 * x * x, std::max(q0, surplus(k + 1)));
        }
        return greatest;
    }
};

struct PriceBounds {
    double lower, upper;
    PriceCurve prices;      // worth `lower`, less what rounding may have added
    Column values, masses;  // calibrated forecasts that cost `upper`, but for the same
};

// Lowers prices to the greatest below them, and from -1, that change no faster than their places.
// Each comes from one other, not from its neighbour, so that rounding does not add up.
inline void lower_to_lipschitz(const Column& at, Column& prices) {
    const std::size_t n = at.size();
    Column from_left(n);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < n; ++k) {
        prices[k] = std::max(prices[k], -1.0);  // still valid: theorem 3 (b)
        least = std::min(least, prices[k] - at[k]);
        from_left[k] = least + at[k];
    }
    least = std::numeric_limits<double>::infinity();
    for (std::size_t k = n; k-- > 0;) {
        least = std::min(least, prices[k] + at[k]);
        prices[k] = std::min(from_left[k], least - at[k]);
    }
}

template <typename Count>
class LowerDistance {
  public:
    // A tally, of one round or more.
    LowerDistance(const double* p, const Count* zeros, const Count* ones, std::size_t n,
                  double total)
        : p_(p), counts_{zeros, ones}, n_(n), total_(total) {
        Total all;
        for (std::size_t i = 0; i < n; ++i) all.add(static_cast<double>(ones[i]));
        rate_ = all.value() / total;
    }

    // The best bounds found, within `rtol` of the upper one if nothing prevents it.
    PriceBounds bounds(double rtol) {
        offer_worth({{0.0, 1.0}, {0.0, 0.0}, {0.0, 0.0}});  // what needs no solver
        own_rates();
        Column nodes, more = first_nodes(rtol >= wide ? few_nodes : most_nodes);
        double gap = std::numeric_limits<double>::infinity();
        for (int round = 0, stalled = 0; round < rounds && stalled < 3 && !more.empty(); ++round) {
            nodes = apart(merged(nodes, more));
            PriceCurve prices = solve(nodes, rtol / 4.0);
            const double harmless = std::max(rtol / 8.0 * best_.upper, 4.0 * epsilon);
            more = repair(prices, harmless);
            offer_worth(std::move(prices));
            const double previous = std::exchange(gap, best_.upper - best_.lower);
            stalled = gap > 0.7 * previous ? stalled + 1 : 0;
            if (gap <= rtol * best_.upper) break;
        }
        return std::move(best_);
    }

  private:
    static constexpr std::size_t iterations = 500;
    static constexpr int rounds = 8;
    static constexpr std::size_t least_grid = 8, most_grid = 256;  // cells, besides the forecasts
    static constexpr std::size_t most_nodes = 1 << 21;  // of more forecasts, not each is one
    static constexpr std::size_t few_nodes = 1 << 16;   // the same, if bounds may be as far apart
    static constexpr double wide = 1e-3;                // as this
    static constexpr std::size_t most_parts = 64;       // of a cell between two nodes, in a round
    static constexpr double least_gap = 0x1p-40;        // nodes that are closer are one
    static constexpr double epsilon = 0x1p-52;
    static constexpr double slack = 0x1p-48;  // more than both bounds can be off by rounding
    static constexpr std::size_t stretch = 1 << 15;

    double share(int side, std::size_t i) const {
        return static_cast<double>(counts_[side][i]) / total_;
    }

    // The lower bound that prices prove, if it is the best.
    void offer_worth(PriceCurve prices) {
        const double worth = std::max(0.0, worth_of(0, prices.at, prices.of_zero) +
                                               worth_of(1, prices.at, prices.of_one) - slack);
        if (best_.prices.size() > 0 && worth <= best_.lower) return;
        best_.lower = worth;
        best_.prices = std::move(prices);
    }

    // Stretch by stretch: what a compensated sum may lose grows with the square of its length.
    double worth_of(int side, const Column& at, const Column& prices) const {
        Total sum;
        for (std::size_t from = 0, k = 0; from < n_; from += stretch) {
            Total part;
            for (std::size_t i = from; i < std::min(from + stretch, n_); ++i) {
                while (k + 2 < at.size() && at[k + 1] <= p_[i]) ++k;
                const double slope = (prices[k + 1] - prices[k]) / (at[k + 1] - at[k]);
                part.add(share(side, i) * (prices[k] + slope * (p_[i] - at[k])));
            }
            sum.add(part.value());
        }
        return sum.value();
    }

    // The upper bound by masses at increasing values from 0 to 1, if it is the best. Masses are
    // scaled down until they need no more zeros and ones than there are; what is left over is
    // foretold with certainty, which is calibrated.
    void offer_cost(const Column& values, const Column& masses) {
        const std::size_t n = values.size();
        Total of_zero, of_one;
        for (std::size_t k = 0; k < n; ++k) {
            of_zero.add((1.0 - values[k]) * masses[k]);
            of_one.add(values[k] * masses[k]);
        }
        const double needed[2] = {of_zero.value(), of_one.value()}, have[2] = {1.0 - rate_, rate_};
        double part = 1.0;
        for (const int side : {0, 1})
            if (needed[side] > 0.0) part = std::min(part, have[side] / needed[side]);
        Column kept_values, kept_masses, to[2];
        for (std::size_t k = 0; k < n; ++k) {
            double mass = masses[k] * part;
            if (k == 0) mass += std::max(0.0, have[0] - needed[0] * part);
            if (k + 1 == n) mass += std::max(0.0, have[1] - needed[1] * part);
            if (!(mass > 0.0)) continue;
            kept_values.push_back(values[k]);
            kept_masses.push_back(mass);
            to[0].push_back((1.0 - values[k]) * mass);
            to[1].push_back(values[k] * mass);
        }
        double cost = slack;
        for (const int side : {0, 1})
            cost += transport(
                p_, [&](std::size_t i) { return share(side, i); }, n_, kept_values.data(),
                to[side].data(), kept_values.size());
        if (!best_.values.empty() && cost >= best_.upper) return;
        best_.upper = cost;
        best_.values = std::move(kept_values);
        best_.masses = std::move(kept_masses);
    }

    // What moving every forecast to its own rate costs.
    void own_rates() {
        std::vector<std::pair<double, double>> found;  // rates but 0 and 1, with shares of rounds
        Total zeros, ones;
        for (std::size_t i = 0; i < n_; ++i) {
            const Count no = counts_[0][i], yes = counts_[1][i];
            const double weight = static_cast<double>(no + yes) / total_;
            if (no > 0 && yes > 0)
                found.emplace_back(rate_of(no, yes), weight);
            else
                (yes > 0 ? ones : zeros).add(weight);
        }
        found.emplace_back(0.0, zeros.value());
        found.emplace_back(1.0, ones.value());
        std::sort(found.begin(), found.end());
        Column rates, masses;
        for (const auto& [rate, mass] : found) {
            if (rates.empty() || rates.back() != rate) {
                rates.push_back(rate);
                masses.push_back(0.0);
            }
            masses.back() += mass;
        }
        offer_cost(rates, masses);
    }

    // A grid, rates of the reliability curve, where calibrated forecasts are likely to be, and
    // forecasts.
    Column first_nodes(std::size_t most) const {
        Column even, rates, forecasts;
        const std::size_t cells = std::min(std::max(n_ / 16, least_grid), most_grid);
        for (std::size_t k = 0; k <= cells; ++k)
            even.push_back(static_cast<double>(k) / static_cast<double>(cells));
        const Curve curve(counts_[0], counts_[1], n_);
        for (std::size_t k = 0; k < curve.blocks; k += 1 + curve.blocks / most_grid)
            rates.push_back(rate_of(curve.zeros[k], curve.ones[k]));
        for (std::size_t i = 0; i < n_; i += 1 + n_ / most) forecasts.push_back(p_[i]);
        return merged(merged(even, rates), forecasts);
    }

    static Column merged(const Column& some, const Column& others) {
        Column all;
        all.reserve(some.size() + others.size());
        std::merge(some.begin(), some.end(), others.begin(), others.end(), std::back_inserter(all));
        return all;
    }

    // These with 0 and 1, and without those that are too close to another. All is 1-Lipschitz: a
    // forecast that is no node, but as close to one as that, costs no more.
    static Column apart(const Column& places) {
        Column kept(1, 0.0);
        for (const double place : places)
            if (place - kept.back() >= least_gap && 1.0 - place >= least_gap) kept.push_back(place);
        kept.push_back(1.0);
        return kept;
    }

    // The best prices at nodes; the best atoms are an upper bound.
    PriceCurve solve(const Column& nodes, double tolerance) {
        const std::size_t n = nodes.size();
        Column masses(2 * n, 0.0), prices(2 * n), atoms(n);
        for (const int side : {0, 1})
            spread(
                p_, [&](std::size_t i) { return static_cast<double>(counts_[side][i]); }, n_,
                nodes.data(), n, masses.data() + (side == 0 ? 0 : n));
        for (double& mass : masses) mass /= total_;
        Prices(nodes.data(), masses.data(), masses.data() + n, n, prices.data(), atoms.data())
            .solve(tolerance, iterations);
        offer_cost(nodes, atoms);
        const auto middle = prices.begin() + static_cast<std::ptrdiff_t>(n);
        return {nodes, Column(prices.begin(), middle), Column(middle, prices.end())};
    }

    // Makes prices keep all rules everywhere; returns nodes to add, where that cost too much.
    //
    // At the nodes, prices become the greatest 1-Lipschitz functions below the given ones. Where
    // the surplus in a cell is above 0 by more than `harmless`, and no forecast is inside, prices
    // fall from both ends, as fast as they may, towards a kink. Then all prices are lowered by the
    // greatest surplus left: taking d off both takes d off it.
    Column repair(PriceCurve& prices, double harmless) const {
        lower_to_lipschitz(prices.at, prices.of_zero);
        lower_to_lipschitz(prices.at, prices.of_one);
        prices = with_kinks(prices, harmless);
        const Column excess = prices.excess();
        const double most = std::max(0.0, *std::max_element(excess.begin(), excess.end()));
        for (Column* side : {&prices.of_zero, &prices.of_one})
            for (double& price : *side) price -= most + 8.0 * epsilon;
        return between(prices.at, excess, harmless);
    }

    PriceCurve with_kinks(const PriceCurve& prices, double harmless) const {
        const Column excess = prices.excess();
        PriceCurve bent;
        for (Column* column : {&bent.at, &bent.of_zero, &bent.of_one})
            column->reserve(prices.size() + 16);
        for (std::size_t k = 0; k < prices.size(); ++k) {
            bent.at.push_back(prices.at[k]);
            bent.of_zero.push_back(prices.of_zero[k]);
            bent.of_one.push_back(prices.of_one[k]);
            if (k + 1 < prices.size() && excess[k] > harmless &&
                has_no_forecast(prices.at[k], prices.at[k + 1]))
                add_kinks(prices, k, bent);
        }
        return bent;
    }

    bool has_no_forecast(double left, double right) const {
        const double* const next = std::upper_bound(p_, p_ + n_, left);
        return next == p_ + n_ || *next >= right;
    }

    static void add_kinks(const PriceCurve& prices, std::size_t k, PriceCurve& bent) {
        const double left = prices.at[k], right = prices.at[k + 1];
        const auto kink = [&](const Column& side) {
            return (left + right + side[k] - side[k + 1]) / 2.0;
        };
        const auto [first, second] = std::minmax({kink(prices.of_zero), kink(prices.of_one)});
        for (const double place : {first, second}) {
            if (!(place > bent.at.back() && place < right)) continue;
            const auto lowest = [&](const Column& side) {
                return std::max(side[k] - (place - left), side[k + 1] - (right - place));
            };
            bent.at.push_back(place);
            bent.of_zero.push_back(lowest(prices.of_zero));
            bent.of_one.push_back(lowest(prices.of_one));
        }
    }

    // New nodes that divide the cells with the worst excess, which goes with the square of their
    // widths, and the cells beside them as finely: the best prices may be many, and move there.
    static Column between(const Column& places, const Column& excess, double harmless) {
        const std::size_t cells = excess.size();
        std::vector<std::size_t> broken;
        for (std::size_t k = 0; k < cells; ++k)
            if (excess[k] > harmless) broken.push_back(k);
        const std::size_t most = most_parts + cells / most_parts;
        if (broken.size() > most) {
            std::nth_element(broken.begin(), broken.begin() + static_cast<std::ptrdiff_t>(most),
                             broken.end(), [&](std::size_t i, std::size_t j) {
                                 return excess[i] != excess[j] ? excess[i] > excess[j] : i < j;
                             });
            broken.resize(most);
        }
        Column widths(cells, std::numeric_limits<double>::infinity()), added;
        constexpr double parts = most_parts;
        for (const std::size_t k : broken) {
            const double width = (places[k + 1] - places[k]) /
                                 std::clamp(std::sqrt(excess[k] / harmless), 2.0, parts);
            for (std::size_t near = k - (k > 0); near <= std::min(k + 1, cells - 1); ++near)
                widths[near] = std::min(widths[near], width);
        }
        for (std::size_t k = 0; k < cells; ++k) {
            const double gap = places[k + 1] - places[k];
            const double number = std::ceil(std::clamp(gap / widths[k], 1.0, parts));
            for (double j = 1.0; j < number; j += 1.0)
                added.push_back(places[k] + gap * (j / number));
        }
        return added;
    }

    const double* p_;
    const Count* counts_[2];
    std::size_t n_;
    double total_, rate_ = 0.0;
    PriceBounds best_{};
};

}  // namespace truecast

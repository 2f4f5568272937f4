// A ladder that makes its own grid: a cell is split at its middle once the forecasts made in it
// have deviated enough.
//
// Points and biases are integers over N = 2^40, deviations over 2N, as in ladder.hpp; a forecast is
// any double, and its deviation is rounded up. A new point has the bias 0, so nothing that was true
// of the ladder becomes false (docs/adaptive.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "entries.hpp"
#include "wide.hpp"

namespace truecast {

constexpr std::int64_t split_denominator = std::int64_t{1} << 40;  // N
constexpr std::size_t most_cells = std::size_t{1} << 20;
constexpr std::uint64_t most_spent =
    (std::uint64_t{1} << 62) - 1;  // counted; a cell that splits does so long before

inline double unscaled(std::int64_t point) {
    return static_cast<double>(point) / static_cast<double>(split_denominator);
}

// |forecast - point| over 2N, rounded up. The product is exact, and so is its integral part.
inline std::uint64_t deviation_of(double forecast, std::int64_t point) {
    const double scaled = forecast * static_cast<double>(2 * split_denominator),
                 under = std::floor(scaled);
    const std::int64_t off = static_cast<std::int64_t>(under) - 2 * point;
    return off < 0 ? static_cast<std::uint64_t>(-off)
                   : static_cast<std::uint64_t>(off) + (scaled > under);
}

struct SplitLadder {
    std::vector<std::int64_t> points, biases;
    std::vector<std::uint64_t> spent;
    std::int64_t rounds = 0;
    Wide deviation;
    double squared_error = 0.0;
    bool busy = false;  // a batch is running without the interpreter lock

    SplitLadder(const std::int64_t* points_, std::size_t count)
        : points(points_, points_ + count), biases(count, 0), spent(count - 1, 0) {}

    Entries entries() {
        return {{"rounds", rounds, 0, half_range, "outcomes learned"},
                {"deviation", deviation, 0, 0x1p127,
                 "over 2N: of all forecasts from the points credited"},
                {"squared_error", squared_error, 0, half_range, "sum of (forecast - outcome)^2"},
                {"points", points, 0, split_denominator, "over N = 2^40: the ends of the cells"},
                {"biases", biases, -half_range, half_range, "over N: of each point"},
                {"spent", spent, 0, half_range,
                 "over 2N: what each cell has cost since it came to be"}};
    }

    std::size_t cells() const { return spent.size(); }

    // The round's forecast p was made in a cell with the end g = points[j] towards y, and is
    // charged to cell i.
    void settle(std::size_t j, std::size_t i, double p, bool y) {
        biases[j] += points[j] - (y ? split_denominator : 0);
        const std::uint64_t pay = deviation_of(p, points[j]);
        spent[i] = std::min(spent[i] + pay, most_spent);
        deviation.add(pay);
        const double error = p - static_cast<double>(y);
        squared_error += error * error;
        ++rounds;
    }

    bool splits(std::size_t i, std::uint64_t threshold) const {
        return spent[i] >= threshold && points[i + 1] - points[i] > 1 && cells() < most_cells;
    }

    // Cell i becomes cells i and i + 1. O(m), but cells split so rarely
    // that all splits of T rounds together cost O(T).
    void split(std::size_t i) {
        const auto at = static_cast<std::ptrdiff_t>(i);
        points.insert(points.begin() + at + 1, points[i] + (points[i + 1] - points[i]) / 2);
        biases.insert(biases.begin() + at + 1, 0);
        spent[i] = 0;
        spent.insert(spent.begin() + at + 1, 0);
    }
};

// The walk of ladder.hpp, on the ladder that splits.
// Invariant: the biases at or below the lower end of the cell are <= 0, those at or above its upper
// end >= 0.
struct Walk : SplitLadder {
    std::uint64_t threshold;
    bool middle;  // of the cell, rather than its end farther from 1/2 (which the cell from 0 to 1
                  // does not have)
    std::uint64_t cell;
    bool issued = false;

    Walk(const std::int64_t* points_, std::size_t count, std::uint64_t threshold_, bool middle_)
        : SplitLadder(points_, count),
          threshold(threshold_),
          middle(middle_),
          cell((count - 1) / 2) {}

    Entries entries() {
        return joined(
            SplitLadder::entries(),
            {{"open_cell", cell, 0, most_cells - 1, "the cell that the next forecast is made in"},
             {"issued", issued, 0, 1, "whether a forecast is out and its outcome awaited"}});
    }

    double says() const {
        const std::int64_t low = points[cell], high = points[cell + 1];
        if (middle || high - low == split_denominator)
            return static_cast<double>(low + high) / static_cast<double>(2 * split_denominator);
        return unscaled(high <= split_denominator / 2 ? low : high);
    }

    double predict() {
        issued = true;
        return says();
    }

    double step(bool y) {
        const double said = says();
        const std::size_t i = cell, j = i + y;
        settle(j, i, said, y);
        const bool closed = y ? biases[j] < 0 : biases[j] > 0;
        if (closed) cell = y ? i + 1 : i - 1;
        if (splits(i, threshold)) {
            split(i);
            if (y)
                ++cell;  // to where it was, one further up now; or, if it stayed, to the half
                         // towards the outcome
        }
        issued = false;
        return said;
    }
};

}  // namespace truecast

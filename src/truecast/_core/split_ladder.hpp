// A ladder that makes its own grid: a cell is split at its middle once the forecasts made in it have deviated enough.
//
// Points and biases are integers over N = 2^40, deviations over 2N, as in ladder.hpp; a forecast is any double, and its
// deviation is rounded up. A new point has the bias 0, so nothing that was true of the ladder becomes false
// (docs/adaptive.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cell_set.hpp"
#include "nudge.hpp"
#include "wide.hpp"

namespace truecast {

constexpr std::int64_t whole = std::int64_t{1} << 40;  // N
constexpr std::size_t most_cells = std::size_t{1} << 20;
constexpr std::uint64_t most_spent = (std::uint64_t{1} << 62) - 1;  // counted; a cell that splits does so long before

inline double unscaled(std::int64_t point) { return static_cast<double>(point) / static_cast<double>(whole); }

// |forecast - point| over 2N, rounded up. The product is exact, and so is its integral part.
inline std::uint64_t deviation_of(double forecast, std::int64_t point) {
    const double scaled = forecast * static_cast<double>(2 * whole), under = std::floor(scaled);
    const std::int64_t off = static_cast<std::int64_t>(under) - 2 * point;
    return off < 0 ? static_cast<std::uint64_t>(-off) : static_cast<std::uint64_t>(off) + (scaled > under);
}

struct SplitLadder {
    std::vector<std::int64_t> points, biases;
    std::vector<std::uint64_t> spent;  // the deviation that each cell has cost since it came to be, over 2N
    std::int64_t rounds = 0;
    Wide deviation;  // of all rounds, over 2N
    double squared_error = 0.0;
    bool busy = false;  // a batch is running without the interpreter lock

    SplitLadder(const std::int64_t* points_, std::size_t count)
        : points(points_, points_ + count), biases(count, 0), spent(count - 1, 0) {}

    std::size_t cells() const { return spent.size(); }

    // The round's forecast p was made in a cell with the end g = points[j] towards y, and is charged to cell i.
    void settle(std::size_t j, std::size_t i, double p, bool y) {
        biases[j] += points[j] - (y ? whole : 0);
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

    // Cell i becomes cells i and i + 1. O(m), but a cell splits after so many rounds that all splits of T rounds
    // together cost O(T); if L outcomes are late at a time, O(T + L^2), as they can make a cell each.
    void split(std::size_t i) {
        const auto at = static_cast<std::ptrdiff_t>(i);
        points.insert(points.begin() + at + 1, points[i] + (points[i + 1] - points[i]) / 2);
        biases.insert(biases.begin() + at + 1, 0);
        spent[i] = 0;
        spent.insert(spent.begin() + at + 1, 0);
    }
};

// Forecasts without a hint and without slack: the walk of ladder.hpp, on the ladder that splits.
// Invariant: the biases at or below the lower end of the cell are <= 0, those at or above its upper end >= 0.
struct Walk : SplitLadder {
    std::uint64_t threshold;
    bool middle;  // of the cell, rather than its end farther from 1/2 (which the cell from 0 to 1 does not have)
    std::size_t cell;
    bool issued = false;

    Walk(const std::int64_t* points_, std::size_t count, std::uint64_t threshold_, bool middle_)
        : SplitLadder(points_, count), threshold(threshold_), middle(middle_), cell((count - 1) / 2) {}

    double says() const {
        const std::int64_t low = points[cell], high = points[cell + 1];
        if (middle || high - low == whole) return static_cast<double>(low + high) / static_cast<double>(2 * whole);
        return unscaled(high <= whole / 2 ? low : high);
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
            if (y) ++cell;  // to where it was, one further up now; or, if it stayed, to the half towards the outcome
        }
        issued = false;
        return said;
    }
};

// Where a forecast was made: the ends of its cell, which stay points for ever, and what was said.
struct Placed {
    std::int64_t low, high;
    double said;
};

// Forecasts near a hint, with slack K; outcomes may come late.
//
// A point g *takes* a one if its bias is >= -K, and a zero if it is <= K; 0 takes only zeros, 1 only ones. A cell is
// open if each outcome is taken by one of its ends; `open` holds just these cells. So every bias stays within
// [-K - (1 - g), K + g] (docs/adaptive.md), as in ladder.hpp, but either end may be credited with either outcome.
struct Guarded : SplitLadder {
    std::int64_t slack;       // K N
    std::uint64_t threshold;  // split at this deviation, over 2N; 0: never
    bool nudges;              // hints, before they are followed
    CellSet open;
    Nudge nudge;

    Placed asked{0, 0, 0.0};
    bool issued = false;                   // `asked` awaits its outcome
    std::int64_t late = 0, most_late = 0;  // outcomes outstanding now, and at most so far
    std::int64_t lost = 0;                 // forecasts whose outcome is no longer awaited
    Wide unknown;                          // sum of max(p, 1 - p) over both, over 2N, each rounded up

    Guarded(const std::int64_t* points_, std::size_t count, std::int64_t slack_, std::uint64_t threshold_, bool nudges_)
        : SplitLadder(points_, count), slack(slack_), threshold(threshold_), nudges(nudges_) {
        reopen();
    }

    void reopen() {
        open.clear(cells());
        for (std::size_t i = 0; i < cells(); ++i) reopen(i);
    }

    bool takes(std::size_t j, bool y) const {
        return y ? j > 0 && biases[j] >= -slack : j < cells() && biases[j] <= slack;
    }

    bool takes_in(std::size_t i, bool y) const { return takes(i, y) || takes(i + 1, y); }

    bool is_open(std::size_t i) const { return takes_in(i, true) && takes_in(i, false); }

    // The cell that holds the hint, the upper one if two do.
    std::size_t cell_of(double hint) const {
        const double scaled = hint * static_cast<double>(whole);
        const auto over = std::upper_bound(points.begin() + 1, points.end() - 1, scaled,
                                           [](double x, std::int64_t g) { return x < static_cast<double>(g); });
        return static_cast<std::size_t>(over - points.begin()) - 1;
    }

    // The cell that holds the hint, if it is open. If its ends take no more ones, the outcomes there ran above the
    // forecasts: go up, to the next cell that is open; else down. There is one (docs/adaptive.md).
    std::size_t enter(double hint) const {
        const std::size_t i = cell_of(hint);
        if (open.has(i)) return i;
        if (i > 0 && open.has(i - 1) && hint == unscaled(points[i])) return i - 1;
        return takes_in(i, true) ? open.below(i) : open.above(i);
    }

    Placed place(std::size_t i, double hint) const {
        return {points[i], points[i + 1], std::min(std::max(hint, unscaled(points[i])), unscaled(points[i + 1]))};
    }

    double nudged(double hint) const {
        hint += 0.0;  // -0.0 becomes 0.0
        return nudges ? nudge.apply(hint) : hint;
    }

    Placed place(double hint) const {
        const double aim = nudged(hint);
        return place(enter(aim), aim);
    }

    double predict(double hint) {
        asked = place(hint);
        issued = true;
        return asked.said;
    }

    void observe(bool y) {
        resolve(asked, y);
        if (nudges) nudge.wait(late);
        issued = false;
    }

    // What D + A grows by, over 2N, if point j is credited with y.
    std::int64_t growth(std::size_t j, double p, bool y) const {
        const std::int64_t before = biases[j], after = before + points[j] - (y ? whole : 0);
        return static_cast<std::int64_t>(deviation_of(p, points[j])) + 2 * (std::abs(after) - std::abs(before));
    }

    // The end to credit: one that takes y; of two the one for which the certificate grows less; the one towards y if
    // that is equal. If outcomes came late and none takes it any more, the one whose bias leaves more room.
    std::size_t credited(std::size_t low, std::size_t high, double p, bool y) const {
        const bool takes_low = takes(low, y), takes_high = takes(high, y);
        const std::size_t towards = y ? high : low, other = y ? low : high;
        if (takes_low && takes_high) return growth(other, p, y) < growth(towards, p, y) ? other : towards;
        if (takes_low || takes_high) return takes_low ? low : high;
        if (y ? low == 0 : high == cells()) return towards;
        return y ? (biases[low] > biases[high] ? low : high) : (biases[high] < biases[low] ? high : low);
    }

    // `p` was said in a cell with these ends, which cell i is, or is a part of now.
    void learn(std::size_t low, std::size_t high, std::size_t i, double p, bool y) {
        const std::size_t j = credited(low, high, p, y);
        settle(j, i, p, y);
        if (nudges) nudge.learn(p, y);
        finish(j, i);
    }

    void reopen(std::size_t i) { open.set(i, is_open(i)); }

    // Cell `charged` has paid, and the bias of point `credited` has changed.
    void finish(std::size_t credited, std::size_t charged) {
        if (threshold != 0 && splits(charged, threshold)) {
            split(charged);
            open.make_room(charged + 1);
            reopen(charged);
            reopen(charged + 1);
            credited += credited > charged;
        }
        if (credited > 0) reopen(credited - 1);
        if (credited < cells()) reopen(credited);
    }

    std::size_t index_of(std::int64_t point) const {
        return static_cast<std::size_t>(std::lower_bound(points.begin(), points.end(), point) - points.begin());
    }

    // The outcome of a forecast made earlier: its cell may have been split since, its ends are points still.
    void resolve(const Placed& made, bool y) {
        const std::size_t low = index_of(made.low), high = index_of(made.high);
        learn(low, high, std::min(std::max(cell_of(made.said), low), high - 1), made.said, y);
    }

    static std::uint64_t at_worst(double p) { return std::max(deviation_of(p, 0), deviation_of(p, whole)); }

    Placed issue(double hint) {
        const Placed made = place(hint);
        if (nudges) nudge.wait(late);
        unknown.add(at_worst(made.said));
        most_late = std::max(most_late, ++late);
        return made;
    }

    void settle_late(const Placed& made, bool y) {
        unknown.subtract(at_worst(made.said));
        --late;
        resolve(made, y);
    }

    void give_up() {
        --late;
        ++lost;
    }

    double round(double hint, bool y) {
        const double aim = nudged(hint);
        const std::size_t i = enter(aim);
        const double said = place(i, aim).said;
        learn(i, i + 1, i, said, y);
        if (nudges) nudge.wait(late);
        issued = false;
        return said;
    }
};

}  // namespace truecast

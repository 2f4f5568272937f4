// The ladder: points 0 = g_0 < ... < g_m = 1 with a bias each, and the open cell the next forecast
// is made in.
//
// All numbers of the proof are integers. Points and biases are numerators over one denominator N,
// forecasts and deviations numerators over 2N (so that the middle of a cell is one too).
//
// Invariant of every round (docs/theory.md, section 2), for the biases a and the cell i:
//     a[0] = a[m] = 0;   a[j] <= 0 for j <= i;   a[j] >= 0 for j > i;   g_j - N <= a[j] <= g_j.
// Hence cell i is open, and the cell after the round is i - 1, i or i + 1: no search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "entries.hpp"
#include "wide.hpp"

namespace truecast {

// What an outcome does in a cell. Fixed when the ladder is built.
struct Move {
    std::int64_t credit;  // added to the bias of the credited point g: g - N y
    std::uint64_t pay;    // |forecast - g|, over 2N
    double says;          // the forecast
    double squared;       // (says - y)^2
};

// What a round changes besides one bias, as the loops keep it in registers.
struct Running {
    std::int64_t cell;
    std::uint64_t paid;  // the deviation of this block of rounds, over 2N
    double squared_error;
};

// These rounds pay less than 2^63 together, while N <= 2^52.
constexpr std::size_t block = 1024;

// The same between blocks.
struct Position {
    std::int64_t cell = 0;
    Wide deviation;  // over 2N
    double squared_error = 0.0;

    Running start() const { return {cell, 0, squared_error}; }

    void stop(const Running& now) {
        cell = now.cell;
        deviation.add(now.paid);
        squared_error = now.squared_error;
    }
};

// The moves and the biases as the two outcomes see them: entry i belongs to cell i and to its end
// towards y.
struct ByOutcome {
    const std::int64_t* gaps[2];  // credit - limit: the next cell is that above g if bias + gap <
                                  // 0, else that below
    const Move* moves[2];         // apart from the gaps, which alone are on the chain
    std::int64_t* credited[2];
};

// One round; returns what was said. Only the last bit of y counts: the caller's memory was checked,
// but another thread may have changed it since, and it must not become an index. Branch-free: the
// only chain from round to round is cell -> bias of the credited point -> sign -> cell.
inline double step(const ByOutcome& sides, Running& at, std::uint8_t outcome) {
    const std::size_t y = outcome & 1;
    const std::int64_t i = at.cell;
    std::int64_t& bias = sides.credited[y][i];
    const Move& move = sides.moves[y][i];
    const std::int64_t before = bias;
    const std::int64_t sign = before + sides.gaps[y][i];
    bias = before + move.credit;
    at.cell = (i + static_cast<std::int64_t>(y) - 1) +
              static_cast<std::int64_t>(static_cast<std::uint64_t>(sign) >> 63);
    at.paid += move.pay;
    at.squared_error += move.squared;
    return move.says;
}

// The batch: forecast, then learn, for every outcome in turn.
inline void play(const ByOutcome& sides, Position& at, const std::uint8_t* y, std::size_t count,
                 double* said) {
    for (std::size_t t = 0; t < count;) {
        const std::size_t end = std::min(count, t + block);
        Running now = at.start();
        for (; t < end; ++t) said[t] = step(sides, now, y[t]);
        at.stop(now);
    }
}

// All that rounds change of a ladder.
struct LadderState {
    std::vector<std::int64_t> biases;
    Position at;
    std::int64_t rounds = 0;
    bool issued = false;

    Entries entries() {
        const auto last_cell = static_cast<double>(biases.size()) - 2;
        return {{"rounds", rounds, 0, half_range, "outcomes learned"},
                {"open_cell", at.cell, 0, last_cell, "the cell that the next forecast is made in"},
                {"issued", issued, 0, 1, "whether a forecast is out and its outcome awaited"},
                {"deviation", at.deviation, 0, 0x1p127,
                 "over 2N: of all forecasts from the points credited"},
                {"squared_error", at.squared_error, 0, half_range, "sum of (forecast - outcome)^2"},
                {"biases", row(biases), -half_range, half_range, "over N: of each point"}};
    }
};

struct Ladder : LadderState {
    std::vector<std::int64_t> points;
    std::int64_t denominator;
    std::vector<std::int64_t> gaps;  // those of outcome 0 in every cell, then those of outcome 1
    std::vector<Move> moves;         // likewise
    bool busy = false;               // a batch is running without the interpreter lock

    // said (over 2N) and limits: 2 rows (outcome) of m columns (cell).
    Ladder(const std::int64_t* points_, std::size_t count, std::int64_t denominator_,
           const std::int64_t* said, const std::int64_t* limits, std::int64_t cell)
        : points(points_, points_ + count), denominator(denominator_) {
        biases.assign(count, 0);
        at.cell = cell;
        gaps.reserve(2 * cells());
        moves.reserve(2 * cells());
        for (std::size_t k = 0; k < 2 * cells(); ++k) {
            const std::size_t y = k / cells();
            const std::int64_t point = points[k % cells() + y];
            const std::int64_t credit = point - denominator * static_cast<std::int64_t>(y);
            const std::int64_t off = said[k] - 2 * point;
            gaps.push_back(credit - limits[k]);
            const double says = static_cast<double>(said[k]) / static_cast<double>(2 * denominator);
            const double error = says - static_cast<double>(y);
            moves.push_back(
                {credit, static_cast<std::uint64_t>(off < 0 ? -off : off), says, error * error});
        }
    }

    std::size_t cells() const { return points.size() - 1; }

    ByOutcome sides(std::int64_t* of_biases) const {
        return {{gaps.data(), gaps.data() + cells()},
                {moves.data(), moves.data() + cells()},
                {of_biases, of_biases + 1}};
    }

    double predict() {
        issued = true;
        return moves[static_cast<std::size_t>(at.cell)].says;
    }

    double settle(std::uint8_t y) {
        ++rounds;
        issued = false;
        double said;
        play(sides(biases.data()), at, &y, 1, &said);
        return said;
    }

    void run(const std::uint8_t* y, std::size_t count, double* said) {
        play(sides(biases.data()), at, y, count, said);
        rounds += static_cast<std::int64_t>(count);
        issued = issued && count == 0;
    }
};

}  // namespace truecast

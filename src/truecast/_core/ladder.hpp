// The ladder: points 0 = g_0 < ... < g_m = 1 with a bias each, and the open cell the next forecast is made in.
//
// All numbers of the proof are integers. Points and biases are numerators over one denominator N, forecasts and
// deviations numerators over 2N (so that the middle of a cell is one too).
//
// Invariant of every round (docs/theory.md, section 2), for the biases a and the cell i:
//     a[0] = a[m] = 0;   a[j] <= 0 for j <= i;   a[j] >= 0 for j > i;   g_j - N <= a[j] <= g_j.
// Hence cell i is open, and the cell after the round is i - 1, i or i + 1: no search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wide.hpp"

namespace truecast {

// What outcome y does in cell i; entry y * cells + i. Fixed when the ladder is built.
struct Moves {
    std::int64_t cells = 0;
    std::vector<std::int64_t> credit;  // added to the bias of point i + y: g_{i+y} - N y
    std::vector<std::int64_t> gap;     // credit - limit: the next cell is i + y if bias + gap < 0, else i + y - 1
    std::vector<std::uint64_t> pay;    // |forecast - credited point|, over 2N
    std::vector<double> says;          // the forecast
};

// What a round changes besides one bias.
struct Position {
    std::int64_t cell = 0;
    Wide deviation;  // over 2N
    double squared_error = 0.0;
};

// One round; returns what was said. Branch-free: the only chain from round to round is
// cell -> bias of the credited point -> sign -> cell.
inline double step(const Moves& moves, std::int64_t* biases, Position& at, std::int64_t y) {
    const std::int64_t i = at.cell;
    const std::int64_t side = moves.cells & -y;
    std::int64_t* credited = biases + y;
    const std::int64_t before = credited[i];
    const std::int64_t sign = before + (moves.gap.data() + side)[i];
    at.cell = (i + y - 1) + static_cast<std::int64_t>(static_cast<std::uint64_t>(sign) >> 63);

    const std::int64_t k = i + side;
    credited[i] = before + moves.credit[static_cast<std::size_t>(k)];
    at.deviation.add(moves.pay[static_cast<std::size_t>(k)]);
    const double said = moves.says[static_cast<std::size_t>(k)];
    const double error = said - static_cast<double>(y);
    at.squared_error += error * error;
    return said;
}

struct Ladder {
    std::vector<std::int64_t> points;
    std::int64_t denominator = 1;
    Moves moves;

    std::vector<std::int64_t> biases;
    Position at;
    std::int64_t rounds = 0;
    bool issued = false;  // a forecast is out and its outcome is awaited
    bool busy = false;    // a batch is running without the interpreter lock

    // says and limits: 2 rows (outcome) of m columns (cell).
    Ladder(const std::int64_t* points_, std::size_t count, std::int64_t denominator_, const std::int64_t* says,
           const std::int64_t* limits, std::int64_t cell)
        : points(points_, points_ + count), denominator(denominator_), biases(count, 0) {
        at.cell = cell;
        const std::size_t cells = count - 1;
        moves.cells = static_cast<std::int64_t>(cells);
        for (std::size_t k = 0; k < 2 * cells; ++k) {
            const std::size_t y = k / cells;
            const std::int64_t point = points[k % cells + y];
            const std::int64_t credit = point - denominator * static_cast<std::int64_t>(y);
            const std::int64_t off = says[k] - 2 * point;
            moves.credit.push_back(credit);
            moves.gap.push_back(credit - limits[k]);
            moves.pay.push_back(static_cast<std::uint64_t>(off < 0 ? -off : off));
            moves.says.push_back(static_cast<double>(says[k]) / static_cast<double>(2 * denominator));
        }
    }

    double predict() {
        issued = true;
        return moves.says[static_cast<std::size_t>(at.cell)];
    }

    double settle(std::int64_t y) {
        ++rounds;
        issued = false;
        return step(moves, biases.data(), at, y);
    }

    // The batch: forecast, then learn, for every outcome in turn.
    void run(const std::uint8_t* y, std::size_t count, double* said) {
        Position position = at;  // a local, so that the compiler keeps it in registers
        for (std::size_t t = 0; t < count; ++t) said[t] = step(moves, biases.data(), position, y[t]);
        at = position;
        rounds += static_cast<std::int64_t>(count);
        issued = issued && count == 0;
    }
};

}  // namespace truecast

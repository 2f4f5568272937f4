// Bounds on what steps with values inside a cell of the tree cost, and on what leaving them out
// costs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "chain_points.hpp"

namespace truecast::chains {

// A range of indices, both ends included unless said otherwise.
struct Range {
    Count from, to;
    bool empty() const { return from > to; }
};

// The least that d points cost at any value between two: those below cost what they cost at the
// lower value, those above what they cost at the higher, those between nothing. Costs grow
// outwards, so the d cheapest are adjacent.
inline double cheapest(const View& low, const View& high, Count d) {
    d -= high.c - low.c;
    if (d <= 0) return 0;
    Count few = std::max<Count>(0, d - (high.side.size() - high.c)), many = std::min(d, low.c);
    if (few > many) return unreached;
    while (few < many) {  // how many of them are below
        const Count k = few + (many - few) / 2;
        if (high.step(high.c + d - k - 1, 1) > low.step(low.c - k - 1, 1))
            few = k + 1;
        else
            many = k;
    }
    return low.step(low.c - few, few) + high.step(high.c, d - few);
}

// The sum of 2 (x - u)(w - x) / (w - u) over the points `from` and up to, without, `to`; or, if
// they are many, a bound on it.
inline double inside_cost(const Side& side, Range points, double u, double w) {
    const Count n = points.to - points.from;
    const double width = w - u;
    if (n > 64) return real(n) * (width / 2 + 0x1p-50);
    double cost = 0;
    for (Count k = points.from; k < points.to; ++k) {
        const double x = side.forecast(k);
        cost += std::max(0.0, x - u) * std::max(0.0, w - x);
    }
    return (1 + 1e-9) * 2 * cost / width + real(n) * 0x1p-50;
}

// Cells that were left out although chains may have steps there.
class Cuts {
  public:
    // What leaving out a cell costs at most, and how many rounds its steps have at least.
    void add(double cost, double rounds) { cuts_.push_back({cost, rounds}); }
    // What it costs a round, beside, to split groups whose zeros are above and ones below.
    void add_inverted(double each) { steepest_ = std::max(steepest_, each); }

    std::size_t bytes() const { return cuts_.capacity() * sizeof(Cut); }

    // What leaving them out costs a chain at most: it has steps in no more cells than its rounds
    // are enough for (docs/distance.md, theorem 6).
    double loss(Count of) {
        std::sort(cuts_.begin(), cuts_.end(),
                  [](const Cut& a, const Cut& b) { return a.cost * b.rounds > b.cost * a.rounds; });
        double rounds = real(of), sum = 0;
        for (const Cut& cut : cuts_) {
            const double part = std::min(1.0, rounds / cut.rounds);
            sum += part * cut.cost;
            rounds -= part * cut.rounds;
            if (rounds <= 0) break;
        }
        return sum * (1 + 1e-9) + excess(of);
    }
    // The part of it that bridges do not make up for.
    double excess(Count of) const { return real(of) * steepest_; }

  private:
    struct Cut {
        double cost, rounds;
    };
    std::vector<Cut> cuts_;
    double steepest_ = 0;
};

}  // namespace truecast::chains

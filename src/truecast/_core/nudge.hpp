// A nudge: shift each hint against what the forecasts around it have missed so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace truecast {

struct Nudge {
    double lag = 0.0;  // how many outcomes were outstanding when forecasts were made, the last 64 or so

    void wait(std::int64_t late) { lag += (static_cast<double>(late) - lag) / 64.0; }

    double apply(double hint, double pull, double energy, double variance) const {
        if (!(variance > 0.0)) return hint;
        const double evidence = std::min(energy / variance, 4.0);
        const double shift = 0.25 * evidence * pull / (std::sqrt(200.0 + variance) * (1.0 + std::sqrt(lag)));
        const double odds = hint * std::exp(std::min(std::max(shift, -2.0), 2.0));
        return odds / (1.0 - hint + odds);
    }
};

}  // namespace truecast

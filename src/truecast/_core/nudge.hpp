// A nudge: shift each hint against what the forecasts around it have missed so far.
//
// A hint can be a little off in one direction for long; the guard notices only when the biases of single points have
// used up their slack. The nudge adds up the residuals y - p of all forecasts, under hats of width 1, 1/2 and 1/4, and
// multiplies the odds of the next hint by exp(strength * the sums there): an integral controller. It promises nothing;
// the guard does.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace truecast {

struct Nudge {
    static constexpr std::size_t levels = 3, hats = 2 + 3 + 5;
    static constexpr double furthest = 2.0 * levels;  // shift of log odds
    std::array<double, hats> misses{};                // level by level
    double variance = 0.0;  // sum of p (1 - p): what the squared sum of calibrated residuals is like

    double lag = 0.0;  // how many outcomes were outstanding when forecasts were made, the last 64 or so

    // Falls like 1 / sqrt(rounds), so that what it costs in sharpness does, as if 800 coins had gone before; and with
    // the lag, since a correction that acts late must be gentle, or it swings.
    double strength() const { return 0.5 / (std::sqrt(200.0 + variance) * (1.0 + std::sqrt(lag))); }

    // A forecast was made while so many others were outstanding.
    void wait(std::int64_t late) { lag += (static_cast<double>(late) - lag) / 64.0; }

    // Calls use(k, weight) for the two hats of each level over x.
    template <typename Use>
    static void over(double x, Use use) {
        std::size_t first = 0;
        for (std::size_t cells = 1; cells < std::size_t{1} << levels; cells *= 2) {
            const double at = x * static_cast<double>(cells);
            const std::size_t k = std::min(static_cast<std::size_t>(at), cells - 1);
            const double part = at - static_cast<double>(k);
            use(first + k, 1.0 - part);
            use(first + k + 1, part);
            first += cells + 1;
        }
    }

    // The sums may have been learned while the lag was larger: then the shift is limited here.
    double apply(double hint) const {
        double sum = 0.0;
        over(hint, [&](std::size_t k, double weight) { sum += weight * misses[k]; });
        const double odds = hint * std::exp(std::min(std::max(strength() * sum, -furthest), furthest));
        return odds / (1.0 - hint + odds);
    }

    // No sum grows beyond what shifts the log odds by 2: where the shift cannot help, it must not grow for ever.
    void learn(double p, bool y) {
        const double most = 2.0 / strength(), residual = static_cast<double>(y) - p;
        over(p, [&](std::size_t k, double weight) {
            misses[k] = std::min(std::max(misses[k] + weight * residual, -most), most);
        });
        variance += p * (1.0 - p);
    }
};

}  // namespace truecast

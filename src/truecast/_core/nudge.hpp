// A nudge: shift each hint against what the forecasts around it have missed so far.
//
// A hint can be a little off in one direction for long; the guard notices only when the energy of
// the residuals has used up its budget. The nudge multiplies the odds of the next hint by
// exp(strength * the field there): an integral controller. Where forecasts are right, the energy
// stays below the sum of prices and the nudge is weak; where something is wrong, both grow. It
// promises nothing; the guard does.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hints.hpp"

namespace truecast {

struct Nudge {
    // How strong it is, and as if how many outcomes had been without energy before.
    struct Drive {
        double gain, before;
    };
    // Half of the gain: right forecasts lose a third less, and 14 streams keep an eighth more of
    // smooth error; twice of it: half more, and an eighth less. With 500, 1,000, 2,000 before,
    // right forecasts lose .16, .12, .08 % in 2,000 rounds; on real streams the median is the same
    // within .005 %.
    static constexpr Drive of_two{0.25, 1000.0};
    // Errors of several classes add up, also those that are due to chance: later, but then stronger
    // (docs/classes.md, section 6).
    static constexpr Drive of_many{1.0, 10000.0};

    Drive drive = of_two;
    double variance = 0.0, prices = 0.0, lag = 0.0;

    // Energy over variance counts up to here. 1 costs broken models up to .8 %; 8 changes no stream
    // by .02 %.
    static constexpr double most_excess = 2.0;
    // Shift of log odds. 1 costs broken models up to .2 %; 4 changes no stream by .01 %.
    static constexpr double furthest = 2.0;
    // While an outcome is awaited, at most 1 / caution of a miss is corrected by others. 4 or so
    // would do if outcomes were independent; those of neighbours resemble each other. From 20 to 80
    // flights lose .3 % to nothing by nudging, and the certificate grows by a fifth.
    static constexpr double caution = 30.0;
    // A smaller shift ends where the field is nearly the same: to look there too changes no stream
    // by .02 %.
    static constexpr double near = 0.125;

    // A forecast was made while `late` others were outstanding.
    void wait(std::int64_t late) { lag += (static_cast<double>(late) - lag) / 64.0; }

    // An outcome came. `price` is p (1 - p) K(k, k) of one field. `effect` >= 1 is the design
    // effect: how many outcomes are worth one, since they are about one event, say.
    void learn(double price, double effect = 1.0) {
        prices += price;
        variance += price * effect;
    }

    // How far the log odds move for one unit of the field, the energy being that of the same field.
    //
    // If n outcomes always come as one, field and energy are n and n * n times what they would be
    // if the one was counted once, and the variance is n * n times as well: with `before` in the
    // same units, an event moves forecasts as a single outcome would.
    double strength(double energy) const {
        const double effect = prices > 0.0 ? variance / prices : 1.0;
        const double scale = drive.before * effect * effect + variance;
        const double excess = hints::clip(energy / scale, 0.0, most_excess);
        const double at_once = drive.gain * excess / std::sqrt(scale);
        return at_once / (1.0 + caution * lag * at_once);
    }

    // field(p) is Phi_0 at the knot nearest to p. It is read at the hint and, if the shift is
    // large, where that leads to: residuals are added there, and if only the field at the hint
    // counted, they might never reach it. Hints of exactly 0 and 1 stay.
    template <typename Phi>
    double apply(double hint, double energy, Phi&& field) const {
        if (!(energy > 0.0 && hint > 0.0 && hint < 1.0)) return hint;
        const double per_unit = strength(energy), here = field(hint);
        const double first = shift(per_unit * here), p = shifted(hint, first);
        if (std::fabs(first) < near) return p;
        return shifted(hint, shift(per_unit * 0.5 * (here + field(p))));
    }

    Entries entries() {
        return {{"variance", variance, 0.0, huge,
                 "sum of price * effect: the mean energy of forecasts that are right"},
                {"prices", prices, 0.0, huge, "sum of price"},
                {"lag", lag, 0.0, most_rounds,
                 "outcomes outstanding when a forecast is made, over the last 64 or so"}};
    }
    bool settle() const { return variance >= prices * (1.0 - 1e-9); }

  private:
    static double shift(double wanted) { return hints::clip(wanted, -furthest, furthest); }
    static double shifted(double p, double by) {
        const double odds = p * std::exp(by);
        return odds / (1.0 - p + odds);
    }
};

}  // namespace truecast

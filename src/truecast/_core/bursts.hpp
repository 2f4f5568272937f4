// How much of an observation an outcome is, where outcomes come together.
//
// 170 forecasts of one game that resolve at its end are one observation, not 170; a thousand coins of one day are a
// thousand. A burst is what resolves without a forecast in between. If the residuals r of n outcomes of a burst have the
// correlation rho, the variance of their sum is that of independent ones times 1 + (n - 1) rho: the design effect. So
//     rho ~ Sum over bursts of ((Sum r)^2 - Sum r^2)  /  Sum over bursts of (n - 1) Sum r^2,    weight = 1 / effect.
// Proves nothing; O(1) an outcome. Spelled out in truecast/reference/hints.py, in the same order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hints.hpp"

namespace truecast::hints {

class Bursts {
  public:
    // A forecast was made: what resolves from now on is another burst.
    void issued() {
        if (size > 0.0) close();
        waiting = std::min(waiting + 1.0, most_rounds);
    }

    // The outcome of a forecast is awaited no longer.
    void given_up() { waiting = std::max(waiting - 1.0, 0.0); }

    // The weight of the outcome that resolves now, with `residual` = outcome - forecast. If its event has a name, `mates`
    // is the number of forecasts of that event, this one included, and they are one observation together; else it is 0.
    double weight(double residual, std::int64_t mates) {
        const double part = mates > 0 ? 1.0 / static_cast<double>(mates) : among_others(residual);
        given_up();
        heard = recent * heard + 1.0;
        weighed = recent * weighed + part;
        return part;
    }

    // How many outcomes make an observation, lately: at least 1.
    double effect() const { return weighed > 0.0 ? std::max(heard / weighed, 1.0) : 1.0; }

    std::vector<Field> fields() {
        return {{"pairs", pairs, -huge, huge},
                {"most_pairs", most_pairs, 0.0, huge},
                {"outcomes", outcomes, 0.0, most_rounds},
                {"bursts", bursts, 0.0, most_rounds},
                {"larger_outcomes", larger_outcomes, 0.0, most_rounds},
                {"larger_bursts", larger_bursts, 0.0, 1.0 / fade + 1.0},
                {"doubt", doubt, least_doubt, 1.0},
                {"size", size, 0.0, most_rounds},
                {"sum", sum, -most_rounds, most_rounds},
                {"squares", squares, 0.0, most_rounds},
                {"waiting", waiting, 0.0, most_rounds},
                {"heard", heard, 0.0, most_rounds},
                {"weighed", weighed, 0.0, most_rounds}};
    }

    // Whether the numbers fit together.
    bool settle() const {
        const auto at_most = [](double a, double b) { return a <= b * 1.000001 + 1e-9; };
        return at_most(std::fabs(pairs), most_pairs) && at_most(bursts, outcomes) &&
               at_most(2.0 * larger_bursts, larger_outcomes) && at_most(larger_outcomes, outcomes) &&
               at_most(sum * sum, size * squares) && at_most(squares, size) && at_most(weighed, heard) &&
               size == std::floor(size) && waiting == std::floor(waiting) && bursts == std::floor(bursts) &&
               outcomes == std::floor(outcomes);
    }

  private:
    double among_others(double residual) {
        size += 1.0;
        sum += residual;
        squares += residual * residual;
        const double all = most_pairs + (size - 1.0) * squares;
        const double seen = all > 0.0 ? std::max((pairs + sum * sum - squares) / all, 0.0) : 0.0;
        return 1.0 / (1.0 + (expected() - 1.0) * std::min(seen + doubt, 1.0));
    }

    // How large this burst will be: as large as bursts usually are. From the second outcome on it is not one of those
    // with a single outcome; if there were none at all, it may be all that is awaited.
    double expected() const {
        if (size == 1.0) return bursts > 0.0 ? outcomes / bursts : 1.0;
        if (larger_bursts > 0.0) return std::max(size, larger_outcomes / larger_bursts);
        return bursts > 0.0 ? size : size + std::max(waiting - 1.0, 0.0);
    }

    // One burst may look independent by chance; that k bursts of n outcomes do has a chance of about n^(-k/2) if they
    // depend on each other completely.
    void close() {
        outcomes = std::min(outcomes + size, most_rounds);
        bursts = std::min(bursts + 1.0, most_rounds);
        if (size > 1.0) {
            larger_outcomes += size - fade * larger_outcomes;
            larger_bursts += 1.0 - fade * larger_bursts;
            pairs += sum * sum - squares - fade * pairs;
            most_pairs += (size - 1.0) * squares - fade * most_pairs;
            doubt = std::max(doubt / std::sqrt(size), least_doubt);
        }
        size = sum = squares = 0.0;
    }

    static constexpr double fade = 1.0 / 32.0;  // of what older bursts say: forecasts get better
    static constexpr double recent = 1.0 - 1.0 / 1024.0;
    static constexpr double least_doubt = 1e-12;
    double pairs = 0.0, most_pairs = 0.0;                    // products of residuals, and what they are at most
    double outcomes = 0.0, bursts = 0.0;                     // of all bursts
    double larger_outcomes = 0.0, larger_bursts = 0.0;       // of those with more than one outcome, faded
    double doubt = 1.0;
    double size = 0.0, sum = 0.0, squares = 0.0;             // of the present one
    double waiting = 0.0;                                    // forecasts whose outcomes are awaited
    double heard = 0.0, weighed = 0.0;                       // outcomes and their weights, faded
};

}  // namespace truecast::hints

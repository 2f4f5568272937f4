// How much of an observation an outcome is, where outcomes come together.
//
// 170 forecasts of one game that resolve at its end are one observation, not 170; a thousand coins
// of one day are a thousand. A burst is what resolves without a forecast in between. If the
// residuals of its n outcomes have the correlation rho, the variance of their sum is that of
// independent ones times 1 + (n - 1) rho. So an outcome has the weight 1 / max(1, (n - 1) rho).
//
// What is common to a burst shows in how much its mean residual differs from that of the burst
// before: a bias that stays is no chance, and must be learned. For means m, m' of n, n' outcomes
// with the variance v and the correlation rho,
//     E (m - m')^2 = (1/n + 1/n') v + 2 rho v (nearly),    so    n (m - m')^2 / (1/n + 1/n') - n v
//     has the mean (h - 1) n rho v (nearly),  h the harmonic mean of n and n'.
// rho is the sum of the former over bursts by that of (h - 1) n v, with the sum of squares for n v;
// old bursts fade. It proves nothing; O(1) an outcome. Spelled out in truecast/reference/hints.py,
// in the same order.
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

    // The weight of the outcome that resolves now, with `residual` = outcome - forecast. If its
    // event has a name, `mates` is the number of forecasts of that event, this one included, and
    // they are one observation together; else it is 0.
    double weight(double residual, std::int64_t mates) {
        const double part = mates > 0 ? 1.0 / static_cast<double>(mates) : among_others(residual);
        given_up();
        heard = recent * heard + 1.0;
        weighed = recent * weighed + part;
        return part;
    }

    // How many outcomes make an observation, lately: at least 1.
    double effect() const { return weighed > 0.0 ? std::max(heard / weighed, 1.0) : 1.0; }

    Entries entries() {
        return {{"pairs", pairs, -huge, huge, "how bursts differed from those before them, faded"},
                {"most_pairs", most_pairs, 0.0, huge,
                 "what that would be if a burst was one observation"},
                {"outcomes", outcomes, 0.0, most_rounds, "of all bursts"},
                {"bursts", bursts, 0.0, most_rounds, "that have ended"},
                {"larger_outcomes", larger_outcomes, 0.0, most_rounds,
                 "of bursts with more than one outcome, faded"},
                {"larger_bursts", larger_bursts, 0.0, 1.0 / fade + 1.0,
                 "with more than one outcome, faded"},
                {"before_size", before_size, 0.0, most_rounds,
                 "outcomes of the last burst with more than one"},
                {"before_mean", before_mean, -1.0, 1.0, "residual of that burst"},
                {"doubt", doubt, least_doubt, 1.0, "that bursts differ as little as they seem to"},
                {"size", size, 0.0, most_rounds, "outcomes of the present burst"},
                {"sum", sum, -most_rounds, most_rounds, "of its residuals"},
                {"squares", squares, 0.0, most_rounds, "of its residuals, summed"},
                {"waiting", waiting, 0.0, most_rounds, "forecasts whose outcomes are awaited"},
                {"heard", heard, 0.0, most_rounds, "outcomes, faded"},
                {"weighed", weighed, 0.0, most_rounds, "their weights, faded"}};
    }

    // Whether the numbers fit together.
    bool settle() const {
        const auto at_most = [](double a, double b) { return a <= b * 1.000001 + 1e-9; };
        const auto whole = [](double a) { return a == std::floor(a); };
        return at_most(bursts, outcomes) && at_most(2.0 * larger_bursts, larger_outcomes) &&
               at_most(larger_outcomes, outcomes) && at_most(sum * sum, size * squares) &&
               at_most(squares, size) && at_most(weighed, heard) &&
               at_most(before_size, outcomes) && before_size != 1.0 && whole(before_size) &&
               whole(size) && whole(waiting) && whole(bursts) && whole(outcomes);
    }

  private:
    struct Pairs {
        double found, most;
    };

    double among_others(double residual) {
        size += 1.0;
        sum += residual;
        squares += residual * residual;
        const Pairs now = compared();
        const double all = most_pairs + now.most;
        const double seen = all > 0.0 ? std::max((pairs + now.found) / all, 0.0) : 0.0;
        return 1.0 / std::max((expected() - 1.0) * std::min(seen + doubt, 1.0), 1.0);
    }

    // The present burst with the one before, or with 0 if it is the first.
    Pairs compared() const {
        if (size < 2.0) return {0.0, 0.0};
        const bool first = before_size == 0.0;
        const double spread = first ? 1.0 / size : 1.0 / size + 1.0 / before_size;
        const double alike = first ? size : 2.0 / spread, off = sum / size - before_mean;
        return {size * (off * off) / spread - squares, (alike - 1.0) * squares};
    }

    // How large this burst will be: as large as bursts usually are. From the second outcome on it
    // is not one of those with a single outcome; if there were none at all, it may be all that is
    // awaited.
    double expected() const {
        if (size == 1.0) return bursts > 0.0 ? outcomes / bursts : 1.0;
        if (larger_bursts > 0.0) return std::max(size, larger_outcomes / larger_bursts);
        return bursts > 0.0 ? size : size + std::max(waiting - 1.0, 0.0);
    }

    // Means of two bursts may be alike by chance; that those of k pairs are has a chance of about
    // n^(-k/2) if all of a burst depends on one thing.
    void close() {
        outcomes = std::min(outcomes + size, most_rounds);
        bursts = std::min(bursts + 1.0, most_rounds);
        if (size > 1.0) {
            larger_outcomes += size - fade * larger_outcomes;
            larger_bursts += 1.0 - fade * larger_bursts;
            const Pairs now = compared();
            pairs += now.found - fade * pairs;
            most_pairs += now.most - fade * most_pairs;
            if (before_size > 0.0) doubt = std::max(doubt / std::sqrt(size), least_doubt);
            before_size = size;
            before_mean = std::min(std::max(sum / size, -1.0), 1.0);
        }
        size = sum = squares = 0.0;
    }

    static constexpr double fade = 1.0 / 32.0;  // of what older bursts say: forecasts get better
    static constexpr double recent = 1.0 - 1.0 / 1024.0;
    static constexpr double least_doubt = 1e-12;
    double pairs = 0.0, most_pairs = 0.0;
    double outcomes = 0.0, bursts = 0.0;
    double larger_outcomes = 0.0, larger_bursts = 0.0;
    double before_size = 0.0, before_mean = 0.0;
    double doubt = 1.0;
    double size = 0.0, sum = 0.0, squares = 0.0;
    double waiting = 0.0;
    double heard = 0.0, weighed = 0.0;
};

}  // namespace truecast::hints

// Offsets of groups: how far the hints for a group's rounds are off on the logit scale, learned for
// each group, and how much groups differ, learned over all groups together.
//
// A member of a mixture believes that offsets of groups are spread with one variance around 0: it
// shrinks what it sees of a group accordingly. One more member says the hint. Members are weighted
// by how likely they made all outcomes so far (Bayes, with a fixed share), so where groups do not
// differ the hint stands, and where they do a new group is corrected by its first outcomes. Nothing
// is promised: the guard does that. The cost is O(groups of the round), and the same calls give the
// same bits.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "hints.hpp"

namespace truecast {

namespace offsets {

constexpr std::size_t scales = 3;  // members that correct
// Standard deviations of offsets that they believe in, by factors of 2.5: against the right one,
// made groups of 50 rows lose up to .3 % of Brier, of 200 rows .1 %, where they would gain 1 to 40
// %.
constexpr std::array<double, scales> spread{0.25, 0.6, 1.5};
// An offset's variance stays above this part of what it was at first, so that groups may change:
// where 20 groups change half way through 100,000 rounds, 8.1 % are gained instead of 6.7 %; groups
// that never change lose .01 %.
constexpr double fresh = 0.02;
// Of all weight, handed out anew in a round, a third of what hints.Mix does. Ten times as much
// costs .1 %, a tenth saves .01 %.
constexpr double share = 0.0001;
// This many outstanding outcomes of a group halve what one of them teaches: they resemble each
// other, and an offset that follows them comes too late. On flights 250 late 8 gains a little, 25
// nothing, and without it offsets do harm.
constexpr double patience = 10.0;
constexpr double farthest = hints::farthest;  // of logits and offsets

}  // namespace offsets

// What the members think of one group. Floats: there may be very many groups.
struct Offset {
    using Row = std::array<float, offsets::scales>;
    Row mean{}, variance = prior();

    static constexpr Row prior() { return scaled(1.0); }
    static constexpr Row least() { return scaled(offsets::fresh); }

    // Whether numbers that were written to it can be those of a group.
    bool settle() const {
        const Row low = least(), high = prior();
        for (std::size_t j = 0; j < offsets::scales; ++j) {
            if (!(std::fabs(mean[j]) <= offsets::farthest)) return false;
            if (!(variance[j] >= low[j] && variance[j] <= high[j])) return false;
        }
        return true;
    }

  private:
    static constexpr Row scaled(double by) {
        Row all{};
        for (std::size_t j = 0; j < offsets::scales; ++j)
            all[j] = static_cast<float>(by * offsets::spread[j] * offsets::spread[j]);
        return all;
    }
};

// Offsets of a round's groups add. Each is learned given the others: of an outcome a group takes
// the part that its variance has in that of the sum (a Kalman filter that forgets how offsets are
// correlated). No group twice in a round.
class Offsets {
  public:
    // What to remember a forecast by until its outcome comes, if that is late: what the
    // members said, from 0 to
    // 1. `apply` and `learn` do not look at them where the hint is 0 or 1 or there is no group.
    using Notes = std::array<double, offsets::scales>;

    // Hints of exactly 0 and 1 are left alone: they say that no offset matters.
    double apply(double hint, const Offset* const* groups, std::size_t n, Notes& kept) const {
        if (n == 0 || !(hint > 0.0 && hint < 1.0)) return hint;
        const double z = hints::logit(hint);
        const auto at = [&](std::size_t i) -> const Offset& { return *groups[i]; };
        double p = weights[0] * hint;
        for (std::size_t j = 0; j < offsets::scales; ++j) {
            const double said = hints::sigmoid(Sum(j, n, at).of(z));
            p += weights[j + 1] * said;
            kept[j] = said;
        }
        return std::min(p, 1.0);
    }

    // The hint and what was kept are those of `apply`. `weight` in (0, 1]: how much of an
    // observation the outcome is. `lag`: how many outcomes are outstanding when forecasts are made,
    // lately; of these a group has its part of all rounds, `part`. Offsets are learned from what
    // the members say of the hint now; the members are judged by what they said then: by what they
    // say now, one that follows every swing would seem to have foreseen it. `at_once`: both are the
    // same, as nothing was learned in between.
    void learn(double hint, Offset* const* groups, const double* part, std::size_t n, bool y,
               double weight, const Notes& kept, double lag, bool at_once) {
        if (n == 0 || !(hint > 0.0 && hint < 1.0)) return;
        const double late = weight * lag / offsets::patience;
        const double z = at_once ? 0.0 : hints::logit(hint);
        const auto at = [&](std::size_t i) -> Offset& { return *groups[i]; };
        Weights chance;
        chance[0] = y ? hint : 1.0 - hint;
        for (std::size_t j = 0; j < offsets::scales; ++j) {
            const double said = kept[j];
            chance[j + 1] = y ? said : 1.0 - said;
            step(j, n, at, at_once ? said : hints::sigmoid(Sum(j, n, at).of(z)), y, weight, late,
                 part);
        }
        reweigh(chance, weight / (1.0 + late));
    }

    // The same for rows of probabilities: in each group, every class has an offset, half of which
    // is added to its logarithm. The halves of two classes are each other's negatives, so that this
    // is `apply`. at(i, k): the offset of the class k in the i-th of n groups. A class with a hint
    // of 0 keeps it. `said`: a row of each member, to be kept.
    template <typename At>
    void apply_row(const double* hint, std::size_t classes, std::size_t n, At at, double* p,
                   double* said) const {
        for (std::size_t k = 0; k < classes; ++k) p[k] = weights[0] * hint[k];
        for (std::size_t j = 0; j < offsets::scales; ++j, said += classes) {
            say_row(j, hint, classes, n, at, said);
            for (std::size_t k = 0; k < classes; ++k) p[k] += weights[j + 1] * said[k];
        }
        for (std::size_t k = 0; k < classes; ++k) p[k] = std::min(p[k], 1.0);  // rounding
    }

    // As `learn`, of the class that happened. The curvature of the log loss along one class is at
    // most 2 p (1 - p) beside steps along the others, and an offset counts by half: so the steps of
    // two classes hold for any number.
    template <typename At>
    void learn_row(const double* hint, std::size_t classes, std::size_t n, At at,
                   const double* part, std::size_t y, double weight, const double* kept, double lag,
                   bool at_once) {
        for (std::size_t k = 0; k < classes; ++k)
            if (!(hint[k] < 1.0)) return;
        const double late = weight * lag / offsets::patience;
        std::vector<double> now(at_once ? 0 : classes);
        Weights chance;
        chance[0] = hint[y];
        for (std::size_t j = 0; j < offsets::scales; ++j, kept += classes) {
            chance[j + 1] = kept[y];
            if (!at_once) say_row(j, hint, classes, n, at, now.data());
            const double* const q = at_once ? kept : now.data();
            for (std::size_t k = 0; k < classes; ++k) {
                if (!(hint[k] > 0.0)) continue;
                const auto own = [&](std::size_t i) -> Offset& { return at(i, k); };
                step(j, n, own, q[k], k == y, weight, late, part);
            }
        }
        reweigh(chance, weight / (1.0 + late));
    }

    Entries entries() {
        return {
            {"weights", row(weights), 0.0, 1.0, "of the hint, then of the members that correct"}};
    }
    // Whether numbers that were written to it fit together.
    bool settle() const {
        double total = 0.0;
        for (const double w : weights) total += w;
        return std::fabs(total - 1.0) < 1e-6;
    }

  private:
    using Weights = std::array<double, offsets::scales + 1>;

    // The sum of the groups' offsets as member j sees it.
    struct Sum {
        double mean = 0.0, variance = 0.0;

        template <typename At>
        Sum(std::size_t j, std::size_t n, At at) {
            for (std::size_t i = 0; i < n; ++i) {
                mean += at(i).mean[j];
                variance += at(i).variance[j];
            }
        }

        double of(double z) const {
            return hints::clip(z + mean, -offsets::farthest, offsets::farthest);
        }
    };

    // What member j makes of a row, normalised. Odds of a class against the most probable one are
    // cut off as those of two are, before and after.
    template <typename At>
    static void say_row(std::size_t j, const double* hint, std::size_t classes, std::size_t n,
                        At at, double* q) {
        const auto cut_off = [&](const double* from) {
            static const double least = std::exp(-offsets::farthest);
            const double lowest = least * *std::max_element(from, from + classes);
            for (std::size_t k = 0; k < classes; ++k)
                q[k] = hint[k] > 0.0 ? std::max(from[k], lowest) : 0.0;
        };
        cut_off(hint);
        for (std::size_t k = 0; k < classes; ++k) {
            const Sum sum(j, n, [&](std::size_t i) -> const Offset& { return at(i, k); });
            q[k] *= std::exp(0.5 * sum.of(0.0));
        }
        cut_off(q);
        double total = 0.0;
        for (std::size_t k = 0; k < classes; ++k) total += q[k];
        for (std::size_t k = 0; k < classes; ++k) q[k] = std::min(q[k] / total, 1.0);
    }

    // Member j said p, and the outcome was y: its offsets of the groups.
    template <typename At>
    static void step(std::size_t j, std::size_t n, At at, double p, bool y, double weight,
                     double late, const double* part) {
        constexpr Offset::Row least = Offset::least();
        const double bend = weight * p * (1.0 - p), miss = weight * ((y ? 1.0 : 0.0) - p);
        const double rate = 1.0 / (1.0 + bend * Sum(j, n, at).variance);
        for (std::size_t i = 0; i < n; ++i) {
            float &mean = at(i).mean[j], &variance = at(i).variance[j];
            const double v = variance,
                         by = late > 0.0 ? v * rate / (1.0 + late * part[i]) : v * rate;
            mean = static_cast<float>(
                hints::clip(mean + by * miss, -offsets::farthest, offsets::farthest));
            variance = std::max(static_cast<float>(v - by * v * bend), least[j]);
        }
    }

    void reweigh(Weights& chance, double weight) {
        double total = 0.0;
        for (std::size_t j = 0; j < chance.size(); ++j) {
            chance[j] = weights[j] * (weight < 1.0 ? std::pow(chance[j], weight) : chance[j]);
            total += chance[j];
        }
        if (!(total > 1e-300)) return;  // nobody thought it possible
        const Weights anew = start();
        const double part = offsets::share * weight, scale = (1.0 - part) / total;
        for (std::size_t j = 0; j < chance.size(); ++j)
            weights[j] = scale * chance[j] + part * anew[j];
    }

    // The hint starts with half of the weight.
    static constexpr Weights start() {
        Weights all{0.5};
        for (std::size_t j = 0; j < offsets::scales; ++j) all[j + 1] = 0.5 / offsets::scales;
        return all;
    }

    Weights weights = start();
};

}  // namespace truecast

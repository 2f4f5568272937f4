// Evidence against forecasts, round by round: bets that pay where the forecasts are off
// (docs/monitor.md). If each outcome is 1 with the probability that was forecast, no bet wins on
// average, whatever it looks at before the outcome.
//
// A bet tilts the odds of a forecast p by a factor a = 1 + lean, which gives another probability
// q = p a / (1 + p lean); it multiplies what is staked by q / p if the outcome is 1, and by
// (1 - q) / (1 - p) if it is 0. A new stake is added in every round, so that a change is found
// whenever it comes: mass <- (mass + stake) * factor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "arc.hpp"
#include "entries.hpp"
#include "stakes.hpp"

namespace truecast::monitor {

// The line of forecasts is cut into rows, narrow near 0 and 1. In a row each fixed bet has one
// lean.
constexpr std::size_t rows = 256, places = 8;
constexpr std::array<double, 4> offsets{-0.5, -0.2, 0.2, 0.5};    // in log-odds
constexpr std::array<double, 2> slopes{-0.25, 0.35};              // times the log-odds of p
constexpr std::array<double, 2> dips{-0.6, 0.6};                  // in log-odds, at one place
constexpr std::array<double, 2> memories{500.0, 5000.0};          // rounds that learned bets recall
constexpr std::array<std::size_t, 3> finenesses{1, 4, 16};        // cells that they tell apart
constexpr std::array<double, 2> lapses{1.0 / 32.0, 1.0 / 512.0};  // how often a coin replaces p

constexpr std::size_t fixed_bets = offsets.size() + slopes.size() + dips.size() * places;
constexpr std::size_t learned_bets = memories.size() * finenesses.size();
constexpr std::size_t leaning = fixed_bets + learned_bets;
constexpr std::size_t bets = leaning + lapses.size();
constexpr std::size_t cells = 2 * (1 + 4 + 16);  // of all learned bets

// What part of a stake goes to each bet: these sum to 1. A bet that leans little gets more: its
// changes take so long to find that stakes made meanwhile count, and log(1 / part) is paid out of
// what is left (docs/monitor.md, section 2).
constexpr std::array<double, 4> to_offsets{0.1, 0.14, 0.14, 0.1};
constexpr std::array<double, 2> to_slopes{0.17, 0.1};
constexpr double to_a_place = 0.14 / 16.0;
constexpr std::array<double, 6> to_learned{0.03, 0.03, 0.02, 0.01, 0.005, 0.005};
constexpr double to_a_lapse = 0.005;

constexpr double calm = 20.0;           // variance that a learned bet sees before it leans
constexpr double farthest_logit = 5.0;  // beyond it slopes lean no further
constexpr double plenty = 1e200;        // evidence is scaled down when it exceeds this
constexpr double for_certain = 1e300;   // a forecast of 0 or 1 was wrong
constexpr std::size_t smooth_cells = 512;

// From 0 to 1, increasing, like the angle on the arc.
inline double stretch(double p) {
    return p <= 0.5 ? std::sqrt(0.5 * p) : 1.0 - std::sqrt(0.5 * (1.0 - p));
}

inline double unstretch(double u) {
    return u <= 0.5 ? 2.0 * u * u : 1.0 - 2.0 * (1.0 - u) * (1.0 - u);
}

struct Table {
    std::array<std::array<double, fixed_bets>, rows> lean;
    std::array<std::array<double, bets>, places> at;  // 1 where a bet is about this place
    std::array<double, bets> share;                   // of a stake

    Table() {
        for (std::size_t r = 0; r < rows; ++r) {
            const double p = unstretch((static_cast<double>(r) + 0.5) / static_cast<double>(rows));
            const double logit =
                std::clamp(std::log(p / (1.0 - p)), -farthest_logit, farthest_logit);
            std::size_t k = 0;
            for (const double by : offsets) lean[r][k++] = std::expm1(by);
            for (const double by : slopes) lean[r][k++] = std::expm1(by * logit);
            for (const double by : dips)
                for (std::size_t place = 0; place < places; ++place)
                    lean[r][k++] = place == r * places / rows ? std::expm1(by) : 0.0;
        }
        for (std::size_t place = 0; place < places; ++place) {
            at[place].fill(1.0);
            const std::size_t first = offsets.size() + slopes.size();
            for (std::size_t k = first; k < fixed_bets; ++k)
                at[place][k] = (k - first) % places == place ? 1.0 : 0.0;
        }
        auto next = std::copy(to_offsets.begin(), to_offsets.end(), share.begin());
        next = std::copy(to_slopes.begin(), to_slopes.end(), next);
        next = std::fill_n(next, dips.size() * places, to_a_place);
        next = std::copy(to_learned.begin(), to_learned.end(), next);
        std::fill_n(next, lapses.size(), to_a_lapse);
    }
};

inline const Table& table() {
    static const Table made;
    return made;
}

// What came of a forecast. `never`: nobody knows, and it is counted at its least.
enum class Came : std::uint8_t { zero = 0, one = 1, never = 2 };

// A forecast, and what all accounts need to know of it.
struct Forecast {
    double p;  // kept away from 0 and 1 by less than a rounding error
    std::size_t row;
    std::int64_t clock;

    Forecast(double said, std::int64_t clock_)
        : p(std::clamp(said, 0x1p-60, 1.0 - 0x1p-53)),
          row(std::min(rows - 1, static_cast<std::size_t>(stretch(p) * static_cast<double>(rows)))),
          clock(clock_) {}
    std::size_t place() const { return row * places / rows; }
};

// What an alarm says, or would say now.
struct Finding {
    std::int64_t round = 0;  // the number of the forecast, from 0, that it came with
    double evidence = 0.0;
    double since = 0.0, earliest = 0.0, latest = 0.0;  // numbers of forecasts
    std::int64_t bet = 0;                              // the fixed bet, or lapse, that has won most
    double share = 0.0;                                // of what such bets have won
    double miss = 0.0, count = 0.0, said = 0.0;        // since then, where the bet is about: sums

    Entries entries() {
        return {{"round", round, 0, most_rounds, "of the last alarm: the number of its forecast"},
                {"found", evidence, 0, largest, "the evidence then"},
                {"since", since, 0, most_rounds, "when it began: number of a forecast, estimated"},
                {"earliest", earliest, 0, most_rounds, "of the interval of that estimate"},
                {"latest", latest, 0, most_rounds, "of the interval of that estimate"},
                {"bet", bet, 0, static_cast<double>(bets - 1), "the bet that had won most"},
                {"part", share, 0, 1, "what part of the evidence that was"},
                {"missed", miss, -most_rounds, most_rounds, "outcomes less forecasts since then"},
                {"counted", count, 0, most_rounds, "forecasts since then"},
                {"forecast", said, 0, most_rounds, "sum of these forecasts"}};
    }
};

// The evidence of everyone's forecasts, or of a group's.
struct Account {
    using PerBet = std::array<double, bets>;

    // What stakes have become; and sums over stakes, weighted by what they have become: of their
    // ages and squared ages, and of misses, rounds and forecasts since, where the bet is about.
    PerBet mass{}, age{}, age2{}, miss{}, count{}, said{};
    PerBet scaled{};               // how often the bet's numbers were scaled down, stakes as well
    PerBet share = table().share;  // of a stake, scaled so: follows from `scaled`
    std::array<double, cells> pull{}, weight{};  // of learned bets: misses and variances, fading
    std::int64_t rounds = 0, clock = 0, alarms = 0, refuted = 0;
    double peak = 0.0;
    Finding last;

    Entries entries() {
        const double most = 1e290;
        Entries all{
            {"rounds", rounds, 0, most_rounds, "outcomes bet on"},
            {"clock", clock, 0, most_rounds, "the number of the last forecast"},
            {"alarms", alarms, 0, most_rounds, "alarms so far"},
            {"refuted", refuted, 0, most_rounds, "forecasts of 0 or 1 that were wrong"},
            {"peak", peak, 0, largest, "the most evidence there was"},
            {"mass", row(mass), 0, most, "of each bet: what its stakes have become"},
            {"age", row(age), 0, most, "of each bet: sum of mass times age of a stake"},
            {"age2", row(age2), 0, most, "of each bet: sum of mass times squared age"},
            {"miss", row(miss), -most, most, "of each bet: sum of mass times misses since"},
            {"count", row(count), 0, most, "of each bet: sum of mass times rounds since"},
            {"said", row(said), 0, most, "of each bet: sum of mass times forecasts since"},
            {"scaled", row(scaled), 0, most_rounds, "of each bet: scaled by 2^-200 so often"},
            {"pull", row(pull), -1e4, 1e4, "of learned bets, a cell each: misses, fading"},
            {"weight", row(weight), 0, 1e4, "of learned bets, a cell each: variances, fading"}};
        return joined(all, last.entries());
    }

    double total() const {
        double even = 0.0, odd = 0.0;
        for (std::size_t k = 0; k < bets; k += 2) even += mass[k], odd += mass[k + 1];
        return even + odd;
    }

    // Bet on a forecast, with a new stake, and see what came of it.
    void play(const Forecast& of, Came came, double stake) {
        PerBet factor;
        factors(of, came, factor);
        const PerBet& at = table().at[of.place()];
        const bool known = came != Came::never;
        const double off = (came == Came::one ? 1.0 : 0.0) - of.p;
        const double gap = static_cast<double>(std::max<std::int64_t>(0, of.clock - clock));
        for (std::size_t k = 0; k < bets; ++k) {
            const double old = mass[k], now = old + stake * share[k], f = factor[k];
            const double here = known ? at[k] * now : 0.0;
            age2[k] = (age2[k] + gap * (2.0 * age[k] + gap * old)) * f;
            age[k] = (age[k] + gap * old) * f;
            miss[k] = (miss[k] + here * off) * f;
            count[k] = (count[k] + here) * f;
            said[k] = (said[k] + here * of.p) * f;
            mass[k] = now * f;
        }
        if (known) learn(of, off);
        clock = std::max(clock, of.clock);
        ++rounds;
        if (total() > plenty)
            for (std::size_t k = 0; k < bets; ++k)
                if (mass[k] > 0x1p-6 * plenty) scale_down(k);
    }

    // All but what the learned bets recall.
    void restart() {
        for (PerBet* each : {&mass, &age, &age2, &miss, &count, &said, &scaled}) each->fill(0.0);
        share = table().share;
    }

    // What follows from saved numbers.
    void settle() {
        for (std::size_t k = 0; k < bets; ++k)
            share[k] = table().share[k] * (scaled[k] > 5.0 ? 0.0 : std::pow(0x1p-200, scaled[k]));
    }

    Finding look(double evidence) const {
        Finding found;
        found.round = clock;
        found.evidence = evidence;
        // Learned bets adapt, so their stakes do not tell since when. What is scaled down oftener
        // outweighs all else.
        const auto tells = [](std::size_t k) { return k < fixed_bets || k >= leaning; };
        std::size_t best = 0;
        for (std::size_t k = 0; k < bets; ++k)
            if (tells(k) &&
                (scaled[k] > scaled[best] || (scaled[k] == scaled[best] && mass[k] > mass[best])))
                best = k;
        double all = 0.0, ages = 0.0, squares = 0.0;
        for (std::size_t k = 0; k < bets; ++k)
            if (tells(k) && scaled[k] == scaled[best])
                all += mass[k], ages += age[k], squares += age2[k];
        found.bet = static_cast<std::int64_t>(best);
        const double now = static_cast<double>(clock);
        found.since = found.earliest = found.latest = now;
        if (!(all > 0.0)) return found;
        const double mean = ages / all,
                     spread = std::sqrt(std::max(0.0, squares / all - mean * mean));
        found.since = std::max(0.0, now - mean);
        found.earliest = std::max(0.0, now - mean - 2.0 * spread);
        found.latest = std::min(now, std::max(0.0, now - mean + 2.0 * spread));
        found.share = mass[best] / all;
        if (mass[best] > 0.0) {
            found.miss = miss[best] / mass[best];
            found.count = count[best] / mass[best];
            found.said = said[best] / mass[best];
        }
        return found;
    }

  private:
    // Calls `use` with the bet and the cell of every learned bet that a forecast falls into.
    template <typename Use>
    static void each_learned(const Forecast& of, Use use) {
        std::size_t first = 0, bet = 0;
        for (const double memory : memories)
            for (const std::size_t fineness : finenesses) {
                use(bet++, first + of.row * fineness / rows, memory);
                first += fineness;
            }
    }

    void factors(const Forecast& of, Came came, PerBet& factor) const {
        std::array<double, leaning> lean;
        const auto& fixed = table().lean[of.row];
        std::copy(fixed.begin(), fixed.end(), lean.begin());
        each_learned(of, [&](std::size_t bet, std::size_t cell, double) {
            const double by = std::clamp(pull[cell] / (weight[cell] + calm), -1.0, 1.0);
            lean[fixed_bets + bet] = by / (1.0 - 0.5 * by);  // about exp(by) - 1
        });
        const double p = of.p, if_one = came == Came::one ? 1.0 : 0.0;
        if (came == Came::never)
            for (std::size_t k = 0; k < leaning; ++k)
                factor[k] = (1.0 + std::min(0.0, lean[k])) / (1.0 + p * lean[k]);
        else
            for (std::size_t k = 0; k < leaning; ++k)
                factor[k] = (1.0 + if_one * lean[k]) / (1.0 + p * lean[k]);
        for (std::size_t k = 0; k < lapses.size(); ++k) {
            const double q = (1.0 - lapses[k]) * p + 0.5 * lapses[k];
            const double one = q / p, zero = (1.0 - q) / (1.0 - p);
            factor[leaning + k] =
                came == Came::never ? std::min(one, zero) : (came == Came::one ? one : zero);
        }
    }

    void learn(const Forecast& of, double off) {
        each_learned(of, [&](std::size_t, std::size_t cell, double memory) {
            const double keep = 1.0 - 1.0 / memory;
            pull[cell] = keep * pull[cell] + off;
            weight[cell] = keep * weight[cell] + of.p * (1.0 - of.p);
        });
    }

    void scale_down(std::size_t k) {
        for (PerBet* each : {&mass, &age, &age2, &miss, &count, &said, &share})
            (*each)[k] *= 0x1p-200;
        ++scaled[k];
    }
};

using Members = std::vector<std::uint32_t>;

inline const Members everyone{0};

// Rounds that are bet on one after the other: an account for everyone, 0, and one for each group.
struct Chain {
    std::int64_t rounds = 0;
    std::vector<Account> accounts = std::vector<Account>(1);
};

// All that a round changes, but for tickets.
struct Book {
    bool level = true;        // else: mean time
    double limit = 100.0;     // evidence that is an alarm
    bool of_classes = false;  // chain 0 is then of the class said to be likeliest, 1 + k of class k
    std::vector<Chain> chains;
    std::int64_t clock = 0;                           // forecasts so far
    std::int64_t rounds = 0;                          // outcomes bet on
    std::array<double, smooth_cells + 1> residual{};  // of forecasts near each multiple of 1/512
    double width = 0.0;      // sum of K(p, p): how far chance can take the residuals
    std::int64_t known = 0;  // outcomes in `residual`

    Book(bool level_, double limit_, std::size_t chains_, bool of_classes_ = false)
        : level(level_), limit(limit_), of_classes(of_classes_), chains(chains_) {}

    // What part of a round's stake a chain has. Classes share it, for all of them bet on each
    // round.
    double part(std::size_t at) const {
        const auto many = static_cast<double>(chains.size());
        if (of_classes) return at == 0 ? 0.5 : 0.5 / (many - 1.0);
        return level ? 1.0 / many : 1.0;
    }

    Entries entries() {
        return {{"clock", clock, 0, most_rounds, "forecasts so far"},
                {"rounds", rounds, 0, most_rounds, "outcomes bet on"},
                {"known", known, 0, most_rounds, "outcomes in `residual`"},
                {"width", width, 0, huge, "sum of K(p, p) over all rounds"},
                {"residual", row(residual), -most_rounds, most_rounds,
                 "outcomes less forecasts, by the nearest multiple of 1/512"}};
    }

    void make_room(std::size_t accounts) {
        for (Chain& chain : chains)
            if (chain.accounts.size() < accounts) chain.accounts.resize(accounts);
    }

    // Rounded down by more than the rounding errors of all rounds (docs/monitor.md, section 9).
    double evidence(std::size_t at, std::size_t group) const {
        const Chain& chain = chains[at];
        const Account& account = chain.accounts[group];
        if (level && account.refuted > 0) return for_certain;
        double found = account.total();
        if (level && group == 0) found += rest_after(chain.rounds) * part(at);
        const double errors = (static_cast<double>(chain.rounds) + 64.0) * 0x1p-47;
        return found * std::max(0.0, 1.0 - errors);
    }

    // Of the chain that has most.
    double evidence_of(std::size_t group) const {
        double most = 0.0;
        for (std::size_t k = 0; k < chains.size(); ++k) most = std::max(most, evidence(k, group));
        return most;
    }

    std::size_t leading(std::size_t group) const {
        std::size_t best = 0;
        for (std::size_t k = 1; k < chains.size(); ++k)
            if (evidence(k, group) > evidence(best, group)) best = k;
        return best;
    }

    // Settle a forecast of these groups, everyone among them.
    void settle(double said, const Members& of, std::size_t at, std::int64_t number, Came came) {
        bet(said, of, at, number, came);
        note(said, came);
    }

    // Settle a row, a forecast for each class. `came`: whether the likeliest class is the one that
    // came, `label`.
    void settle(const double* row, std::size_t label, std::int64_t number, Came came) {
        const std::size_t classes = chains.size() - 1;
        const double most = *std::max_element(row, row + classes);
        bet(most, everyone, 0, number, came);
        for (std::size_t k = 0; k < classes; ++k) {
            const Came own = k == label ? Came::one : Came::zero;
            bet(row[k], everyone, 1 + k, number, came == Came::never ? came : own);
        }
        note(most, came);
    }

  private:
    void bet(double said, const Members& of, std::size_t at, std::int64_t number, Came came) {
        Chain& chain = chains[at];
        const Forecast forecast(said, number);
        ++chain.rounds;
        const double stake =
            (level ? stake_of(chain.rounds) : 1.0) * part(at) / static_cast<double>(of.size());
        const bool wrong =
            (came == Came::one && said == 0.0) || (came == Came::zero && said == 1.0);
        for (const std::uint32_t group : of) {
            Account& account = chain.accounts[group];
            account.play(forecast, came, stake);
            if (wrong) ++account.refuted;
            double now = evidence(at, group);
            if (wrong) now = for_certain;
            account.peak = std::max(account.peak, now);
            if (now >= limit) alarm(account, now);
        }
    }

    void alarm(Account& account, double evidence) {
        if (level && account.alarms > 0) return;
        account.last = account.look(evidence);
        ++account.alarms;
        if (!level) account.restart();
    }

    void note(double said, Came came) {
        ++rounds;
        const Shape shape(said);
        width += shape.rise * shape.fall;
        if (came == Came::never) return;
        const double at = std::floor(said * static_cast<double>(smooth_cells) + 0.5);
        residual[static_cast<std::size_t>(at)] += (came == Came::one ? 1.0 : 0.0) - said;
        ++known;
    }
};

}  // namespace truecast::monitor

// The core as a page in a browser sees it: the same headers, compiled to WebAssembly.
//
// One game and one file at a time, kept here. JavaScript (core.js) writes columns into memory that
// `room` gives, calls a function, and reads the figures that `out` points to, in the order of its
// list of names.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "arc_tree.hpp"
#include "bins.hpp"
#include "decision.hpp"
#include "isotonic.hpp"
#include "ladder.hpp"
#include "laplace.hpp"
#include "scores.hpp"
#include "smooth.hpp"
#include "sums.hpp"
#include "tally.hpp"
#include "totals.hpp"

#define EXPORT(name) extern "C" __attribute__((export_name(name)))

// Nothing here throws but the memory's end, and then the page says so.
extern "C" void* __cxa_allocate_exception(std::size_t) { __builtin_trap(); }
extern "C" void __cxa_throw(void*, void*, void (*)(void*)) { __builtin_trap(); }

namespace truecast {
namespace {

using Counts = std::vector<std::int64_t>;

struct Tally {
    std::vector<double> p;
    Counts zeros, ones;

    std::size_t size() const { return p.size(); }
    double weight(std::size_t i) const { return static_cast<double>(zeros[i] + ones[i]); }

    void add(double forecast, bool y) {
        const auto at = std::lower_bound(p.begin(), p.end(), forecast) - p.begin();
        if (static_cast<std::size_t>(at) == size() || p[static_cast<std::size_t>(at)] != forecast) {
            p.insert(p.begin() + at, forecast);
            zeros.insert(zeros.begin() + at, 0);
            ones.insert(ones.begin() + at, 0);
        }
        ++(y ? ones : zeros)[static_cast<std::size_t>(at)];
    }
};

double sum(const Counts& counts) {
    std::int64_t all = 0;
    for (const std::int64_t count : counts) all += count;
    return static_cast<double>(all);
}

// A mean over `total` rounds; with `total` 1 the sum.
double smooth_error(const Tally& of, double total) {
    const auto c = [&](std::size_t i) {
        return residual(of.p[i], of.zeros[i], of.ones[i]) / total;
    };
    return SmoothError(of.p.data(), c, of.size(), false).value();
}

double brier_sum(const Tally& of) {
    return score_sum<SquaredError>(of.p.data(), of.zeros.data(), of.ones.data(), of.size());
}

// What the energy proves, as in arc.py: the root is rounded up, and hidden residuals are added.
struct Proved {
    double lower_distance, smooth_error;
};

constexpr double lower_distance_factor = 0.53552, smooth_error_factor = 0.58334;

Proved proved(const Tally& of, double total) {
    const ArcEnergy found = arc_energy(
        of.p.data(), TallyResiduals<std::int64_t>{of.zeros.data(), of.ones.data()}, of.size());
    const double root =
        std::sqrt(std::max(found.energy, 0.0) + 0x1p-45 * found.gross) * (1.0 + 0x1p-46);
    const double hidden = 0x1p-50 * total;
    return {lower_distance_factor * root + hidden, smooth_error_factor * root + hidden};
}

// ---- the game ----

// A forecaster that says a forecast first and learns the outcome then. Both bounds are of the
// smooth error in total: of the rounds so far, and of any rounds.
struct Player {
    virtual ~Player() = default;
    virtual double predict() = 0;
    virtual void observe(bool y) = 0;
    virtual double certificate(const Tally& said) const = 0;
    virtual double promise(double rounds) const = 0;
};

// docs/arc.md, (5): all the energy that there can be.
double arc_promise(double rounds) {
    return smooth_error_factor * std::sqrt(rounds * (65.0 / 64.0 + rounds * 0x1p-39)) *
           (1.0 + 0x1p-50);
}

struct ArcPlayer : Player {
    ArcTree tree;

    double predict() override { return tree.predict(); }
    void observe(bool y) override { tree.observe(y); }
    double certificate(const Tally& said) const override {
        return proved(said, static_cast<double>(tree.rounds)).smooth_error;
    }
    double promise(double rounds) const override { return arc_promise(rounds); }
};

// The paper's forecaster, Almost-One-Step-Ahead, at the lower end of a cell. What it proves is of
// the distance to calibration; the smooth error is at most twice that (docs/measures.md, theorem
// 3).
struct PaperPlayer : Player {
    std::int64_t m;
    Ladder ladder;

    explicit PaperPlayer(std::int64_t cells) : m(cells), ladder(built(cells)) {}

    static Ladder built(std::int64_t m) {
        Counts points, said, limits;
        for (std::int64_t j = 0; j <= m; ++j) points.push_back(j);
        for (int y = 0; y < 2; ++y)
            for (std::int64_t cell = 0; cell < m; ++cell) {
                said.push_back(2 * cell);
                limits.push_back(1 - y);  // the walk: ladder.py, CELL_RULES
            }
        return Ladder(points.data(), points.size(), m, said.data(), limits.data(), m / 2);
    }

    double predict() override { return ladder.predict(); }
    void observe(bool y) override { ladder.settle(y); }

    // 2 (D + min(A, B)), rounded up once; all numbers here are integers below 2^53.
    double certificate(const Tally&) const override {
        const Sums of = sums(ladder.points.data(), ladder.biases.data(), ladder.points.size(), m);
        const auto exact = [](std::int64_t x) { return static_cast<double>(x); };
        const double count = exact(of.count);
        const double bias = static_cast<double>(of.bias.low) * count;
        const double pooled =
            (static_cast<double>(of.left.low) + exact(of.moved)) * count + exact(of.rest);
        const double deviation = static_cast<double>(ladder.at.deviation.low) * count;
        return rounded_up(deviation + 2.0 * std::min(bias, pooled), exact(m) * count);
    }
    double promise(double rounds) const override {
        return 2.0 * rounds / static_cast<double>(m) + static_cast<double>(m - 1);
    }

    static double rounded_up(double top, double bottom) {
        const double near = top / bottom;
        return std::fma(near, bottom, -top) < 0.0 ? std::nextafter(near, HUGE_VAL) : near;
    }
};

// What anyone would do first. Nothing is proved of it, and nothing could be.
struct MeanPlayer : Player {
    double rounds = 0.0, ones = 0.0;

    double predict() override { return rounds > 0.0 ? ones / rounds : 0.5; }
    void observe(bool y) override {
        ++rounds;
        ones += y;
    }
    double certificate(const Tally&) const override { return HUGE_VAL; }
    double promise(double) const override { return HUGE_VAL; }
};

struct Game {
    std::unique_ptr<Player> player;
    Tally said;
    double rounds = 0.0, forecast = 0.5;
} game;

std::vector<double> figures;  // what JavaScript reads

const double* out(std::initializer_list<double> found) {
    figures.assign(found);
    return figures.data();
}

// ---- the file ----

struct File {
    std::vector<double> p;
    std::vector<std::uint8_t> y;
    Tally tally;
    std::vector<double> block_rate, block_lower, block_upper;
} file;

constexpr std::size_t bin_count = 15;
struct Bin {
    double zeros, ones, forecast;
    double rate() const { return ones / (zeros + ones); }
};

// As `reliability_bins`: edges k / 15, forecasts summed as integers.
std::array<Bin, bin_count> binned(const Tally& of) {
    std::array<Bin, bin_count> bins{};
    std::array<double, bin_count + 1> edges{};
    std::array<std::int64_t, bin_count> zeros{}, ones{};
    std::array<double, bin_count> forecast{}, rate{};
    for (std::size_t k = 0; k <= bin_count; ++k)
        edges[k] = static_cast<double>(k) / static_cast<double>(bin_count);
    bin_tally(of.p.data(), of.zeros.data(), of.ones.data(), of.size(), edges.data(), bin_count,
              {zeros.data(), ones.data(), forecast.data(), rate.data()});
    for (std::size_t k = 0; k < bin_count; ++k)
        bins[k] = {static_cast<double>(zeros[k]), static_cast<double>(ones[k]), forecast[k]};
    return bins;
}

// The isotonic regression: its blocks as (lower, upper, rate), and the two proper scores of it.
struct Fitted {
    double brier = 0.0, log = 0.0;
};

double entropy(double part, double whole) {
    return part > 0.0 ? part * std::log(whole / part) : 0.0;
}

Fitted fitted(const Tally& of, File* keep) {
    Counts starts(of.size()), zeros(of.size()), ones(of.size());
    const std::size_t blocks = isotonic(of.zeros.data(), of.ones.data(), of.size(), starts.data(),
                                        zeros.data(), ones.data());
    Total brier, log;
    for (std::size_t b = 0; b < blocks; ++b) {
        const double z = static_cast<double>(zeros[b]), o = static_cast<double>(ones[b]);
        brier.add(z * (o / (z + o)));
        log.add(entropy(z, z + o));
        log.add(entropy(o, z + o));
        if (!keep) continue;
        const std::size_t end =
            b + 1 < blocks ? static_cast<std::size_t>(starts[b + 1]) : of.size();
        keep->block_lower.push_back(of.p[static_cast<std::size_t>(starts[b])]);
        keep->block_upper.push_back(of.p[end - 1]);
        keep->block_rate.push_back(o / (z + o));
    }
    return {brier.value(), log.value()};
}

// As `Tally.coarsened`: cells of width 1 / 4096, each at its mean forecast.
Tally coarsened(const Tally& of) {
    constexpr std::size_t cells = 4096;
    if (of.size() <= cells) return of;
    Tally coarse;
    for (std::size_t i = 0; i < of.size();) {
        const auto cell = [&](std::size_t at) {
            return std::min(static_cast<std::size_t>(of.p[at] * cells), cells - 1);
        };
        const std::size_t start = i, here = cell(i);
        Total weighted;
        std::int64_t zeros = 0, ones = 0;
        for (; i < of.size() && cell(i) == here; ++i) {
            weighted.add(of.p[i] * of.weight(i));
            zeros += of.zeros[i];
            ones += of.ones[i];
        }
        const double mean = weighted.value() / static_cast<double>(zeros + ones);
        coarse.p.push_back(std::min(std::max(mean, of.p[start]), of.p[i - 1]));
        coarse.zeros.push_back(zeros);
        coarse.ones.push_back(ones);
    }
    return coarse;
}

// The isotonic rate of a tally at places k / steps: linear between forecasts.
void curve_at(const Tally& of, std::size_t steps, double* rates) {
    Counts starts(of.size()), zeros(of.size()), ones(of.size());
    const std::size_t blocks = isotonic(of.zeros.data(), of.ones.data(), of.size(), starts.data(),
                                        zeros.data(), ones.data());
    std::vector<double> rate(of.size());
    for (std::size_t b = 0; b < blocks; ++b) {
        const std::size_t end =
            b + 1 < blocks ? static_cast<std::size_t>(starts[b + 1]) : of.size();
        std::fill(rate.begin() + static_cast<std::ptrdiff_t>(starts[b]),
                  rate.begin() + static_cast<std::ptrdiff_t>(end),
                  static_cast<double>(ones[b]) / static_cast<double>(zeros[b] + ones[b]));
    }
    std::size_t i = 0;
    for (std::size_t k = 0; k <= steps; ++k) {
        const double x = static_cast<double>(k) / static_cast<double>(steps);
        while (i + 1 < of.size() && of.p[i + 1] <= x) ++i;
        const bool between = i + 1 < of.size() && of.p[i] <= x;
        const double share = between ? (x - of.p[i]) / (of.p[i + 1] - of.p[i]) : 0.0;
        rates[k] = rate[i] + (between ? share * (rate[i + 1] - rate[i]) : 0.0);
    }
}

}  // namespace

// ---- what JavaScript calls ----

EXPORT("room_p") double* room_p(std::size_t n) {
    file.p.resize(n);
    return file.p.data();
}

EXPORT("room_y") std::uint8_t* room_y(std::size_t n) {
    file.y.resize(n);
    return file.y.data();
}

// Start a game: 0 is Arc, 1 the paper's forecaster with this many cells, 2 the mean.
EXPORT("start") void start(int who, int cells) {
    game = Game{};
    if (who == 0) game.player = std::make_unique<ArcPlayer>();
    if (who == 1) game.player = std::make_unique<PaperPlayer>(cells);
    if (who == 2) game.player = std::make_unique<MeanPlayer>();
}

EXPORT("predict") double predict() { return game.forecast = game.player->predict(); }

// Needs `predict` before. Gives the smooth error, the certificate, the promise and the Brier sum.
EXPORT("observe") const double* observe(int y) {
    game.player->observe(y != 0);
    game.said.add(game.forecast, y != 0);
    ++game.rounds;
    return out({smooth_error(game.said, game.rounds) * game.rounds,
                game.player->certificate(game.said), game.player->promise(game.rounds),
                brier_sum(game.said)});
}

EXPORT("promise") double promise(double rounds) { return game.player->promise(rounds); }
EXPORT("arc_promise") double promise_of_arc(double rounds) { return arc_promise(rounds); }

// Ten bins of what was said: for each its zeros, its ones and the sum of its forecasts.
EXPORT("said") const double* said() {
    figures.assign(30, 0.0);
    for (std::size_t i = 0; i < game.said.size(); ++i) {
        const double p = game.said.p[i];
        double* bin =
            figures.data() + 3 * std::min(static_cast<std::size_t>(p * 10.0), std::size_t{9});
        bin[0] += static_cast<double>(game.said.zeros[i]);
        bin[1] += static_cast<double>(game.said.ones[i]);
        bin[2] += p * game.said.weight(i);
    }
    return figures.data();
}

// Measure the rounds in the rooms, which were checked. The order of figures is in core.js.
EXPORT("measure") const double* measure() {
    const std::size_t n = file.p.size();
    std::vector<std::uint64_t> keys(n);
    pack(file.p.data(), file.y.data(), n, keys.data());
    std::sort(keys.begin(), keys.end());
    Tally& of = file.tally;
    of.zeros.assign(n, 0);
    of.ones.assign(n, 0);
    const std::size_t distinct =
        unpack(keys.data(), n, keys.data(), of.zeros.data(), of.ones.data());
    of.zeros.resize(distinct);
    of.ones.resize(distinct);
    of.p.resize(distinct);
    for (std::size_t i = 0; i < distinct; ++i) of.p[i] = forecast_of(keys[i]);
    file.p = {};
    file.y = {};
    file.block_rate.clear();
    file.block_lower.clear();
    file.block_upper.clear();

    const double* p = of.p.data();
    const std::int64_t *zeros = of.zeros.data(), *ones = of.ones.data();
    const double total = static_cast<double>(n), all_ones = sum(of.ones);
    const Fitted best = fitted(of, &file);
    const auto bins = binned(of);
    double error = 0.0, largest = 0.0, forecasts = 0.0;
    for (const Bin& bin : bins) {
        const double count = bin.zeros + bin.ones;
        if (count == 0.0) continue;
        const double gap = std::fabs(bin.rate() - bin.forecast);
        error += count / total * gap;
        largest = std::max(largest, gap);
        forecasts += count / total * bin.forecast;
    }
    return out({total, static_cast<double>(distinct), all_ones / total, forecasts,
                brier_sum(of) / total, score_sum<LogLoss>(p, zeros, ones, distinct) / total,
                best.brier / total, best.log / total, smooth_error(of, total),
                proved(of, total).lower_distance / total,
                std::sqrt(std::max(0.0, laplace(p, zeros, ones, distinct, 1.0, false))) / total,
                absolute_residuals(p, zeros, ones, distinct) / total, error, largest,
                decision_loss(p, zeros, ones, distinct) / total,
                u_calibration(p, zeros, ones, distinct) / total});
}

// The bins: zeros, ones and mean forecast of each.
EXPORT("bins") const double* bins() {
    figures.clear();
    for (const Bin& bin : binned(file.tally))
        figures.insert(figures.end(), {bin.zeros, bin.ones, bin.forecast});
    return figures.data();
}

// The isotonic curve: how many blocks, then lower, upper and rate of each.
EXPORT("curve") const double* curve() {
    figures.assign(1, static_cast<double>(file.block_rate.size()));
    for (std::size_t b = 0; b < file.block_rate.size(); ++b)
        figures.insert(figures.end(),
                       {file.block_lower[b], file.block_upper[b], file.block_rate[b]});
    return figures.data();
}

// What chance alone does if each outcome is 1 with the probability forecast: the mean smooth error,
// the share of resamples with at least that of the file, then the 5 % and 95 % quantiles of the
// isotonic curve at places k / steps.
EXPORT("chance") const double* chance(int resamples, int steps) {
    const Tally of = coarsened(file.tally);
    const std::size_t times = static_cast<std::size_t>(resamples),
                      places = static_cast<std::size_t>(steps) + 1;
    double total = 0.0;
    for (std::size_t i = 0; i < of.size(); ++i) total += of.weight(i);
    std::vector<Counts> drawn(times, Counts(of.size()));
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < of.size(); ++i) {
        const auto weight = static_cast<long long>(of.zeros[i] + of.ones[i]);
        std::binomial_distribution<long long> ones(weight, of.p[i]);
        for (Counts& one : drawn) one[i] = ones(random);
    }
    const double found = smooth_error(of, total);
    std::vector<std::vector<double>> rates(places, std::vector<double>(times));
    std::vector<double> rate(places);
    Tally other{of.p, of.zeros, of.ones};
    double mean = 0.0, as_large = 0.0;
    for (std::size_t t = 0; t < times; ++t) {
        other.ones = drawn[t];
        for (std::size_t i = 0; i < of.size(); ++i)
            other.zeros[i] = of.zeros[i] + of.ones[i] - other.ones[i];
        const double error = smooth_error(other, total);
        mean += error / static_cast<double>(times);
        as_large += error >= found;
        curve_at(other, places - 1, rate.data());
        for (std::size_t k = 0; k < places; ++k) rates[k][t] = rate[k];
    }
    figures.assign({mean, (1.0 + as_large) / (1.0 + static_cast<double>(times))});
    for (const double level : {0.05, 0.95})
        for (std::vector<double>& here : rates) {
            const auto at = here.begin() + static_cast<std::ptrdiff_t>(
                                               level * static_cast<double>(times - 1) + 0.5);
            std::nth_element(here.begin(), at, here.end());
            figures.push_back(*at);
        }
    return figures.data();
}

}  // namespace truecast

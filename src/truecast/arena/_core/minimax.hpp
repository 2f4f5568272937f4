// The game of docs/minimax.md solved backwards: states are multisets of (forecast, outcome), each a
// game of two rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace truecast {

constexpr std::size_t most_game_rounds = 16;

// Calls a function now and then in long work; that may throw.
class Pause {
  public:
    explicit Pause(void (*look)()) : look_(look) {}
    void operator()() {
        if (++calls_ % 16384 == 0) look_();
    }

  private:
    void (*look_)();
    std::size_t calls_ = 0;
};

// Multisets of `items` kinds of things, as increasing sequences; those of one size are numbered in
// colexicographic order, sequence s by the sum of C(s[j] + j, j + 1).
class Multisets {
  public:
    using Sequence = std::array<std::size_t, most_game_rounds + 1>;

    Multisets(std::size_t items, std::size_t most) : items_(items), most_(most) {
        const std::size_t rows = items + most + 1, columns = most + 2;
        choose_.assign(rows * columns, 0);
        for (std::size_t n = 0; n < rows; ++n)
            for (std::size_t k = 0; k < columns && k <= n;
                 ++k)  // saturated: too many to store is enough to know
                choose_[n * columns + k] =
                    k == 0 ? 1 : std::min(choose(n - 1, k - 1) + choose(n - 1, k), many);
    }

    std::size_t items() const { return items_; }
    std::size_t count(std::size_t size) const {
        return size == 0 ? 1 : choose(items_ + size - 1, size);
    }
    std::size_t before(std::size_t size) const {
        return size == 0 ? 0 : choose(items_ + size - 1, size - 1);
    }

    std::size_t rank(const Sequence& s, std::size_t size) const {
        std::size_t sum = 0;
        for (std::size_t j = 0; j < size; ++j) sum += choose(s[j] + j, j + 1);
        return sum;
    }

    // Where each multiset of one thing more stands: to[item] is the rank of s with that item.
    void ranks_with(const Sequence& s, std::size_t size, std::vector<std::size_t>& to) const {
        // invariant: k members of s are at most `item`; `sum` is the rank of the others, each one
        // place later, and of these k where they are
        std::size_t sum = 0, k = 0;
        for (std::size_t j = 0; j < size; ++j) sum += choose(s[j] + j + 1, j + 2);
        for (std::size_t item = 0; item < items_; ++item) {
            for (; k < size && s[k] <= item; ++k)
                sum = sum - choose(s[k] + k + 1, k + 2) + choose(s[k] + k, k + 1);
            to[item] = sum + choose(item + k, k + 1);
        }
    }

    // The next multiset in their order, or false after the last.
    bool advance(Sequence& s, std::size_t size) const {
        std::size_t k = 0;  // the first that can grow; those before begin anew
        while (k < size && s[k] == (k + 1 < size ? s[k + 1] : items_ - 1)) ++k;
        if (k == size) return false;
        ++s[k];
        std::fill_n(s.begin(), k, 0);
        return true;
    }

  private:
    static constexpr std::size_t many = std::size_t{1} << 50;
    std::size_t choose(std::size_t n, std::size_t k) const { return choose_[n * (most_ + 2) + k]; }

    std::size_t items_, most_;
    std::vector<std::size_t> choose_;
};

// A game in which one side picks a column, the other a row, and column i costs zero[i] or one[i].
// With the second row played at chance nu, column i costs a line in nu, and the value is the top of
// the lower envelope of all lines.
struct Columns {
    std::vector<double> zero, one;

    std::size_t size() const { return zero.size(); }
    double at(std::size_t i, double nu) const { return (1 - nu) * zero[i] + nu * one[i]; }
    double slope(std::size_t i) const { return one[i] - zero[i]; }

    std::size_t cheapest(double nu) const {
        std::size_t best = 0;
        for (std::size_t i = 1; i < size(); ++i)
            if (at(i, nu) < at(best, nu)) best = i;
        return best;
    }

    double pure() const {
        double best = std::max(zero[0], one[0]);
        for (std::size_t i = 1; i < size(); ++i) best = std::min(best, std::max(zero[i], one[i]));
        return best;
    }

    // Newton's steps from both sides: the top lies between a rising line and a falling one, which
    // are replaced by lower ones at the point where they meet, until there are none.
    double value() const {
        std::size_t rising = cheapest(0), falling = cheapest(1);
        if (slope(rising) <= 0) return zero[rising];
        if (slope(falling) >= 0) return one[falling];
        for (std::size_t step = 0; step < size(); ++step) {
            const double nu = -(zero[falling] - zero[rising]) / (slope(falling) - slope(rising));
            const std::size_t i = cheapest(nu);
            if (at(i, nu) >= std::min(at(rising, nu), at(falling, nu))) break;
            if (slope(i) == 0) return zero[i];
            (slope(i) > 0 ? rising : falling) = i;
        }
        return (zero[rising] * -slope(falling) + zero[falling] * slope(rising)) /
               (slope(rising) - slope(falling));
    }

    // The middle of the chances at which no column costs less than the value.
    double chance(double value) const {
        double low = 0, high = 1;
        for (std::size_t i = 0; i < size(); ++i) {
            if (slope(i) > 0) low = std::max(low, (value - zero[i]) / slope(i));
            if (slope(i) < 0) high = std::min(high, (value - zero[i]) / slope(i));
        }
        return std::clamp((low + high) / 2, 0.0, 1.0);
    }
};

// Points to forecast, as numerators over a denominator that all means of up to `rounds` outcomes
// have too.
struct Board {
    std::vector<std::int64_t> points;
    std::int64_t denominator;
    std::size_t rounds;
    Multisets states{2 * points.size(),
                     rounds};  // item 2 i + y: point i was said, the outcome was y

    // CalDist by docs/distance.md, theorem 1: primitive steps in order of value.
    struct Step {
        std::size_t zeros, ones;
        std::int64_t value;
    };
    std::vector<Step> steps() const {
        std::vector<Step> found;
        for (std::size_t i = 0; i <= rounds; ++i)
            for (std::size_t j = i == 0 ? 1 : 0; i + j <= rounds; ++j)
                if (std::gcd(i, j) == 1)
                    found.push_back({i, j,
                                     static_cast<std::int64_t>(j) * denominator /
                                         static_cast<std::int64_t>(i + j)});
        std::sort(found.begin(), found.end(),
                  [](const Step& a, const Step& b) { return a.value < b.value; });
        return found;
    }

    // Invariant: length[i][j] is the least cost of chains of the steps so far that take i zeros and
    // j ones. Increasing i and j let a step be repeated.
    double distance(const Multisets::Sequence& s, const std::vector<Step>& steps) const {
        constexpr std::size_t width = most_game_rounds + 1;
        std::array<std::int64_t, width> zero{}, one{}, sum0{}, sum1{};
        std::size_t zeros = 0, ones = 0;
        for (std::size_t t = 0; t < rounds; ++t)
            (s[t] % 2 ? one[ones++] : zero[zeros++]) = points[s[t] / 2];
        std::array<std::int64_t, width * width> length;
        std::fill_n(length.begin(), (zeros + 1) * width, std::int64_t{1} << 60);
        length[0] = 0;
        for (const Step& step : steps) {
            if (step.zeros > zeros || step.ones > ones) continue;
            for (std::size_t i = 0; i < zeros; ++i)
                sum0[i + 1] = sum0[i] + std::abs(zero[i] - step.value);
            for (std::size_t j = 0; j < ones; ++j)
                sum1[j + 1] = sum1[j] + std::abs(one[j] - step.value);
            for (std::size_t i = step.zeros; i <= zeros; ++i)
                for (std::size_t j = step.ones; j <= ones; ++j) {
                    const std::size_t i0 = i - step.zeros, j0 = j - step.ones;
                    const std::int64_t cost =
                        length[i0 * width + j0] + sum0[i] - sum0[i0] + sum1[j] - sum1[j0];
                    length[i * width + j] = std::min(length[i * width + j], cost);
                }
        }
        return static_cast<double>(length[zeros * width + ones]) / static_cast<double>(denominator);
    }

    // Values of all states, those after t rounds from states.before(t) on. Against a `determined`
    // forecaster the outcome is chosen after the forecast. From the last round back: when a state
    // after t rounds is looked at, all after t + 1 rounds have their values.
    void solve(bool determined, double* values, void (*look)()) const {
        Pause pause(look);
        const std::vector<Step> all = steps();
        Columns columns = blank();
        std::vector<std::size_t> next(states.items());
        for (std::size_t t = rounds + 1; t-- > 0;) {
            Multisets::Sequence s{};
            double* to = values + states.before(t);
            do {
                pause();
                if (t == rounds) {
                    *to++ = distance(s, all);
                } else {
                    look_ahead(s, t, values, next, columns);
                    *to++ = determined ? columns.pure() : columns.value();
                }
            } while (states.advance(s, t));
        }
    }

    // What each forecast leads to from a state, for either outcome.
    void look_ahead(const Multisets::Sequence& s, std::size_t t, const double* values,
                    std::vector<std::size_t>& next, Columns& columns) const {
        states.ranks_with(s, t, next);
        const double* from = values + states.before(t + 1);
        for (std::size_t i = 0; i < points.size(); ++i) {
            columns.zero[i] = from[next[2 * i]];
            columns.one[i] = from[next[2 * i + 1]];
        }
    }

    Columns blank() const {
        return {std::vector<double>(points.size()), std::vector<double>(points.size())};
    }
};

// A lower bound on the value with forecasts anywhere in [0, 1], docs/minimax.md, theorem 3: the
// adversary sees no more of a forecast than a cell, and the forecaster may as well say a point of
// it. A move is a cell and a point of it; the moves of a cell stand together. Whatever chances the
// adversary plays, the best answer to them is a bound; these are chosen so that no state loses
// more, against its value on the points, than what its column has to spare.
class Hidden {
  public:
    Hidden(const Board& board, bool determined, const double* values,
           std::vector<std::size_t> first, std::vector<std::size_t> said, void (*look)())
        : pause_(look),
          board_(board),
          determined_(determined),
          values_(values),
          first_(std::move(first)),
          said_(std::move(said)),
          seen_(2 * (first_.size() - 1), board.rounds),
          held_(2 * said_.size(), board.rounds) {
        for (std::size_t cell = 0; cell + 1 < first_.size(); ++cell)
            for (std::size_t y = 0; y < 2; ++y)
                for (std::size_t move = first_[cell]; move < first_[cell + 1]; ++move)
                    item_.push_back(2 * said_[move] + y);
    }

    // How many chances the adversary's play has: one for all he sees before an outcome.
    std::size_t sights() const {
        return seen_.before(board_.rounds) * (determined_ ? first_.size() - 1 : 1);
    }

    // Writes the chances of a one: in order of rounds, of the cells before, and of the present cell
    // if he sees it.
    double bound(double* chances) {
        spare();
        std::vector<double> later;
        for (std::size_t t = board_.rounds; t-- > 0;) {
            std::vector<double> now(held_.count(t));
            Multisets::Sequence cells{};
            double* to = chances + seen_.before(t) * (determined_ ? first_.size() - 1 : 1);
            do to = settle(cells, t, later, now, to);
            while (seen_.advance(cells, t));
            later.swap(now);
        }
        return later[0];
    }

  private:
    // The cells are known: fix the chances, and store what then is the cheapest for every choice of
    // points.
    double* settle(const Multisets::Sequence& cells, std::size_t t,
                   const std::vector<double>& later, std::vector<double>& now, double* to) {
        ranks_.clear();
        targets_.clear();
        all_.zero.clear();
        all_.one.clear();
        Multisets::Sequence held{};
        choose(cells, t, 0, held, later);
        const std::size_t width = all_.size() / ranks_.size();
        least_.assign(ranks_.size(), std::numeric_limits<double>::infinity());
        for (std::size_t cell = 0; cell + 1 < (determined_ ? first_.size() : 2); ++cell)
            *to++ =
                determined_ ? play(width, first_[cell], first_[cell + 1]) : play(width, 0, width);
        for (std::size_t k = 0; k < ranks_.size(); ++k) now[ranks_[k]] = least_[k] + targets_[k];
        return to;
    }

    // Fix one chance for these columns of all choices of points.
    double play(std::size_t width, std::size_t from, std::size_t until) {
        part_.zero.clear();
        part_.one.clear();
        for (std::size_t k = 0; k < ranks_.size(); ++k)
            for (std::size_t i = k * width + from; i < k * width + until; ++i) {
                part_.zero.push_back(all_.zero[i] - targets_[k]);
                part_.one.push_back(all_.one[i] - targets_[k]);
            }
        const double nu = part_.chance(part_.value());
        for (std::size_t i = 0; i < part_.size(); ++i) {
            double& least = least_[i / (until - from)];
            least = std::min(least, part_.at(i, nu));
        }
        return nu;
    }

    // All ways to hold points in these cells, those of equal cell and outcome in increasing order.
    void choose(const Multisets::Sequence& cells, std::size_t t, std::size_t k,
                Multisets::Sequence& held, const std::vector<double>& later) {
        if (k == t) return collect(held, t, later);
        const std::size_t cell = cells[k] / 2, moves = first_[cell + 1] - first_[cell];
        const std::size_t start = 2 * first_[cell] + cells[k] % 2 * moves;
        for (held[k] = k > 0 && cells[k] == cells[k - 1] ? held[k - 1] : start;
             held[k] < start + moves; ++held[k])
            choose(cells, t, k + 1, held, later);
    }

    void collect(const Multisets::Sequence& held, std::size_t t, const std::vector<double>& later) {
        pause_();
        Multisets::Sequence points{};
        for (std::size_t k = 0; k < t; ++k) points[k] = item_[held[k]];
        std::sort(points.begin(), points.begin() + t);
        const std::size_t state = board_.states.before(t) + board_.states.rank(points, t);
        ranks_.push_back(held_.rank(held, t));
        targets_.push_back(values_[state] - spare_[state]);
        if (t + 1 < board_.rounds) return look_further(held, t, later);
        board_.look_ahead(points, t, values_, next_, columns_);
        const std::size_t width =
            determined_ ? said_.size() : columns_.size();  // if he does not see, the point is all
        for (std::size_t i = 0; i < width; ++i) {
            all_.zero.push_back(columns_.zero[determined_ ? said_[i] : i]);
            all_.one.push_back(columns_.one[determined_ ? said_[i] : i]);
        }
    }

    void look_further(const Multisets::Sequence& held, std::size_t t,
                      const std::vector<double>& later) {
        held_.ranks_with(held, t, next_held_);
        for (std::size_t cell = 0; cell + 1 < first_.size(); ++cell) {
            const std::size_t start = 2 * first_[cell], moves = first_[cell + 1] - first_[cell];
            for (std::size_t j = 0; j < moves; ++j) {
                all_.zero.push_back(later[next_held_[start + j]]);
                all_.one.push_back(later[next_held_[start + moves + j]]);
            }
        }
    }

    // What each state may lose without harm to the first: what its parents may, and what its column
    // costs above theirs. An outcome that nobody would choose may lose all.
    void spare() {
        const Multisets& states = board_.states;
        spare_.assign(states.before(board_.rounds + 1), static_cast<double>(board_.rounds));
        spare_[0] = 0;
        for (std::size_t t = 0; t < board_.rounds; ++t) {
            Multisets::Sequence s{};
            std::size_t at = states.before(t);
            do {
                pause_();
                board_.look_ahead(s, t, values_, next_, columns_);
                const double nu = determined_ ? 0 : columns_.chance(values_[at]);
                for (std::size_t i = 0; i < columns_.size(); ++i) {
                    const double most = std::max(columns_.zero[i], columns_.one[i]);
                    const double cost = determined_ ? most : columns_.at(i, nu);
                    const double more = spare_[at] + std::max(cost - values_[at], 0.0);
                    for (std::size_t y = 0; y < 2; ++y) {
                        double& child = spare_[states.before(t + 1) + next_[2 * i + y]];
                        if (!determined_ || (y ? columns_.one[i] : columns_.zero[i]) == most)
                            child = std::min(child, more);
                    }
                }
                ++at;
            } while (states.advance(s, t));
        }
    }

    Pause pause_;
    const Board& board_;
    bool determined_;
    const double* values_;
    std::vector<std::size_t> first_, said_;
    Multisets seen_, held_;  // seen: item 2 cell + y; held: the moves of a cell with outcome 0,
                             // then those with 1
    std::vector<std::size_t> item_;
    std::vector<double> spare_, targets_, least_;
    std::vector<std::size_t> ranks_, next_ = std::vector<std::size_t>(board_.states.items());
    std::vector<std::size_t> next_held_ = std::vector<std::size_t>(held_.items());
    Columns columns_ = board_.blank(), all_, part_;
};

}  // namespace truecast

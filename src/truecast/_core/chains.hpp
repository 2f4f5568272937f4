// The shortest chain of groups: CalDist as a path over lattice points (i, j), i zeros and j ones being placed.
//
// A step of value s/r places the next r - s zeros and s ones. Values are taken in increasing order, as the Stern-Brocot
// tree lists them, and relaxed in place (docs/distance.md, theorem 1). Lengths are reduced costs: what a step costs
// above its prices, never negative (docs/distance.md, theorem 2). Every computed reduced cost is rounded down by more
// than its error, so a length that is found is never above the true one; every comparison that discards something is
// loose by `slop`, which exceeds the errors in it (docs/distance.md, section 8).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace truecast {

constexpr double kUnreached = std::numeric_limits<double>::infinity();
constexpr double kEdgeMargin = 0x1p-49;  // a round's part of the error of a step

// s/r, and where it lies among integers over 2^shift
struct Value {
    std::int64_t r, s, floor;
    bool whole;
    double value;

    Value(std::int64_t r, std::int64_t s, int shift) : r(r), s(s), value(double(s) / double(r)) {
        const int half = shift / 2;  // two steps of long division: r and s are below 2^31
        const std::int64_t high = (s << half) / r, rest = (s << half) % r;
        const std::int64_t low = (rest << (shift - half)) / r;
        floor = (high << (shift - half)) + low;
        whole = (rest << (shift - half)) % r == 0;
    }
};

// The forecasts of one class, sorted, in integers over 2^shift, with a price for each.
struct Side {
    std::int64_t n;
    double unit;
    const std::int64_t* x;
    std::vector<std::int64_t> below, above;  // sums of x + price and of x - price

    Side(std::int64_t n, const std::int64_t* x, const std::int64_t* price, int shift)
        : n(n), unit(std::ldexp(1.0, -shift)), x(x), below(n + 1), above(n + 1) {
        for (std::int64_t k = 0; k < n; ++k) {
            below[k + 1] = below[k] + x[k] + price[k];
            above[k + 1] = above[k] + x[k] - price[k];
        }
    }

    std::int64_t up_to(const Value& v) const { return std::upper_bound(x, x + n, v.floor) - x; }
    std::int64_t less_than(const Value& v) const { return std::upper_bound(x, x + n, v.floor - v.whole) - x; }
};

// A side seen from a value: F(i) - F(c) is what the points between c and i cost there, above their prices.
struct View {
    const Side* side;
    double v, price;
    std::int64_t c;

    // what the d points after the first i cost: F(i + d) - F(i), to within d * 2^-50
    double step(std::int64_t i, std::int64_t d) const {
        const std::int64_t low = std::min(std::max<std::int64_t>(c - i, 0), d), k = i + low;
        return ((v + price) * double(low) - double(side->below[k] - side->below[i]) * side->unit) +
               (double(side->above[i + d] - side->above[k]) * side->unit + (price - v) * double(d - low));
    }
    double at(std::int64_t i) const { return i >= c ? step(c, i - c) : -step(i, c - i); }

    // F grows with i: the first i with F(i) - F(c) >= -t, and the last with F(i) - F(c) <= t
    std::int64_t first(double t) const {
        std::int64_t good = c, bad = -1;
        for (std::int64_t stride = 1; good > 0; stride *= 2) {
            const std::int64_t k = std::max<std::int64_t>(0, good - stride);
            if (at(k) < -t) {
                bad = k;
                break;
            }
            good = k;
        }
        while (good - bad > 1) {
            const std::int64_t middle = bad + (good - bad) / 2;
            (at(middle) >= -t ? good : bad) = middle;
        }
        return good;
    }
    std::int64_t last(double t) const {
        std::int64_t good = c, bad = side->n + 1;
        for (std::int64_t stride = 1; good < side->n; stride *= 2) {
            const std::int64_t k = std::min(side->n, good + stride);
            if (at(k) > t) {
                bad = k;
                break;
            }
            good = k;
        }
        while (bad - good > 1) {
            const std::int64_t middle = good + (bad - good) / 2;
            (at(middle) <= t ? good : bad) = middle;
        }
        return good;
    }
};

// Prices A and B at any value, linear between nodes; for the mirrored problem, B and A at 1 - v.
struct PriceCurve {
    std::int64_t n;
    const double *nodes, *zero, *one;
    bool mirrored;

    std::pair<double, double> at(double v) const {
        const double place = mirrored ? 1.0 - v : v;
        const std::int64_t k =
            std::clamp<std::int64_t>(std::upper_bound(nodes, nodes + n, place) - nodes - 1, 0, n - 2);
        const double t = (place - nodes[k]) / (nodes[k + 1] - nodes[k]);
        const double a = zero[k] + t * (zero[k + 1] - zero[k]), b = one[k] + t * (one[k + 1] - one[k]);
        return mirrored ? std::pair(b, a) : std::pair(a, b);
    }
};

// Lengths of the shortest chains to (i, j), for a range of j; `lo` to `hi` may be of use.
struct Row {
    std::int64_t base = 0, size = 0, lo = 0, hi = -1;
    std::unique_ptr<double[]> length;
    std::unique_ptr<std::int32_t[]> by;  // which value the last step has

    bool idle() const { return lo > hi; }
};

// The inner loop: candidates `from + shared + own`, kept where they are shorter.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
__attribute__((target_clones("avx2", "default")))
#endif
inline void shorten(const double* __restrict from, const double* __restrict own, double shared, std::int32_t name,
                    double* __restrict to, std::int32_t* __restrict by, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
        const double candidate = from[k] + (shared + own[k]), old = to[k];
        const bool shorter = candidate < old;
        to[k] = shorter ? candidate : old;
        by[k] = shorter ? name : by[k];
    }
}

// What to search for, and when to give up.
struct Request {
    double budget;  // chains longer than this may be overlooked
    double cut;     // a cell may be left out if that costs a chain at most this much a round
    bool profile;   // the bounds on the way serve a search from the other end
    double slop;    // more than the errors in a comparison
    // what the rest of a chain costs at least, from a search from the other end (docs/distance.md, theorem 3)
    std::int64_t bounds;
    const double *bound_values, *bound_lengths;
    // if any, for an upper bound: only j from tube_low to tube_high in row i, and only rows near to where a splitting
    // has come: before and after each of its values
    std::int64_t guides;
    const double *guide_values, *guide_zeros;
    double reach;
    const std::int64_t *tube_low, *tube_high;
    std::int64_t memory;  // bytes
    double seconds;
    const volatile std::uint8_t* stop;
    volatile double* state;  // how far it has come: a value, and `least` there
    std::int64_t heavy;      // a value is heavy if one in so many points lies between its parents
};

class Search {
  public:
    enum Outcome { kDone, kOutOfTime, kOutOfMemory, kStopped };
    struct Sample {
        double value, length;
    };

    Outcome outcome = kDone;
    double length = kUnreached;  // of the shortest chain that was found
    double least = 0;            // no chain within budget is shorter, however far this got
    double loss = 0;             // what leaving out cells costs at most (docs/distance.md, theorem 6)
    std::vector<std::pair<std::int32_t, std::int32_t>> chain;  // r and s of its steps
    std::vector<Sample> samples;
    std::int64_t peak = 0, relaxed = 0;

    Search(Side zeros, Side ones, PriceCurve prices, int shift, const Request& ask)
        : zeros_(std::move(zeros)),
          ones_(std::move(ones)),
          prices_(prices),
          shift_(shift),
          ask_(ask),
          budget_(ask.budget + ask.slop),
          start_(std::chrono::steady_clock::now()),
          rows_(zeros_.n + 1) {}

    void run() {
        if (!reserve(rows_[0], 0, 0)) return;
        rows_[0].length[0] = 0;
        rows_[0].lo = rows_[0].hi = 0;
        const Value zero(1, 0, shift_), one(1, 1, shift_);
        relax(zero, zero, one, false);
        std::vector<Cell> cells{{zero, one, kUnseen}};
        while (!cells.empty() && outcome == kDone && first_ <= last_) {
            const Cell cell = cells.back();
            cells.pop_back();
            const Value middle(cell.low.r + cell.high.r, cell.low.s + cell.high.s, shift_);
            if (cell.state != kUnseen) {
                const bool heavy = cell.state == kHeavy;
                relax(middle, cell.low, cell.high, !(heavy && ask_.profile) && !ask_.guides);
                if (heavy) trim(middle.value, true);
                poll();
                continue;
            }
            const State state = judge(cell, middle);
            if (state == kLeft) continue;
            cells.push_back({middle, cell.high, kUnseen});
            cells.push_back({cell.low, cell.high, state});
            cells.push_back({cell.low, middle, kUnseen});
        }
        if (outcome == kDone) {
            if (first_ <= last_) relax(one, zero, one, false);
            finish();
        }
        loss = knapsack() + double(zeros_.n + ones_.n) * steepest_;
    }

  private:
    enum State { kUnseen, kLight, kHeavy, kLeft };
    struct Cell {
        Value low, high;  // neighbours in the tree: low.r * high.s - low.s * high.r = 1
        State state;
    };

    Side zeros_, ones_;
    PriceCurve prices_;
    int shift_;
    Request ask_;
    double budget_;
    std::chrono::steady_clock::time_point start_;
    std::vector<Row> rows_;
    std::int64_t first_ = 0, last_ = 0;  // rows that may be of use
    std::int64_t used_ = 0, live_ = 1, since_ = 0;
    std::vector<std::pair<std::int32_t, std::int32_t>> names_;
    std::vector<std::pair<double, double>> cuts_;  // what a cell that is left out costs at most; its r
    double steepest_ = 0;
    std::vector<double> own_, lag_, lead_;

    View view(const Side& side, double v, double price, std::int64_t c) const { return {&side, v, price, c}; }

    // what slopes from v on cost at least, beyond the points that lag behind
    double rest(double v) const {
        const double* end = ask_.bound_values + ask_.bounds;
        const double* place = std::lower_bound(ask_.bound_values, end, v);
        return place == end ? 0.0 : ask_.bound_lengths[place - ask_.bound_values];
    }

    void poll() {
        if (*ask_.stop) outcome = kStopped;
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
        if (passed.count() > ask_.seconds) outcome = kOutOfTime;
    }

    bool reserve(Row& row, std::int64_t lo, std::int64_t hi) {
        if (lo >= row.base && hi < row.base + row.size) return true;
        std::int64_t from = row.size ? std::min(lo, row.base) : lo;
        std::int64_t to = row.size ? std::max(hi, row.base + row.size - 1) : hi;
        const std::int64_t spare = (to - from) / 2 + 8;
        if (!row.size || from < row.base) from = std::max<std::int64_t>(0, from - spare);
        if (!row.size || to >= row.base + row.size) to = std::min(ones_.n, to + spare);
        const std::int64_t size = to - from + 1, more = size * 12;
        const auto lists = static_cast<std::int64_t>(names_.capacity() * 8 + cuts_.capacity() * 16);
        if (used_ + more + lists > ask_.memory) {
            outcome = kOutOfMemory;
            return false;
        }
        std::unique_ptr<double[]> length(new double[size]);
        std::unique_ptr<std::int32_t[]> by(new std::int32_t[size]);
        std::fill_n(length.get(), size, kUnreached);
        std::fill_n(by.get(), size, 0);
        if (row.size) {
            std::copy_n(row.length.get(), row.size, length.get() + (row.base - from));
            std::copy_n(row.by.get(), row.size, by.get() + (row.base - from));
        }
        used_ += more - row.size * 12;
        peak = std::max(peak, used_ + row.size * 12);
        row.length = std::move(length);
        row.by = std::move(by);
        row.base = from;
        row.size = size;
        return true;
    }

    // Relax all steps of value m whose parents in the tree are low and high. If `local`, leave out the steps that
    // splitting between the parents makes no dearer (docs/distance.md, theorem 5): none of their points lies strictly
    // between the parents, and not all zeros are above them and all ones below.
    void relax(const Value& m, const Value& low, const Value& high, bool local) {
        const auto [a, b] = prices_.at(m.value);
        const View zero = view(zeros_, m.value, a, zeros_.up_to(m)), one = view(ones_, m.value, b, ones_.up_to(m));
        const std::int64_t dj = m.s, di = m.r - m.s;
        const double slack = -((1 - m.value) * a + m.value * b) * double(m.r);
        const double left = budget_ - least - rest(m.value), room = left - slack;
        if (room < 0 || di > zeros_.n || dj > ones_.n) return;
        std::int64_t ilo = zero.first(room), ihi = zero.last(room) - di;
        std::int64_t jlo = one.first(room), jhi = one.last(room) - dj;
        if (ask_.guides) {
            const double reach = std::min(ask_.reach, 2 * (high.value - low.value));
            ilo = std::max(ilo, std::int64_t(guide(m.value - reach)));
            ihi = std::min(ihi, std::int64_t(guide(m.value + reach)) + 1);
            if (ilo > ihi) return;
            jlo = std::max(jlo, ask_.tube_low[ilo]);
            jhi = std::min(jhi, ask_.tube_high[ihi]);
        }
        first_ = std::max(first_, zero.first(left));  // what lags further behind never gets there within budget
        ilo = std::max(ilo, first_);
        if (ilo > ihi || jlo > jhi) return;
        const std::int64_t zu = zeros_.up_to(low), zw = zeros_.less_than(high);
        const std::int64_t ou = ones_.up_to(low), ow = ones_.less_than(high);
        const double margin = double(m.r) * kEdgeMargin + budget_ * 0x1p-50;
        own_.resize(std::max<std::size_t>(own_.size(), jhi - jlo + 1));
        for (std::int64_t j = jlo; j <= jhi; ++j) own_[j - jlo] = one.step(j, dj) + slack - margin;
        const auto name = static_cast<std::int32_t>(names_.size());
        names_.emplace_back(static_cast<std::int32_t>(m.r), static_cast<std::int32_t>(m.s));
        const double limit = budget_ - rest(m.value);
        for (std::int64_t i = ilo; i <= std::min(ihi, last_); ++i) {
            fetch(i + 6, i + 6 + di, jlo, dj);
            if ((i & 1023) == 0) poll();
            if (outcome != kDone) return;
            Row& row = rows_[i];
            std::int64_t j0 = std::max(row.lo, jlo), j1 = std::min(row.hi, jhi);
            if (local && !(i < zw && i + di > zu)) {
                j1 = std::min(j1, ow - 1);
                if (i < zw) j0 = std::max(j0, ou - dj + 1);
            }
            if (ask_.guides) {
                j0 = std::max(j0, ask_.tube_low[i]);
                j1 = std::min(j1, ask_.tube_high[i]);
            }
            if (j0 > j1) continue;
            const double shared = zero.step(i, di);
            const double enough = limit - std::max(0.0, -zero.at(i + di));
            const auto reached = [&](std::int64_t j) { return row.length[j - row.base] + (shared + own_[j - jlo]); };
            while (j0 <= j1 && reached(j0) > enough) ++j0;
            while (j0 <= j1 && reached(j1) > enough) --j1;
            if (j0 > j1) continue;
            if (di == 0) {
                climb(row, j0, jhi, own_.data() + (j0 - jlo), shared, name);
                continue;
            }
            Row& next = rows_[i + di];
            if (!reserve(next, j0 + dj, j1 + dj)) return;
            shorten(row.length.get() + (j0 - row.base), own_.data() + (j0 - jlo), shared, name,
                    next.length.get() + (j0 + dj - next.base), next.by.get() + (j0 + dj - next.base), j1 - j0 + 1);
            relaxed += j1 - j0 + 1;
            next.lo = next.idle() ? j0 + dj : std::min(next.lo, j0 + dj);
            next.hi = std::max(next.hi, j1 + dj);
            last_ = std::max(last_, i + di);
        }
        if (relaxed - since_ > 8 * live_ + (1 << 16)) trim(m.value, false);
    }

    // steps of value 1 stay in their row
    void climb(Row& row, std::int64_t j0, std::int64_t j1, const double* own, double shared, std::int32_t name) {
        if (!reserve(row, j0, j1 + 1)) return;
        for (std::int64_t j = j0, k = j0 - row.base; j <= j1; ++j, ++k) {
            const double candidate = row.length[k] + (shared + own[j - j0]);
            if (candidate < row.length[k + 1]) {
                row.length[k + 1] = candidate;
                row.by[k + 1] = name;
                row.hi = std::max(row.hi, j + 1);
            }
        }
    }

    // rows are apart in memory: ask for what is needed soon
    void fetch(std::int64_t i, std::int64_t to, std::int64_t jlo, std::int64_t dj) const {
#if defined(__GNUC__)
        if (i > last_ || to > zeros_.n) return;
        const Row &row = rows_[i], &next = rows_[to];
        const std::int64_t j = std::max(row.lo, jlo);
        if (j > row.hi) return;
        __builtin_prefetch(row.length.get() + (j - row.base));
        if (j + dj < next.base || j + dj >= next.base + next.size) return;
        __builtin_prefetch(next.length.get() + (j + dj - next.base), 1);
        __builtin_prefetch(next.by.get() + (j + dj - next.base), 1);
#endif
    }

    // how many zeros the splitting has placed below v
    double guide(double v) const {
        return ask_
            .guide_zeros[std::lower_bound(ask_.guide_values, ask_.guide_values + ask_.guides, v) - ask_.guide_values];
    }

    // Drop nodes from which no chain within budget goes on, and find what all others have cost at least, beyond points
    // that were taken too early (docs/distance.md, theorem 3). Costs a pass over all nodes: only now and then.
    void trim(double v, bool sample) {
        if (relaxed - since_ < 3 * live_) return;
        since_ = relaxed;
        const auto [a, b] = prices_.at(v);
        const auto count = [&](const Side& side) {
            return std::upper_bound(side.x, side.x + side.n, std::int64_t(v / side.unit)) - side.x;
        };
        const View zero = view(zeros_, v, a, count(zeros_)), one = view(ones_, v, b, count(ones_));
        std::int64_t jlo = ones_.n, jhi = 0;
        for (std::int64_t i = first_; i <= last_; ++i) {
            if (rows_[i].idle()) continue;
            jlo = std::min(jlo, rows_[i].lo);
            jhi = std::max(jhi, rows_[i].hi);
        }
        if (jlo > jhi) return;
        lag_.resize(std::max<std::size_t>(lag_.size(), jhi - jlo + 1));
        lead_.resize(lag_.size());
        for (std::int64_t j = jlo; j <= jhi; ++j) {
            const double cost = one.at(j);
            lag_[j - jlo] = std::max(0.0, -cost);
            lead_[j - jlo] = std::max(0.0, cost);
        }
        const double limit = budget_ - rest(v);
        double shortest = kUnreached;
        std::int64_t first = last_ + 1, last = first_ - 1;
        live_ = 1;
        for (std::int64_t i = first_; i <= last_; ++i) {
            Row& row = rows_[i];
            if (row.idle()) continue;
            const double cost = zero.at(i), enough = limit - std::max(0.0, -cost);
            const auto dead = [&](std::int64_t j) { return row.length[j - row.base] + lag_[j - jlo] > enough; };
            while (!row.idle() && dead(row.lo)) ++row.lo;
            while (!row.idle() && dead(row.hi)) --row.hi;
            if (row.idle()) continue;
            double here = kUnreached;
            for (std::int64_t j = row.lo; j <= row.hi; ++j)
                if (!dead(j)) here = std::min(here, row.length[j - row.base] - lead_[j - jlo]);
            shortest = std::min(shortest, here - std::max(0.0, cost));
            first = std::min(first, i);
            last = i;
            live_ += row.hi - row.lo + 1;
        }
        first_ = first;
        last_ = last;
        least = std::max(least, std::min(shortest - ask_.slop, ask_.budget));
        if (sample) samples.push_back({v, least});
        ask_.state[0] = v;  // first: `least` holds from there on
        std::atomic_thread_fence(std::memory_order_release);
        ask_.state[1] = least;
    }

    // Whether the values strictly inside a cell can be left out.
    State judge(const Cell& cell, const Value& m) {
        const Value &low = cell.low, &high = cell.high;
        const std::int64_t rounds = zeros_.n + ones_.n, dj = m.s, di = m.r - m.s;
        if (m.r > rounds || di > zeros_.n || dj > ones_.n) return kLeft;
        const std::int64_t zu = zeros_.up_to(low), zw = zeros_.less_than(high);
        const std::int64_t ou = ones_.up_to(low), ow = ones_.less_than(high);
        const std::int64_t inside = zw - zu + ow - ou;
        const auto [a, b] = prices_.at(m.value);
        const auto [ua, ub] = prices_.at(low.value);
        const auto [wa, wb] = prices_.at(high.value);
        // steps are dear: they take at least di zeros and dj ones (docs/distance.md, theorem 4)
        const double far = std::max(m.value - low.value, high.value - m.value);
        const double slack = -((1 - m.value) * a + m.value * b) - far * (1 + std::abs(a - b));
        const double left = budget_ - least - rest(high.value) - double(m.r) * std::max(0.0, slack);
        if (left < 0) return kLeft;
        const View zero_low = view(zeros_, low.value, ua, zu), zero_high = view(zeros_, high.value, wa, zw);
        const View one_low = view(ones_, low.value, ub, ou), one_high = view(ones_, high.value, wb, ow);
        if (cheapest(zero_low, zero_high, di) + cheapest(one_low, one_high, dj) > left) return kLeft;
        // inverted groups, zeros above and ones below; with points inside, groups that come close
        const auto up =
            inside ? static_cast<std::int64_t>(double(m.r) * (1 - high.value) * (1 - 1e-12)) - (zw - zu) : di;
        const auto down = inside ? static_cast<std::int64_t>(double(m.r) * low.value * (1 - 1e-12)) - (ow - ou) : dj;
        const bool inverted =
            up <= zeros_.n - zw && down <= ou &&
            (up > 0 ? zero_high.step(zw, up) : 0.0) + (down > 0 ? one_low.step(ou - down, down) : 0.0) <= left;
        if (!inside && !inverted) return kLeft;
        // few points inside: splitting costs them little (docs/distance.md, theorem 6)
        const double width = 1.0 / (double(low.r) * double(high.r)), steep = inverted ? width * width / 2 : 0.0;
        if (steep <= ask_.cut / 4) {
            const double cost =
                inside_cost(zeros_, zu, zw, low.value, high.value) + inside_cost(ones_, ou, ow, low.value, high.value);
            if (cost <= ask_.cut * double(m.r)) {
                if (cost > 0) cuts_.emplace_back(cost, double(m.r));
                steepest_ = std::max(steepest_, steep);
                return kLeft;
            }
        }
        return inside * ask_.heavy >= rounds ? kHeavy : kLight;
    }

    // The least that d points cost at any value between two: those below cost what they cost at the lower value, those
    // above what they cost at the higher, those between nothing. Costs grow outwards, so the d cheapest are adjacent.
    double cheapest(const View& low, const View& high, std::int64_t d) const {
        d -= high.c - low.c;
        if (d <= 0) return 0;
        std::int64_t few = std::max<std::int64_t>(0, d - (high.side->n - high.c)), many = std::min(d, low.c);
        if (few > many) return kUnreached;
        while (few < many) {  // how many of them are below
            const std::int64_t k = few + (many - few) / 2;
            if (high.step(high.c + d - k - 1, 1) > low.step(low.c - k - 1, 1))
                few = k + 1;
            else
                many = k;
        }
        return low.step(low.c - few, few) + high.step(high.c, d - few);
    }

    // the sum of 2 (x - u)(w - x) / (w - u) over points inside, or a bound on it
    static double inside_cost(const Side& side, std::int64_t from, std::int64_t to, double u, double w) {
        const double width = w - u;
        double cost = 0;
        if (to - from > 64) return double(to - from) * (width / 2 + 0x1p-50);
        for (std::int64_t k = from; k < to; ++k) {
            const double x = double(side.x[k]) * side.unit;
            cost += std::max(0.0, x - u) * std::max(0.0, w - x);
        }
        return (1 + 1e-9) * 2 * cost / width + double(to - from) * 0x1p-50;
    }

    // A chain has so many rounds, so it can have steps in so many cells only.
    double knapsack() {
        std::sort(cuts_.begin(), cuts_.end(),
                  [](const auto& a, const auto& b) { return a.first * b.second > b.first * a.second; });
        double rounds = double(zeros_.n + ones_.n), sum = 0;
        for (const auto& [cost, r] : cuts_) {
            const double part = std::min(1.0, rounds / r);
            sum += part * cost;
            rounds -= part * r;
            if (rounds <= 0) break;
        }
        return sum * (1 + 1e-9);
    }

    void finish() {
        std::int64_t i = zeros_.n, j = ones_.n;
        const Row& row = rows_[i];
        if (j < row.base || j >= row.base + row.size) return;
        length = row.length[j - row.base];
        if (length == kUnreached) return;
        while (i || j) {
            const auto [r, s] = names_[rows_[i].by[j - rows_[i].base]];
            chain.emplace_back(r, s);
            i -= r - s;
            j -= s;
        }
        std::reverse(chain.begin(), chain.end());
    }
};

}  // namespace truecast

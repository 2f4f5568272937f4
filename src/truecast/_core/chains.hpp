// The shortest chain of groups: CalDist as a path over lattice points (i, j), where i zeros and j
// ones have been placed.
//
// A step of value s/r places the next r - s zeros and s ones. Values are taken in increasing order,
// as the Stern-Brocot tree lists them, and relaxed in place (docs/distance.md, theorem 1). Lengths
// are reduced costs: what a step costs above its prices, never negative (docs/distance.md, theorem
// 2). Every computed reduced cost is rounded down by more than its error, so a length that is found
// is never above the true one; every comparison that discards something is loose by `slop`, which
// exceeds the errors in it (docs/distance.md, section 8).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace truecast::chains {

// Signed, as ranges may be empty and differences negative.
using Count = std::int64_t;

constexpr double unreached = std::numeric_limits<double>::infinity();
constexpr double round_margin = 0x1p-49;  // a round's part of the error of a step

inline double real(Count x) { return static_cast<double>(x); }
inline std::size_t index(Count k) { return static_cast<std::size_t>(k); }

// s/r, and where it lies among integers over 2^shift.
struct Value {
    Count r, s, floor;
    bool whole;
    double value;

    Value(Count r_, Count s_, int shift) : r(r_), s(s_), value(real(s) / real(r)) {
        const int half = shift / 2;  // two steps of long division: r and s are below 2^31
        const Count high = (s << half) / r;
        const Count rest = (s << half) % r << (shift - half);
        floor = (high << (shift - half)) + rest / r;
        whole = rest % r == 0;
    }

    Count zeros() const { return r - s; }
    Count ones() const { return s; }
};

// The forecasts of one class, sorted, in integers over 2^shift, with a price for each.
class Side {
  public:
    Side(const Count* x, const Count* price, std::size_t n, int shift)
        : x_(x),
          size_(static_cast<Count>(n)),
          unit_(std::ldexp(1.0, -shift)),
          below_(n + 1),
          above_(n + 1) {
        for (std::size_t k = 0; k < n; ++k) {
            below_[k + 1] = below_[k] + x[k] + price[k];
            above_[k + 1] = above_[k] + x[k] - price[k];
        }
    }

    Count size() const { return size_; }
    double forecast(Count k) const { return real(x_[k]) * unit_; }

    Count up_to(const Value& v) const { return up_to(v.floor); }
    Count up_to(double v) const { return up_to(static_cast<Count>(v / unit_)); }
    Count less_than(const Value& v) const { return up_to(v.floor - v.whole); }

    // Sums over the points from i up to k, of x + price and of x - price.
    double below(Count i, Count k) const {
        return real(below_[index(k)] - below_[index(i)]) * unit_;
    }
    double above(Count i, Count k) const {
        return real(above_[index(k)] - above_[index(i)]) * unit_;
    }

  private:
    const Count* x_;
    Count size_;
    double unit_;
    std::vector<Count> below_, above_;

    Count up_to(Count bound) const { return std::upper_bound(x_, x_ + size_, bound) - x_; }
};

// A side seen from a value: F(i) - F(c) is what the points between c and i cost there, above their
// prices, where c points lie up to the value.
struct View {
    const Side& side;
    double v, price;
    Count c;

    // What the d points after the first i cost: F(i + d) - F(i), to within d * 2^-50.
    double step(Count i, Count d) const {
        const Count low = std::min(std::max<Count>(c - i, 0), d);
        const Count k = i + low;
        return ((v + price) * real(low) - side.below(i, k)) +
               (side.above(k, i + d) + (price - v) * real(d - low));
    }
    double at(Count i) const { return i >= c ? step(c, i - c) : -step(i, c - i); }

    // F grows with i: the first i with F(i) - F(c) >= -t, and the last with F(i) - F(c) <= t.
    Count first(double t) const {
        return farthest(0, [&](Count i) { return at(i) >= -t; });
    }
    Count last(double t) const {
        return farthest(side.size(), [&](Count i) { return at(i) <= t; });
    }

  private:
    // The farthest place from c towards the end up to which all are good: strides double until one
    // is not good, then halve.
    template <typename Good>
    Count farthest(Count end, Good good_at) const {
        const Count sign = end < c ? -1 : 1;
        const Count most = (end - c) * sign;
        Count good = 0, bad = most + 1;
        for (Count stride = 1; good < most; stride *= 2) {
            const Count next = std::min(most, good + stride);
            if (!good_at(c + sign * next)) {
                bad = next;
                break;
            }
            good = next;
        }
        while (bad - good > 1) {
            const Count middle = good + (bad - good) / 2;
            (good_at(c + sign * middle) ? good : bad) = middle;
        }
        return c + sign * good;
    }
};

// Prices of a zero and of a one at a value.
struct PricePair {
    double zero, one;

    // How much a calibrated group of this value is short of paying for itself, a round.
    double slack(double v) const { return -((1 - v) * zero + v * one); }
};

// Prices at any value, linear between nodes. Mirrored: those of the other class at 1 - v.
struct PriceCurve {
    const double *nodes, *zero, *one;
    std::size_t size;
    bool mirrored;

    PricePair at(double v) const {
        const double place = mirrored ? 1.0 - v : v;
        const Count after = std::upper_bound(nodes, nodes + size, place) - nodes;
        const Count k = std::clamp<Count>(after - 1, 0, static_cast<Count>(size) - 2);
        const double t = (place - nodes[k]) / (nodes[k + 1] - nodes[k]);
        const double a = zero[k] + t * (zero[k + 1] - zero[k]);
        const double b = one[k] + t * (one[k + 1] - one[k]);
        return mirrored ? PricePair{b, a} : PricePair{a, b};
    }
};

// All rounds and their prices.
struct Problem {
    Side zeros, ones;
    PriceCurve prices;
    int shift;

    Count rounds() const { return zeros.size() + ones.size(); }
    View zeros_from(double v, PricePair price, Count c) const { return {zeros, v, price.zero, c}; }
    View ones_from(double v, PricePair price, Count c) const { return {ones, v, price.one, c}; }
};

// What the rest of a chain costs at least from each value on, known from a search from the other
// end (docs/distance.md, theorem 3).
struct Bounds {
    const double *values = nullptr, *lengths = nullptr;
    std::size_t size = 0;

    double from(double v) const {
        const double* end = values + size;
        const double* place = std::lower_bound(values, end, v);
        return place == end ? 0.0 : lengths[place - values];
    }
};

// The neighbourhood of a splitting of rounds, to look for an upper bound in: only `low[i]` to
// `high[i]` ones beside i zeros, and only rows near to where the splitting has come. `zeros` are
// those that it has placed before, between and after its values.
struct Tube {
    const double *values = nullptr, *zeros = nullptr;
    std::size_t size = 0;
    double reach = 0.0;
    const Count *low = nullptr, *high = nullptr;

    bool empty() const { return size == 0; }
    Count placed_below(double v) const {
        return static_cast<Count>(zeros[std::lower_bound(values, values + size, v) - values]);
    }
};

// What chains cost at least, by how they stand at a value v (docs/distance.md, theorem 8 (c)).
struct Least {
    double paid = 0.0;     // f - over: before v, beyond points above v that were taken
    double between = 0.0;  // f - over + rem
    double whole = 0.0;    // f + rem: the whole chain

    // Both hold, for chains within the budget.
    void raise(const Least& other, double slop, double budget) {
        paid = std::max(paid, std::min(other.paid - slop, budget));
        between = std::max(between, std::min(other.between - slop, budget));
        whole = std::max(whole, std::min(other.whole - slop, budget));
    }
};

// When a search has to give up, and how far it has come: shared with the thread that waits for it.
class Limits {
  public:
    const Count memory;  // bytes
    const double seconds;

    Limits(Count memory_, double seconds_) : memory(memory_), seconds(seconds_) {}

    void stop() { stopped_.store(true, std::memory_order_relaxed); }
    bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

    // What is known at the value v. A reader may see a later v beside an earlier bound, which holds
    // there, too; never the other way round: hence the orders.
    void reached(double v, const Least& least) {
        value_.store(v, std::memory_order_relaxed);
        paid_.store(least.paid, std::memory_order_release);
        between_.store(least.between, std::memory_order_release);
        whole_.store(least.whole, std::memory_order_release);
    }
    std::pair<double, Least> progress() const {
        const Least least{paid_.load(std::memory_order_acquire),
                          between_.load(std::memory_order_acquire),
                          whole_.load(std::memory_order_acquire)};
        return {value_.load(std::memory_order_relaxed), least};
    }

  private:
    std::atomic<bool> stopped_{false};
    std::atomic<double> value_{0.0}, paid_{0.0}, between_{0.0}, whole_{0.0};
};

// The lengths of all nodes that a search still had at a value; infinite elsewhere. Rounded down.
class Snapshot {
  public:
    Snapshot(const Value& v, Count first, Count rows, Count nodes)
        : r_(v.r), s_(v.s), first_(first) {
        rows_.reserve(index(rows));
        lengths_.reserve(index(nodes));
    }

    static Count bytes(Count rows, Count nodes) {
        return rows * static_cast<Count>(sizeof(Row)) + nodes * static_cast<Count>(sizeof(float));
    }

    void add(Count lo, Count hi, const double* lengths) {
        rows_.push_back({lo, static_cast<Count>(lengths_.size())});
        for (Count k = 0; k <= hi - lo; ++k) {
            lengths_.push_back(rounded_down(lengths[k]));
        }
    }

    // Whether its value, seen from the other end, is below v.
    bool mirrored_below(const Value& v) const { return (r_ - s_) * v.r < v.s * r_; }

    double at(Count i, Count j) const {
        const Count k = i - first_;
        if (k < 0 || k >= static_cast<Count>(rows_.size())) return unreached;
        const Row& row = rows_[index(k)];
        const Count end = index(k) + 1 < rows_.size() ? rows_[index(k) + 1].start
                                                      : static_cast<Count>(lengths_.size());
        if (j < row.lo || j - row.lo >= end - row.start) return unreached;
        return static_cast<double>(lengths_[index(row.start + j - row.lo)]);
    }

  private:
    struct Row {
        Count lo, start;
    };
    Count r_, s_, first_;
    std::vector<Row> rows_;
    std::vector<float> lengths_;

    static float rounded_down(double length) {
        constexpr float lowest = -std::numeric_limits<float>::infinity();
        const auto near = static_cast<float>(length);
        return static_cast<double>(near) > length ? std::nextafter(near, lowest) : near;
    }
};

// Those of a search from the other end, in its order, and what it may have missed.
struct Snapshots {
    std::shared_ptr<const std::vector<Snapshot>> taken;
    double loss = 0.0;
};

// What to search for.
struct Request {
    double budget;  // chains longer than this may be overlooked
    double cut;     // a cell may be left out if that costs a chain at most this much a round
    bool profile;   // the bounds on the way serve a search from the other end
    double slop;    // more than the errors in a comparison
    Count heavy;    // a value is heavy if one in `heavy` of the points lies between its parents
    Bounds bounds;
    Tube tube;
    Snapshots snapshots;
};

enum class Outcome { done, out_of_time, out_of_memory, stopped };

// What was found.
struct Found {
    Outcome outcome = Outcome::done;
    double length = unreached;  // of the shortest chain that was found
    double loss = 0;  // what leaving out cells costs at most (docs/distance.md, theorem 6)
    std::vector<Count> zeros, ones;       // of the steps of that chain
    std::vector<double> values, lengths;  // no chain is shorter than the length up to the value
    std::shared_ptr<std::vector<Snapshot>> snapshots = std::make_shared<std::vector<Snapshot>>();
    Count peak = 0;  // bytes
};

// Lengths of the shortest chains to (i, j), for a range of j; `lo` to `hi` may be of use.
class Row {
  public:
    static constexpr Count bytes = sizeof(double) + sizeof(std::int32_t);  // of an entry
    Count lo = 0, hi = -1;

    bool idle() const { return lo > hi; }
    Count size() const { return size_; }
    bool has(Count j) const { return j >= base_ && j < base_ + size_; }
    bool has(Count from, Count to) const { return from >= base_ && to < base_ + size_; }

    double* length(Count j) const { return length_.get() + (j - base_); }
    // The name of the value of the last step.
    std::int32_t* by(Count j) const { return by_.get() + (j - base_); }

    void use(Count from, Count to) {
        lo = idle() ? from : std::min(lo, from);
        hi = std::max(hi, to);
    }

    // The first and last j to reserve for `from` to `to`: with spare room where it grows, at most
    // from 0 to `most`.
    std::pair<Count, Count> range_with(Count from, Count to, Count most) const {
        const Count first = size_ ? std::min(from, base_) : from;
        const Count last = size_ ? std::max(to, base_ + size_ - 1) : to;
        const Count spare = (last - first) / 2 + 8;
        return {!size_ || first < base_ ? std::max<Count>(0, first - spare) : first,
                !size_ || last >= base_ + size_ ? std::min(most, last + spare) : last};
    }

    void reserve(Count first, Count last) {
        const Count size = last - first + 1;
        std::unique_ptr<double[]> length(new double[index(size)]);
        std::unique_ptr<std::int32_t[]> by(new std::int32_t[index(size)]);
        std::fill_n(length.get(), size, unreached);
        std::fill_n(by.get(), size, 0);
        if (size_ > 0) {
            std::copy_n(length_.get(), size_, length.get() + (base_ - first));
            std::copy_n(by_.get(), size_, by.get() + (base_ - first));
        }
        length_ = std::move(length);
        by_ = std::move(by);
        base_ = first;
        size_ = size;
    }

  private:
    Count base_ = 0, size_ = 0;
    std::unique_ptr<double[]> length_;
    std::unique_ptr<std::int32_t[]> by_;
};

// The inner loop: candidates `from + shared + own`, kept where they are shorter.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
__attribute__((target_clones("avx2", "default")))
#endif
inline void shorten(const double* __restrict from, const double* __restrict own, double shared,
                    std::int32_t name, double* __restrict to, std::int32_t* __restrict by,
                    Count n) {
    for (Count k = 0; k < n; ++k) {
        const double candidate = from[k] + (shared + own[k]), old = to[k];
        const bool shorter = candidate < old;
        to[k] = shorter ? candidate : old;
        by[k] = shorter ? name : by[k];
    }
}

class Search {
  public:
    Search(const Problem& problem, const Request& request, Limits& limits)
        : zeros_(problem.zeros),
          ones_(problem.ones),
          problem_(problem),
          request_(request),
          limits_(limits),
          budget_(request.budget + request.slop),
          start_(std::chrono::steady_clock::now()),
          rows_(index(zeros_.size() + 1)) {}

    Found run() {
        try {
            relax_all();
        } catch (const std::bad_alloc&) {
            found_.outcome = Outcome::out_of_memory;
            found_.zeros.clear();  // a chain that was only partly traced is none
            found_.ones.clear();
            found_.values.resize(found_.lengths.size());
        }
        found_.loss = knapsack() + real(problem_.rounds()) * steepest_;
        return std::move(found_);
    }

  private:
    static constexpr int snapshots = 16;  // about as many are taken

    enum class State { unseen, light, heavy, left_out };
    struct Cell {
        Value low, high;  // neighbours in the tree: low.r * high.s - low.s * high.r = 1
        State state;
    };
    struct Range {
        Count from, to;
        bool empty() const { return from > to; }
    };
    // The points strictly inside a cell: from the first of them up to, without, the last.
    struct Inside {
        Range zeros, ones;
    };
    // Numbers for each j from the first on.
    struct Stretch {
        double* data;
        Count first;
        double& operator[](Count j) const { return data[j - first]; }
    };
    // A cell that was left out: what that costs at most, and how many rounds its steps have at
    // least.
    struct Cut {
        double cost, rounds;
    };
    struct Name {
        std::int32_t r, s;
    };

    const Side &zeros_, &ones_;
    const Problem& problem_;
    const Request& request_;
    Limits& limits_;
    const double budget_;
    const std::chrono::steady_clock::time_point start_;
    Found found_;
    Least least_;  // of chains within budget, so far
    std::vector<Row> rows_;
    Count first_ = 0, last_ = 0;     // rows that may be of use
    Count used_ = 0;                 // bytes
    Count relaxed_ = 0, since_ = 0;  // steps so far, and when rows were trimmed last
    Count live_ = 1;                 // nodes that were of use then
    std::vector<Name> names_;
    std::vector<Cut> cuts_;
    double steepest_ = 0;
    std::vector<double> own_, lag_, lead_;
    Count snapped_ = 0;         // bytes of snapshots
    double next_snap_ = 0;      // the value from which on the next one may be taken
    std::size_t compared_ = 0;  // snapshots from the other end that were made use of

    bool done() const { return found_.outcome == Outcome::done; }
    Inside inside(const Value& low, const Value& high) const {
        return {{zeros_.up_to(low), zeros_.less_than(high)},
                {ones_.up_to(low), ones_.less_than(high)}};
    }
    Row& row(Count i) { return rows_[index(i)]; }

    // Values from 0 to 1, on a stack: the lower half of a cell, its middle, its upper half.
    void relax_all() {
        if (!reserve(row(0), 0, 0)) return;
        *row(0).length(0) = 0;
        row(0).use(0, 0);
        const Value zero(1, 0, problem_.shift), one(1, 1, problem_.shift);
        relax(zero, zero, one, false);
        std::vector<Cell> cells{{zero, one, State::unseen}};
        while (!cells.empty() && done() && first_ <= last_) {
            const Cell cell = cells.back();
            cells.pop_back();
            const Value middle(cell.low.r + cell.high.r, cell.low.s + cell.high.s, problem_.shift);
            if (cell.state != State::unseen) {
                compare_up_to(middle);
                const bool heavy = cell.state == State::heavy;
                relax(middle, cell.low, cell.high,
                      !(heavy && request_.profile) && request_.tube.empty());
                if (heavy && trim(middle.value, true) && request_.profile) snap(middle);
                poll();
                continue;
            }
            const State state = judge(cell, middle);
            if (state == State::left_out) continue;
            cells.push_back({middle, cell.high, State::unseen});
            cells.push_back({cell.low, cell.high, state});
            cells.push_back({cell.low, middle, State::unseen});
        }
        if (done()) {
            compare_up_to(one);
            if (first_ <= last_) relax(one, zero, one, false);
            trace();
        }
    }

    void poll() {
        if (limits_.stopped()) found_.outcome = Outcome::stopped;
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
        if (passed.count() > limits_.seconds) found_.outcome = Outcome::out_of_time;
    }

    // Makes room in a row; false if there is no memory for it.
    bool reserve(Row& of, Count from, Count to) {
        if (of.has(from, to)) return true;
        const auto [first, last] = of.range_with(from, to, ones_.size());
        const Count before = of.size() * Row::bytes, after = (last - first + 1) * Row::bytes;
        const auto lists =
            static_cast<Count>(names_.capacity() * sizeof(Name) + cuts_.capacity() * sizeof(Cut));
        if (used_ + after + lists > limits_.memory) {
            found_.outcome = Outcome::out_of_memory;
            return false;
        }
        of.reserve(first, last);
        found_.peak = std::max(found_.peak, used_ + after);
        used_ += after - before;
        return true;
    }

    // All steps of one value: what they cost, and the nodes that they may begin at.
    struct Sweep {
        const Value &value, &low, &high;  // the parents in the tree are low and high
        bool local;                       // leave out steps that cost no more if split
        View zero, one;                   // both sides, seen from the value
        double slack;                     // of a step
        double rest;                      // what the rest of the chain costs at least
        Inside inside;                    // between the parents
        std::int32_t name;                // of the value
        Count di = value.zeros(), dj = value.ones();
        Range is{0, -1}, js{0, -1};  // zeros and ones before a step

        // Whether the zeros of a step from row i have one strictly between the parents.
        bool has_zero_inside(Count i) const {
            return i < inside.zeros.to && i + di > inside.zeros.from;
        }
    };

    // Relaxes all steps of value m whose parents in the tree are low and high. If `local`, leaves
    // out the steps that cost no more if they are split between the parents (docs/distance.md,
    // theorem 5): none of their points lies strictly between the parents, and not all zeros are
    // above them and all ones below.
    //
    // Invariant: when row i is relaxed, its lengths are those of the shortest chains within budget
    // of values up to m. Steps of value m are among them: they come from rows before it, or from
    // the same row if m = 1.
    void relax(const Value& m, const Value& low, const Value& high, bool local) {
        const PricePair price = problem_.prices.at(m.value);
        Sweep sweep{m,
                    low,
                    high,
                    local,
                    problem_.zeros_from(m.value, price, zeros_.up_to(m)),
                    problem_.ones_from(m.value, price, ones_.up_to(m)),
                    price.slack(m.value) * real(m.r),
                    request_.bounds.from(m.value),
                    inside(low, high),
                    static_cast<std::int32_t>(names_.size())};
        keep_within_budget(sweep);
        if (sweep.is.empty() || sweep.js.empty()) return;
        names_.push_back({static_cast<std::int32_t>(m.r), static_cast<std::int32_t>(m.s)});
        const Stretch own = cost_of_ones(sweep);
        for (Count i = sweep.is.from; i <= std::min(sweep.is.to, last_) && done(); ++i) {
            if ((i & 1023) == 0) poll();
            if (done()) relax_row(sweep, i, own);
        }
        if (done() && relaxed_ - since_ > 8 * live_ + (1 << 16)) trim(m.value, false);
    }

    // Sets the range of nodes from which a step can be part of a chain within budget, and within
    // the tube if there is one.
    void keep_within_budget(Sweep& sweep) {
        const double left = budget_ - least_.paid - sweep.rest;
        const double room = left - sweep.slack;
        if (room < 0 || sweep.di > zeros_.size() || sweep.dj > ones_.size()) return;
        Range is{sweep.zero.first(room), sweep.zero.last(room) - sweep.di};
        Range js{sweep.one.first(room), sweep.one.last(room) - sweep.dj};
        const Tube& tube = request_.tube;
        if (!tube.empty()) {
            const double v = sweep.value.value;
            const double reach = std::min(tube.reach, 2 * (sweep.high.value - sweep.low.value));
            is.from = std::max(is.from, tube.placed_below(v - reach));
            is.to = std::min(is.to, tube.placed_below(v + reach) + 1);
            if (is.empty()) return;
            js.from = std::max(js.from, tube.low[is.from]);
            js.to = std::min(js.to, tube.high[is.to]);
        }
        // rows that lag further behind never get there within budget
        first_ = std::max(first_, sweep.zero.first(left));
        is.from = std::max(is.from, first_);
        sweep.is = is;
        sweep.js = js;
    }

    // What a step costs by its ones and its slack, for each j that it may begin at; less by the
    // rounding of a step, so that no chain seems longer than it is.
    Stretch cost_of_ones(const Sweep& sweep) {
        const auto [first, last] = sweep.js;
        const double margin = real(sweep.value.r) * round_margin + budget_ * 0x1p-50;
        own_.resize(std::max(own_.size(), index(last - first + 1)));
        const Stretch own{own_.data(), first};
        for (Count j = first; j <= last; ++j)
            own[j] = sweep.one.step(j, sweep.dj) + sweep.slack - margin;
        return own;
    }

    // The nodes of row i that steps may begin at.
    Range begins(const Sweep& sweep, Count i) {
        Range js{std::max(row(i).lo, sweep.js.from), std::min(row(i).hi, sweep.js.to)};
        if (sweep.local && !sweep.has_zero_inside(i)) {
            const Inside& inside = sweep.inside;
            js.to = std::min(js.to, inside.ones.to - 1);
            if (i < inside.zeros.to) js.from = std::max(js.from, inside.ones.from - sweep.dj + 1);
        }
        const Tube& tube = request_.tube;
        if (!tube.empty()) {
            js.from = std::max(js.from, tube.low[i]);
            js.to = std::min(js.to, tube.high[i]);
        }
        return js;
    }

    // Relaxes the steps from row i. Nodes at both ends of the row whose chains would get too long
    // are passed over first; those between are relaxed whatever they cost, which does no harm.
    void relax_row(const Sweep& sweep, Count i, Stretch own) {
        Range js = begins(sweep, i);
        if (js.empty()) return;
        Row& from = row(i);
        const double shared = sweep.zero.step(i, sweep.di);
        const double missed = std::max(0.0, -sweep.zero.at(i + sweep.di));
        const double enough = budget_ - sweep.rest - missed;
        const auto too_long = [&](Count j) { return *from.length(j) + (shared + own[j]) > enough; };
        while (!js.empty() && too_long(js.from)) ++js.from;
        while (!js.empty() && too_long(js.to)) --js.to;
        if (js.empty()) return;
        if (sweep.di == 0) return climb(from, {js.from, sweep.js.to}, own, shared, sweep.name);
        Row& to = row(i + sweep.di);
        const Range reached{js.from + sweep.dj, js.to + sweep.dj};
        if (!reserve(to, reached.from, reached.to)) return;
        const Count steps = js.to - js.from + 1;
        shorten(from.length(js.from), &own[js.from], shared, sweep.name, to.length(reached.from),
                to.by(reached.from), steps);
        relaxed_ += steps;
        to.use(reached.from, reached.to);
        last_ = std::max(last_, i + sweep.di);
    }

    // Steps of value 1 stay in their row.
    void climb(Row& in, Range js, Stretch own, double shared, std::int32_t name) {
        if (!reserve(in, js.from, js.to + 1)) return;
        for (Count j = js.from; j <= js.to; ++j) {
            const double candidate = *in.length(j) + (shared + own[j]);
            if (candidate < *in.length(j + 1)) {
                *in.length(j + 1) = candidate;
                *in.by(j + 1) = name;
                in.hi = std::max(in.hi, j + 1);
            }
        }
    }

    // Drops nodes from which no chain within budget goes on, and finds what all others cost at
    // least (docs/distance.md, theorems 3 and 8). Costs a pass over all nodes: only now and then.
    // Returns whether it did.
    bool trim(double v, bool sample) {
        if (relaxed_ - since_ < 3 * live_) return false;
        since_ = relaxed_;
        const PricePair price = problem_.prices.at(v);
        const View zero = problem_.zeros_from(v, price, zeros_.up_to(v));
        const View one = problem_.ones_from(v, price, ones_.up_to(v));
        Range js{ones_.size(), 0};
        for (Count i = first_; i <= last_; ++i) {
            if (row(i).idle()) continue;
            js.from = std::min(js.from, row(i).lo);
            js.to = std::max(js.to, row(i).hi);
        }
        if (js.empty()) return false;
        lag_.resize(std::max(lag_.size(), index(js.to - js.from + 1)));
        lead_.resize(lag_.size());
        const Stretch lag{lag_.data(), js.from}, lead{lead_.data(), js.from};
        for (Count j = js.from; j <= js.to; ++j) {
            const double cost = one.at(j);
            lag[j] = std::max(0.0, -cost);
            lead[j] = std::max(0.0, cost);
        }
        const double limit = budget_ - request_.bounds.from(v);
        Least shortest{unreached, unreached, unreached};
        Count first = last_ + 1, last = first_ - 1;
        live_ = 1;
        for (Count i = first_; i <= last_; ++i) {
            Row& here = row(i);
            if (here.idle()) continue;
            const double cost = zero.at(i);
            const double enough = limit - std::max(0.0, -cost);
            const auto dead = [&](Count j) { return *here.length(j) + lag[j] > enough; };
            while (!here.idle() && dead(here.lo)) ++here.lo;
            while (!here.idle() && dead(here.hi)) --here.hi;
            if (here.idle()) continue;
            Least least{unreached, unreached, unreached};
            for (Count j = here.lo; j <= here.hi; ++j) {
                if (dead(j)) continue;
                const double length = *here.length(j), late = length + lag[j];
                least.paid = std::min(least.paid, length - lead[j]);
                least.between = std::min(least.between, late - lead[j]);
                least.whole = std::min(least.whole, late);
            }
            shortest.paid = std::min(shortest.paid, least.paid - std::max(0.0, cost));
            shortest.between = std::min(shortest.between, least.between - cost);
            shortest.whole = std::min(shortest.whole, least.whole + std::max(0.0, -cost));
            first = std::min(first, i);
            last = i;
            live_ += here.hi - here.lo + 1;
        }
        first_ = first;
        last_ = last;
        least_.raise(shortest, request_.slop, request_.budget);
        if (sample) {
            found_.values.push_back(v);
            found_.lengths.push_back(least_.paid);
        }
        limits_.reached(v, least_);
        return true;
    }

    // Keeps the lengths of all nodes for a search from the other end, now and then.
    void snap(const Value& v) {
        const Count rows = std::max<Count>(0, last_ - first_ + 1);
        const Count bytes = Snapshot::bytes(rows, live_);
        if (v.value < next_snap_ || snapped_ + bytes > limits_.memory / 8) return;
        next_snap_ = v.value + 1.0 / snapshots;
        snapped_ += bytes;
        Snapshot taken(v, first_, rows, live_);
        for (Count i = first_; i <= last_; ++i) {
            const Row& here = row(i);
            taken.add(here.lo, here.hi, here.idle() ? nullptr : here.length(here.lo));
        }
        found_.snapshots->push_back(std::move(taken));
    }

    // Drops nodes from which, by a search from the other end, no chain within budget goes on: at
    // each value of its snapshots, when all values up to there have been relaxed and none above.
    void compare_up_to(const Value& v) {
        const Snapshots& from = request_.snapshots;
        if (!from.taken) return;
        for (; compared_ < from.taken->size(); ++compared_) {
            const Snapshot& other = (*from.taken)[from.taken->size() - 1 - compared_];
            if (!other.mirrored_below(v)) return;
            compare(other, budget_ + from.loss);
        }
    }

    // Lengths stay: a later step to a node that was dropped here must not take the place of the one
    // by which chains went on from it before.
    void compare(const Snapshot& other, double enough) {
        for (Count i = first_; i <= last_; ++i) {
            Row& here = row(i);
            const auto dead = [&](Count j) {
                return *here.length(j) + other.at(ones_.size() - j, zeros_.size() - i) > enough;
            };
            while (!here.idle() && dead(here.lo)) ++here.lo;
            while (!here.idle() && dead(here.hi)) --here.hi;
        }
        while (first_ <= last_ && row(first_).idle()) ++first_;
        while (first_ <= last_ && row(last_).idle()) --last_;
    }

    // Whether the values strictly inside a cell can be left out.
    State judge(const Cell& cell, const Value& m) {
        const Value &low = cell.low, &high = cell.high;
        const Count di = m.zeros(), dj = m.ones();
        if (m.r > problem_.rounds() || di > zeros_.size() || dj > ones_.size())
            return State::left_out;
        const auto [zeros, ones] = inside(low, high);
        const auto [zeros_low, zeros_high] = zeros;
        const auto [ones_low, ones_high] = ones;
        const Count zeros_inside = zeros_high - zeros_low, ones_inside = ones_high - ones_low;
        const Count points_inside = zeros_inside + ones_inside;
        const PricePair price = problem_.prices.at(m.value);
        const PricePair price_low = problem_.prices.at(low.value),
                        price_high = problem_.prices.at(high.value);
        // steps cost too much: they take at least di zeros and dj ones (docs/distance.md, theorem
        // 4)
        const double widest = std::max(m.value - low.value, high.value - m.value);
        const double slack = price.slack(m.value) - widest * (1 + std::abs(price.zero - price.one));
        const double slacks = real(m.r) * std::max(0.0, slack);
        const double left = budget_ - least_.paid - request_.bounds.from(high.value) - slacks;
        if (left < 0) return State::left_out;
        const View zero_low = problem_.zeros_from(low.value, price_low, zeros_low);
        const View zero_high = problem_.zeros_from(high.value, price_high, zeros_high);
        const View one_low = problem_.ones_from(low.value, price_low, ones_low);
        const View one_high = problem_.ones_from(high.value, price_high, ones_high);
        if (cheapest(zero_low, zero_high, di) + cheapest(one_low, one_high, dj) > left)
            return State::left_out;
        // inverted groups, zeros above and ones below; with points inside, groups that come close
        const auto nearly = [&](double share) {
            return static_cast<Count>(real(m.r) * share * (1 - 1e-12));
        };
        const Count up = points_inside ? nearly(1 - high.value) - zeros_inside : di;
        const Count down = points_inside ? nearly(low.value) - ones_inside : dj;
        const bool inverted = up <= zeros_.size() - zeros_high && down <= ones_low &&
                              (up > 0 ? zero_high.step(zeros_high, up) : 0.0) +
                                      (down > 0 ? one_low.step(ones_low - down, down) : 0.0) <=
                                  left;
        if (!points_inside && !inverted) return State::left_out;
        // few points inside: splitting costs them little (docs/distance.md, theorem 6)
        const double width = 1.0 / (real(low.r) * real(high.r));
        const double steep = inverted ? width * width / 2 : 0.0;
        if (steep <= request_.cut / 4) {
            const double cost = inside_cost(zeros_, zeros, low.value, high.value) +
                                inside_cost(ones_, ones, low.value, high.value);
            if (cost <= request_.cut * real(m.r)) {
                if (cost > 0) cuts_.push_back({cost, real(m.r)});
                steepest_ = std::max(steepest_, steep);
                return State::left_out;
            }
        }
        return points_inside * request_.heavy >= problem_.rounds() ? State::heavy : State::light;
    }

    // The least that d points cost at any value between two: those below cost what they cost at the
    // lower value, those above what they cost at the higher, those between nothing. Costs grow
    // outwards, so the d cheapest are adjacent.
    static double cheapest(const View& low, const View& high, Count d) {
        d -= high.c - low.c;
        if (d <= 0) return 0;
        Count few = std::max<Count>(0, d - (high.side.size() - high.c)), many = std::min(d, low.c);
        if (few > many) return unreached;
        while (few < many) {  // how many of them are below
            const Count k = few + (many - few) / 2;
            if (high.step(high.c + d - k - 1, 1) > low.step(low.c - k - 1, 1))
                few = k + 1;
            else
                many = k;
        }
        return low.step(low.c - few, few) + high.step(high.c, d - few);
    }

    // The sum of 2 (x - u)(w - x) / (w - u) over the points `from` and up to, without, `to`; or, if
    // they are many, a bound on it.
    static double inside_cost(const Side& side, Range points, double u, double w) {
        const Count n = points.to - points.from;
        const double width = w - u;
        if (n > 64) return real(n) * (width / 2 + 0x1p-50);
        double cost = 0;
        for (Count k = points.from; k < points.to; ++k) {
            const double x = side.forecast(k);
            cost += std::max(0.0, x - u) * std::max(0.0, w - x);
        }
        return (1 + 1e-9) * 2 * cost / width + real(n) * 0x1p-50;
    }

    // What leaving out cells costs at most: a chain has steps in no more cells than its rounds are
    // enough for.
    double knapsack() {
        std::sort(cuts_.begin(), cuts_.end(),
                  [](const Cut& a, const Cut& b) { return a.cost * b.rounds > b.cost * a.rounds; });
        double rounds = real(problem_.rounds()), sum = 0;
        for (const Cut& cut : cuts_) {
            const double part = std::min(1.0, rounds / cut.rounds);
            sum += part * cut.cost;
            rounds -= part * cut.rounds;
            if (rounds <= 0) break;
        }
        return sum * (1 + 1e-9);
    }

    // Follows the last steps back from the end to the start.
    void trace() {
        Count i = zeros_.size(), j = ones_.size();
        if (!row(i).has(j)) return;
        found_.length = *row(i).length(j);
        if (found_.length == unreached) return;
        while (i || j) {
            const Name step = names_[index(*row(i).by(j))];
            found_.zeros.push_back(step.r - step.s);
            found_.ones.push_back(step.s);
            i -= step.r - step.s;
            j -= step.s;
        }
        std::reverse(found_.zeros.begin(), found_.zeros.end());
        std::reverse(found_.ones.begin(), found_.ones.end());
    }
};

}  // namespace truecast::chains

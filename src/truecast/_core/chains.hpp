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
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "chain_cells.hpp"
#include "chain_points.hpp"
#include "chain_progress.hpp"
#include "chain_request.hpp"
#include "chain_rows.hpp"
#include "chain_snapshots.hpp"

namespace truecast::chains {

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
        found_.loss = cuts_.loss(problem_.rounds());
        found_.excess = request_.bridges ? cuts_.excess(problem_.rounds()) : found_.loss;
        return std::move(found_);
    }

  private:
    static constexpr int snapshots = 16;  // about as many are taken

    enum class State { unseen, light, heavy, left_out };
    struct Cell {
        Value low, high;  // neighbours in the tree: low.r * high.s - low.s * high.r = 1
        State state;
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
    // Zeros and ones of a step, and of the step that follows it in a bridge.
    struct Name {
        Count di, dj, then_di, then_dj;
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
    Count kept_ = 0;                 // rows from here on have not been forgotten
    Count used_ = 0;                 // bytes
    Count relaxed_ = 0, since_ = 0;  // steps so far, and when rows were trimmed last
    Count live_ = 1;                 // nodes that were of use then
    std::vector<Name> names_;
    Cuts cuts_;
    std::vector<double> costs_, lag_, lead_, down_, up_;
    Stretch own_{nullptr, 0};   // what the ones of a step cost, by where it begins
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
                compare_up_to(middle, false);
                const bool heavy = cell.state == State::heavy;
                relax(middle, cell.low, cell.high,
                      !(heavy && request_.profile) && request_.tube.empty());
                // final only if no step of this value is left out (docs/distance.md, theorem 8 (d))
                if (heavy && done() && trim(middle.value, true) && request_.profile) snap(middle);
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
            compare_up_to(one, false);
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
        const auto lists = static_cast<Count>(names_.capacity() * sizeof(Name) + cuts_.bytes());
        const auto needed = [&] { return used_ + after + lists; };
        if (needed() > limits_.memory && request_.tube.empty()) forget_passed_rows();
        if (needed() > limits_.memory) {
            found_.outcome = Outcome::out_of_memory;
            return false;
        }
        of.reserve(first, last);
        found_.peak = std::max(found_.peak, needed());
        used_ += after - before;
        return true;
    }

    // Rows that no step begins or ends at any more are only there to trace the chain. Without them
    // its length is still that of the shortest.
    void forget_passed_rows() {
        for (; kept_ < first_; ++kept_) {
            used_ -= row(kept_).size() * Row::bytes;
            row(kept_) = Row();
        }
    }

    // The steps of one value, and both sides seen from there.
    struct Leg {
        Value value;
        View zero, one;
        double slack;  // of a step
        Count di = value.zeros(), dj = value.ones();
    };

    Leg leg(const Value& v) const {
        const PricePair price = problem_.prices.at(v.value);
        return {v, problem_.zeros_from(v.value, price, zeros_.up_to(v)),
                problem_.ones_from(v.value, price, ones_.up_to(v)),
                price.slack(v.value) * real(v.r)};
    }

    // What is relaxed at once, and the nodes that it may begin at: all steps of one value, or the
    // bridges over a cell, each a step of its lower end followed by one of its upper end.
    struct Sweep {
        Leg first, last;  // the same if it is no bridge
        bool bridge;
        const Value &low, &high;  // the parents of the value, or the ends of the cell
        bool local;               // leave out steps that cost no more if split
        double discount;          // of a bridge
        double rest;              // what the rest of the chain costs at least
        Inside inside;            // strictly between low and high
        Count di = first.di + (bridge ? last.di : 0), dj = first.dj + (bridge ? last.dj : 0);
        Range is{0, -1}, js{0, -1};  // zeros and ones before

        double cost_of_zeros(Count i) const {
            const double cost = first.zero.step(i, first.di);
            return bridge ? cost + last.zero.step(i + first.di, last.di) : cost;
        }
        double cost_of_ones(Count j) const {
            const double cost = first.one.step(j, first.dj) + first.slack;
            return bridge ? cost + last.one.step(j + first.dj, last.dj) + last.slack - discount
                          : cost;
        }
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
        const Leg at = leg(m);
        Sweep sweep{
            at, at, false, low, high, local, 0.0, request_.bounds.from(m.value), inside(low, high)};
        if (!prepare(sweep)) return;
        for (Count i = sweep.is.from; i <= std::min(sweep.is.to, last_) && done(); ++i)
            relax_row(sweep, i);
        if (done() && relaxed_ - since_ > 8 * live_ + (1 << 16)) trim(m.value, false);
    }

    // Relaxes bridges over a cell that is left out: steps of its two ends, one after the other, for
    // less than they cost by `discount` (docs/distance.md, theorem 6 (d)). Rows are taken from the
    // last one down, so that no chain crosses it twice.
    void relax_bridges(const Value& low, const Value& high, double discount) {
        Sweep sweep{leg(low),
                    leg(high),
                    true,
                    low,
                    high,
                    false,
                    discount,
                    request_.bounds.from(high.value),
                    inside(low, high)};
        if (!prepare(sweep)) return;
        for (Count i = std::min(sweep.is.to, last_); i >= sweep.is.from && done(); --i)
            relax_row(sweep, i);
    }

    // Whether there is anything to relax; if so, gives it a name and finds what its ones cost.
    bool prepare(Sweep& sweep) {
        keep_within_budget(sweep);
        if (sweep.is.empty() || sweep.js.empty()) return false;
        const Leg& first = sweep.first;
        names_.push_back({first.di, first.dj, sweep.di - first.di, sweep.dj - first.dj});
        find_costs_of_ones(sweep);
        return true;
    }

    // Sets the range of nodes from which a step can be part of a chain within budget, and within
    // the tube if there is one.
    void keep_within_budget(Sweep& sweep) {
        const Leg &first = sweep.first, &last = sweep.last;
        const double left = budget_ - least_.paid - sweep.rest;
        const double room = left - first.slack, room_last = left - last.slack;
        if (std::min(room, room_last) < 0) return;
        if (sweep.di > zeros_.size() || sweep.dj > ones_.size()) return;
        Range is{first.zero.first(room), last.zero.last(room_last) - sweep.di};
        Range js{first.one.first(room), last.one.last(room_last) - sweep.dj};
        if (sweep.di == 0) is.from = zeros_.size();  // no value after 1 to take a zero at
        const Tube& tube = request_.tube;
        if (!tube.empty()) {
            const double v = first.value.value;
            const double reach = std::min(tube.reach, 2 * (sweep.high.value - sweep.low.value));
            is.from = std::max(is.from, tube.placed_below(v - reach));
            is.to = std::min(is.to, tube.placed_below(v + reach) + 1);
            if (is.empty()) return;
            js.from = std::max(js.from, tube.low[is.from]);
            js.to = std::min(js.to, tube.high[is.to]);
        }
        // rows that lag further behind never get there within budget
        first_ = std::max(first_, first.zero.first(left));
        is.from = std::max(is.from, first_);
        sweep.is = is;
        sweep.js = js;
    }

    // What a step costs by its ones and its slack, for each j that it may begin at; less by the
    // rounding of a step, so that no chain seems longer than it is.
    void find_costs_of_ones(const Sweep& sweep) {
        const auto [from, to] = sweep.js;
        const double rounds = real(sweep.di + sweep.dj);
        const double margin = rounds * round_margin + budget_ * 0x1p-50;
        costs_.resize(std::max(costs_.size(), index(to - from + 1)));
        own_ = {costs_.data(), from};
        for (Count j = from; j <= to; ++j) own_[j] = sweep.cost_of_ones(j) - margin;
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
    void relax_row(const Sweep& sweep, Count i) {
        if ((i & 1023) == 0) poll();
        Range js = begins(sweep, i);
        if (js.empty() || !done()) return;
        Row& from = row(i);
        const double shared = sweep.cost_of_zeros(i);
        const double missed = std::max(0.0, -sweep.last.zero.at(i + sweep.di));
        const double enough = budget_ - sweep.rest - missed;
        const auto too_long = [&](Count j) {
            const double length = *from.length(j) + (shared + own_[j]);
            return length > enough ||
                   length + problem_.bias_after(i + sweep.di, j + sweep.dj) > budget_;
        };
        while (!js.empty() && too_long(js.from)) ++js.from;
        while (!js.empty() && too_long(js.to)) --js.to;
        if (js.empty()) return;
        const auto name = static_cast<std::int32_t>(names_.size() - 1);
        if (sweep.di == 0) return climb(from, {js.from, sweep.js.to}, shared, name);
        Row& to = row(i + sweep.di);
        const Range reached{js.from + sweep.dj, js.to + sweep.dj};
        if (!reserve(to, reached.from, reached.to)) return;
        const Count steps = js.to - js.from + 1;
        shorten(from.length(js.from), &own_[js.from], shared, name, to.length(reached.from),
                to.by(reached.from), steps);
        relaxed_ += steps;
        to.use(reached.from, reached.to);
        last_ = std::max(last_, i + sweep.di);
    }

    // Steps of value 1 stay in their row.
    void climb(Row& in, Range js, double shared, std::int32_t name) {
        if (!reserve(in, js.from, js.to + 1)) return;
        for (Count j = js.from; j <= js.to; ++j) {
            const double candidate = *in.length(j) + (shared + own_[j]);
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
        for (auto* numbers : {&lead_, &down_, &up_}) numbers->resize(lag_.size());
        const Stretch lag{lag_.data(), js.from}, lead{lead_.data(), js.from};
        const Stretch down{down_.data(), js.from}, up{up_.data(), js.from};
        for (Count j = js.from; j <= js.to; ++j) {
            const double cost = one.at(j);
            lag[j] = std::max(0.0, -cost);
            lead[j] = std::max(0.0, cost);
            down[j] = ones_.lowered(j, 1.0);
            up[j] = ones_.raised(j, 1.0);
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
            const double lowered = zeros_.lowered(i, 0.0), raised = zeros_.raised(i, 0.0);
            const auto dead = [&](Count j) {
                const double bias = std::max(lowered + down[j], raised + up[j]);
                return *here.length(j) + lag[j] > enough || *here.length(j) + bias > budget_;
            };
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

    // What the other end has found at the next value, if anything.
    const Snapshot* next_snapshot() const {
        const auto& taken = request_.snapshots.taken;
        return taken && compared_ < taken->size() ? &(*taken)[taken->size() - 1 - compared_]
                                                  : nullptr;
    }

    // Drops nodes from which, by a search from the other end, no chain within budget goes on: at
    // each value of its snapshots, when all values up to there have been relaxed and none above.
    void compare_up_to(const Value& v, bool included) {
        for (const Snapshot* next; (next = next_snapshot()) != nullptr; ++compared_) {
            if (!(next->mirrored_below(v) || (included && next->mirrored_at(v)))) return;
            compare(*next, budget_ + request_.snapshots.excess);
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

    // Bridges a cell that is left out, if that costs anything. False if a snapshot lies inside:
    // chains must have a node there to be compared at.
    bool bridged(const Value& low, const Value& high, double cost) {
        if (!request_.bridges) return true;
        compare_up_to(low, true);
        if (const Snapshot* next = next_snapshot(); next && next->mirrored_below(high))
            return false;
        if (cost > 0) relax_bridges(low, high, cost);
        return true;
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
        if (steep <= request_.steepest) {
            const double cost = inside_cost(zeros_, zeros, low.value, high.value) +
                                inside_cost(ones_, ones, low.value, high.value);
            if (cost <= request_.cut * real(m.r) && bridged(low, high, cost)) {
                if (cost > 0) cuts_.add(cost, real(m.r));
                cuts_.add_inverted(steep);
                return State::left_out;
            }
        }
        return points_inside * request_.heavy >= problem_.rounds() ? State::heavy : State::light;
    }

    // Follows the last steps back from the end to the start. Nodes may have got shorter since they
    // were gone on from, so it may cross a cell twice: with bridges, a chain but not always the one
    // whose length was found.
    void trace() {
        Count i = zeros_.size(), j = ones_.size();
        if (!row(i).has(j)) return;
        found_.length = *row(i).length(j);
        if (found_.length == unreached || kept_ > 0) return;
        while (i || j) {
            const Name step = names_[index(*row(i).by(j))];
            if (step.then_di || step.then_dj) add_step(step.then_di, step.then_dj);
            add_step(step.di, step.dj);
            i -= step.di + step.then_di;
            j -= step.dj + step.then_dj;
        }
        std::reverse(found_.zeros.begin(), found_.zeros.end());
        std::reverse(found_.ones.begin(), found_.ones.end());
    }

    void add_step(Count di, Count dj) {
        found_.zeros.push_back(di);
        found_.ones.push_back(dj);
    }
};

}  // namespace truecast::chains

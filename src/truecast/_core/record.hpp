// What a service remembers of its forecasts: figures before and after, in bounded memory.
//
// The plain version is reference/record.py: sums are added in the same order there, so both agree
// to the last bit. A state of rows is the same however they are cut into batches.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "entries.hpp"

namespace truecast::record {

constexpr std::size_t window = 200;  // outcomes that the rolling average looks back on

// Cells are fine near 0 and 1: their edges are at 2 u^2 and 1 - 2 (1 - u)^2.
inline std::size_t cell_of(double p, std::size_t cells) {
    const double u = p <= 0.5 ? std::sqrt(0.5 * p) : 1.0 - std::sqrt(0.5 * (1.0 - p));
    return std::min(static_cast<std::size_t>(u * static_cast<double>(cells)), cells - 1);
}

// Sums over rounds of one forecast: the model's, or the answered one.
struct Half {
    double brier = 0.0, log = 0.0;  // the log score of those where it is finite
    std::int64_t refuted = 0;       // the others: exactly 0 or 1, and wrong
    std::vector<std::int64_t> zeros, ones;
    std::vector<double> said;  // sums of forecasts

    explicit Half(std::size_t cells) : zeros(cells), ones(cells), said(cells) {}

    void add(double p, bool y) {
        const double right = y ? p : 1.0 - p;
        brier += (1.0 - right) * (1.0 - right);
        if (right > 0.0)
            log -= std::log(right);
        else
            ++refuted;
        const std::size_t at = cell_of(p, zeros.size());
        ++(y ? ones : zeros)[at];
        said[at] += p;
    }

    Entries entries() {
        return {{"brier", brier, 0, most_rounds, "sum of Brier scores"},
                {"log", log, 0, huge, "sum of log scores, of those that are finite"},
                {"refuted", refuted, 0, most_rounds, "forecasts of 0 or 1 that were wrong"},
                {"zeros", zeros, 0, most_rounds, "outcomes 0 by cell"},
                {"ones", ones, 0, most_rounds, "outcomes 1 by cell"},
                {"said", said, 0, most_rounds, "sums of forecasts by cell"}};
    }
};

// One outcome, or one class: its halves, and the rolling average beside them.
struct Side {
    Half before, after;
    std::int64_t ones = 0;
    double rolling = 0.0;              // sum of Brier scores of the average
    std::vector<std::uint8_t> recent;  // outcomes, the oldest at `oldest` once there are enough
    std::int64_t oldest = 0, recent_ones = 0;

    explicit Side(std::size_t cells) : before(cells), after(cells) {}

    double average() const {
        if (recent.empty()) return 0.5;
        return static_cast<double>(recent_ones) / static_cast<double>(recent.size());
    }

    void add(double said_before, double said_after, double average, bool y) {
        before.add(said_before, y);
        after.add(said_after, y);
        const double miss = (y ? 1.0 : 0.0) - average;
        rolling += miss * miss;
        ones += y;
        recent_ones += y;
        if (recent.size() < window) {
            recent.push_back(y);
            return;
        }
        std::uint8_t& out = recent[static_cast<std::size_t>(oldest)];
        recent_ones -= out;
        out = y;
        oldest = (oldest + 1) % static_cast<std::int64_t>(window);
    }

    Entries entries() {
        return {{"ones", ones, 0, most_rounds, "outcomes 1"},
                {"rolling", rolling, 0, most_rounds, "sum of Brier scores of the rolling average"},
                {"recent", recent, 0, 1, "the last outcomes"},
                {"oldest", oldest, 0, window, "where the oldest of them is"},
                {"recent_ones", recent_ones, 0, window, "how many of them are 1"}};
    }
};

// A forecast that awaits its outcome.
struct Open {
    std::int64_t at = 0;
    std::vector<double> numbers;  // before, after, and the rolling averages, of each class
    std::vector<std::uint32_t> groups;
};

// Sums of one group, of the only class or of the most probable one.
struct GroupSums {
    std::int64_t rounds = 0, right = 0;
    double before = 0.0, after = 0.0;

    void add(bool came, double said_before, double said_after) {
        ++rounds;
        right += came;
        before += said_before;
        after += said_after;
    }
};

struct Record {
    std::size_t classes, cells, most;
    std::vector<Side> sides;
    std::vector<GroupSums> groups;
    GroupSums all;
    double noise = 0.0;  // the sum of p (1 - p)
    std::int64_t issued = 0, given_up = 0;
    std::map<std::int64_t, Open> open;  // by number, so oldest first

    Record(std::size_t classes_, std::size_t cells_, std::size_t most_)
        : classes(classes_), cells(cells_), most(most_), sides(classes_, Side(cells_)) {}

    void issue(std::int64_t at, const double* before, const double* after,
               std::vector<std::uint32_t> of) {
        if (open.size() >= most) give_up(open.begin()->first);
        Open made{at, {}, std::move(of)};
        made.numbers.reserve(3 * classes);
        made.numbers.insert(made.numbers.end(), before, before + classes);
        made.numbers.insert(made.numbers.end(), after, after + classes);
        for (const Side& side : sides) made.numbers.push_back(side.average());
        open.emplace_hint(open.end(), issued++, std::move(made));
    }

    // False if it is not awaited.
    bool resolve(std::int64_t ticket, std::int64_t outcome) {
        const auto found = open.find(ticket);
        if (found == open.end()) return false;
        const bool one = classes == 1;
        const double* before = found->second.numbers.data();
        const double* after = before + classes;
        const double* average = after + classes;
        for (std::size_t k = 0; k < classes; ++k)
            sides[k].add(before[k], after[k], average[k],
                         outcome == (one ? 1 : static_cast<std::int64_t>(k)));
        const std::size_t top =
            static_cast<std::size_t>(std::max_element(after, after + classes) - after);
        const double said_before = one ? before[0] : *std::max_element(before, before + classes);
        const bool came = outcome == (one ? 1 : static_cast<std::int64_t>(top));
        all.add(came, said_before, after[top]);
        noise += after[top] * (1.0 - after[top]);
        for (const std::uint32_t g : found->second.groups) {
            if (g >= groups.size()) groups.resize(g + 1);
            groups[g].add(came, said_before, after[top]);
        }
        open.erase(found);
        return true;
    }

    bool give_up(std::int64_t ticket) {
        if (open.erase(ticket) == 0) return false;
        ++given_up;
        return true;
    }
};

}  // namespace truecast::record

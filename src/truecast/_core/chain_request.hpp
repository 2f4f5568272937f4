// What a search is asked for, and what it finds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "chain_points.hpp"
#include "chain_snapshots.hpp"

namespace truecast::chains {

// What the rest of a chain costs at least from each value on, known from a search from the other
// end (docs/distance.md, theorem 3).
struct Bounds {
    const double *values = nullptr, *lengths = nullptr;
    std::size_t size = 0;

    double from(double v) const {
        const double *end = values + size;
        const double *place = std::lower_bound(values, end, v);
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

// What to search for.
struct Request {
    double budget;    // chains longer than this may be overlooked
    double cut;       // a cell may be left out if that costs a chain at most this much a round
    double steepest;  // and this much a round if that is for groups with zeros above, ones below
    bool bridges;     // bridge the cells that are left out (docs/distance.md, theorem 6 (d))
    bool profile;     // the bounds on the way serve a search from the other end
    double slop;      // more than the errors in a comparison
    Count heavy;      // a value is heavy if one in `heavy` of the points lies between its parents
    Bounds bounds;
    Tube tube;
    Snapshots snapshots;
};

enum class Outcome { done, out_of_time, out_of_memory, stopped };

// What was found.
struct Found {
    Outcome outcome = Outcome::done;
    double length = unreached;  // of the shortest chain that was found
    // what leaving out cells costs at most (docs/distance.md, theorem 6): chains within the budget
    // less this are found, ...
    double loss = 0;
    double excess = 0;                    // ... and lengths exceed theirs by this at most
    std::vector<Count> zeros, ones;       // of the steps of that chain
    std::vector<double> values, lengths;  // no chain is shorter than the length up to the value
    std::shared_ptr<std::vector<Snapshot>> snapshots = std::make_shared<std::vector<Snapshot>>();
    Count peak = 0;  // bytes
};

}  // namespace truecast::chains

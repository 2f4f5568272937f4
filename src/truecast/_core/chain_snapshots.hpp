// What a search from one end knows of each node, kept for a search from the other end
// (docs/distance.md, theorem 8 (d)).
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "chain_points.hpp"

namespace truecast::chains {

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
    bool mirrored_at(const Value& v) const { return (r_ - s_) * v.r == v.s * r_; }

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
    double excess = 0.0;
};

}  // namespace truecast::chains

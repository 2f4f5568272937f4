// The field on the arc of residuals at sparse knots: a binary tree on the digits of their keys
// (docs/adaptive.md).
//
// Residuals are integers, and every sum is made anew from those beneath it: nothing drifts, the
// order of additions does not matter, and a saved field gives the same sums bit for bit. A knot
// whose residual is 0 adds zeros, as if it were not there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "arc.hpp"
#include "fetch.hpp"

namespace truecast {

using Key = std::int64_t;  // of a point of the arc: its angle over pi, times 2^40
constexpr Key arc_end = Key{1} << 40;

// The forecast at a key. From both ends, so that it never falls as the key grows.
inline double forecast_at(Key key) {
    if (key > arc_end / 2) return 1.0 - forecast_at(arc_end - key);
    const double s =
        std::sin(static_cast<double>(key) * (3.14159265358979323846 / (2.0 * arc_end)));
    return s * s;
}

constexpr double angle_of_key = 3.14159265358979323846 / arc_end;

inline double angle_of(double p) { return 2.0 * std::atan2(std::sqrt(p), std::sqrt(1.0 - p)); }

// The key nearest to this angle among the multiples of `step`.
inline Key key_near(double angle, Key step) {
    const double at = angle * (arc_end / 3.14159265358979323846) / static_cast<double>(step);
    return std::min(static_cast<Key>(std::floor(at + 0.5)) * step, arc_end);
}

class Field {
  public:
    static constexpr double unit = 4294967296.0;  // of the residuals

  private:
    using Node = std::int32_t;  // >= 0: an inner one; else the complement of a knot's number

    struct Sums {
        double side[2];  // of residuals * rise, and of residuals * fall
    };

    // The keys beneath it agree down to `bit`, which tells the children apart.
    struct Inner {
        std::int64_t digits;  // one of these keys, times 64, and the bit
        Node child[2];
        double aside[2] = {
            0.0,
            0.0};  // what the way into a child leaves behind: the upper's far sum, the lower's near
        double other[2] = {0.0, 0.0};  // the lower's far sum, the upper's near

        Inner(Key key, int bit, Node low, Node high) : digits(key * 64 + bit), child{low, high} {}
        Key key() const { return digits >> 6; }
        int bit() const { return static_cast<int>(digits & 63); }
        void take(bool upper, const Sums& sums) {
            aside[!upper] = sums.side[upper];
            other[upper] = sums.side[!upper];
        }
        Sums sums() const { return {{aside[1] + other[1], other[0] + aside[0]}}; }
    };

  public:
    struct Knot {
        Key key;
        std::int64_t residual;
        double rise, fall;

      private:
        friend class Field;
        Sums sums() const {
            const double r = static_cast<double>(residual) / unit;
            return {{r * rise, r * fall}};
        }
    };

    // The way to a key, as long as nothing is added elsewhere.
    struct Path {
        Key key;
        double up_to,
            beyond;        // sums of residual * rise up to the key, and of residual * fall above it
        const Knot* knot;  // at this very key, if there is one

        Shape shape() const {
            return knot != nullptr ? Shape(knot->rise, knot->fall) : Shape(forecast_at(key));
        }
        double field(const Shape& shape) const { return shape.fall * up_to + shape.rise * beyond; }

      private:
        friend class Field;
        Node nodes[42], last;  // inner ones from the root on, and where the walk ended
        std::size_t depth;
    };

    std::size_t knots() const { return knots_.size(); }
    void look(Key key, Path& path) const {
        Walk walk(*this, key, path);
        while (walk.next()) {
        }
    }

    // The way to a key, node by node: ways in several fields, gone together, wait for memory
    // together, as each node says where the next one is.
    class Walk {
        const Inner* inners;
        const Knot* knots;  // none if there are none
        Path* path;
        Key key;
        Node at;
        double sum[2] = {0.0, 0.0};

      public:
        Walk(const Field& of, Key key_, Path& to)
            : inners(of.inners_.data()),
              knots(of.knots_.empty() ? nullptr : of.knots_.data()),
              path(&to),
              key(key_),
              at(of.root_) {
            to.key = key;
            to.depth = 0;
            to.knot = nullptr;
        }

        // Go on by one node: whether there are more. At the end the path is whole.
        bool next() {
            if (at < 0) return end();
            const Inner& inner = inners[at];
            const int bit = inner.bit();
            if ((inner.key() ^ key) >> (bit + 1) != 0) {
                const Sums all = inner.sums();
                (key > inner.key() ? sum[1] += all.side[0] : sum[0] += all.side[1]);
                return tell();
            }
            const bool upper = key >> bit & 1;
            sum[upper] +=
                inner.aside[upper];  // no branch: it would be guessed wrong half of the time
            path->nodes[path->depth++] = at;
            at = inner.child[upper];
            return true;
        }

        // Have the next node fetched from memory.
        void fetch() const {
            if (at >= 0)
                truecast::fetch(inners + at, sizeof(Inner));
            else if (knots != nullptr)
                truecast::fetch(knots + ~at, sizeof(Knot));
        }

      private:
        bool end() {
            if (knots == nullptr) return tell();
            const Knot& knot = knots[~at];
            const Sums own = knot.sums();
            (key >= knot.key ? sum[1] += own.side[0] : sum[0] += own.side[1]);
            if (key == knot.key) path->knot = &knot;
            return tell();
        }
        bool tell() {
            path->last = at;
            path->up_to = sum[1];
            path->beyond = sum[0];
            return false;
        }
    };

    // Add to the residual at the key that the path leads to, and that has this shape.
    void add(Path& path, const Shape& shape, std::int64_t residual) {
        if (path.knot == nullptr) grow(path, shape);
        knots_[static_cast<std::size_t>(~path.last)].residual += residual;
        Sums sums = sums_of(path.last);
        for (std::size_t i = path.depth; i-- > 0;) {
            Inner& inner = inners_[static_cast<std::size_t>(path.nodes[i])];
            inner.take(path.key >> inner.bit() & 1, sums);
            sums = inner.sums();
        }
    }

    // Have the first knots and inner nodes fetched from memory: this will be looked at soon.
    void fetch() const {
        truecast::fetch(knots_.data(), std::min(knots_.size(), small) * sizeof(Knot));
        truecast::fetch(inners_.data(), std::min(inners_.size(), small) * sizeof(Inner));
    }

    // Call `visit` with every knot, from the lowest to the highest.
    template <typename Visit>
    void each(Visit visit) const {
        if (!knots_.empty()) each(root_, visit);
    }

  private:
    static constexpr std::size_t small = 16;

    std::vector<Knot> knots_;
    std::vector<Inner> inners_;
    Node root_ = -1;

    Sums sums_of(Node node) const {
        if (node >= 0) return inners_[static_cast<std::size_t>(node)].sums();
        return knots_[static_cast<std::size_t>(~node)].sums();
    }

    // Make the knot, and an inner node above it and where the walk ended.
    void grow(Path& path, const Shape& shape) {
        const bool first = knots_.empty();
        if (knots_.size() >= std::numeric_limits<Node>::max()) throw std::bad_alloc();
        if (knots_.size() == knots_.capacity()) {
            const std::size_t room = 2 * knots_.size() + 2;
            inners_.reserve(room - 1);
            knots_.reserve(room);
        }
        knots_.push_back({path.key, 0, shape.rise, shape.fall});
        const Node knot = ~static_cast<Node>(knots_.size() - 1), other = path.last;
        path.last = knot;
        path.knot = &knots_.back();
        if (first) {
            root_ = knot;
            return;
        }
        const Key beside = other < 0 ? knots_[static_cast<std::size_t>(~other)].key
                                     : inners_[static_cast<std::size_t>(other)].key();
        const int bit = std::ilogb(static_cast<double>(beside ^ path.key));
        const bool upper = path.key >> bit & 1;
        Inner inner(path.key, bit, upper ? other : knot, upper ? knot : other);
        inner.take(!upper, sums_of(other));
        inners_.push_back(inner);
        const Node made = static_cast<Node>(inners_.size() - 1);
        if (path.depth == 0) {
            root_ = made;
        } else {
            Inner& parent = inners_[static_cast<std::size_t>(path.nodes[path.depth - 1])];
            parent.child[path.key >> parent.bit() & 1] = made;
        }
        path.nodes[path.depth++] = made;
    }

    template <typename Visit>
    void each(Node node, Visit& visit) const {
        if (node < 0) return visit(knots_[static_cast<std::size_t>(~node)]);
        const Inner& inner = inners_[static_cast<std::size_t>(node)];
        each(inner.child[0], visit);
        each(inner.child[1], visit);
    }
};

}  // namespace truecast

// The field on the arc of residuals at sparse knots: a tree on the octal digits of their keys (docs/adaptive.md).
//
// Residuals are integers, and every sum is made anew from those beneath it: nothing drifts, the order of additions does
// not matter, and a saved field gives the same sums bit for bit. A knot whose residual is 0 adds zeros, as if it were
// not there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "arc.hpp"

namespace truecast {

using Key = std::int64_t;  // of a point of the arc: its angle over pi, times 2^40
constexpr Key arc_end = Key{1} << 40;

// The forecast at a key. From both ends, so that it never falls as the key grows.
inline double forecast_at(Key key) {
    if (key > arc_end / 2) return 1.0 - forecast_at(arc_end - key);
    const double s = std::sin(static_cast<double>(key) * (3.14159265358979323846 / (2.0 * arc_end)));
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

    struct Knot {
        Key key;
        std::int64_t residual;
        double rise, fall;
    };

  private:
    using Node = std::int32_t;  // >= 0: an inner one; else the complement of a knot's number, or nothing
    static constexpr Node nothing = std::numeric_limits<Node>::min();
    static constexpr std::size_t deepest = 14;  // digits of a key

  public:
    // The way to a key, as long as nothing is added elsewhere.
    struct Path {
        Key key;
        double up_to, beyond;  // sums of residual * rise up to the key, and of residual * fall above it
        const Knot* knot;      // at this very key, if there is one

        Shape shape() const { return knot != nullptr ? Shape(knot->rise, knot->fall) : Shape(forecast_at(key)); }
        double field(const Shape& shape) const { return shape.fall * up_to + shape.rise * beyond; }

      private:
        friend class Field;
        Node nodes[deepest], last;  // inner ones from the root on, and where the walk ended
        std::size_t depth;
    };

    std::size_t knots() const { return knots_.size(); }
    void look(Key key, Path& path) const {
        path.key = key;
        path.last = root_;
        path.depth = 0;
        path.knot = nullptr;
        path.up_to = path.beyond = 0.0;
        while (path.last >= 0) {
            const Inner& inner = inners_[static_cast<std::size_t>(path.last)];
            if (inner.differs(key)) {
                (key > inner.key() ? path.up_to += inner.total(0) : path.beyond += inner.total(1));
                return;
            }
            const std::size_t digit = inner.digit(key);
            path.up_to += inner.before[digit];
            path.beyond += inner.after[digit];
            path.nodes[path.depth++] = path.last;
            path.last = inner.child[digit];
        }
        if (path.last == nothing) return;
        const Knot& knot = knots_[static_cast<std::size_t>(~path.last)];
        const double r = static_cast<double>(knot.residual) / unit;
        (key >= knot.key ? path.up_to += r * knot.rise : path.beyond += r * knot.fall);
        if (key == knot.key) path.knot = &knot;
    }

    // Add to the residual at the key that the path leads to.
    void add(Path& path, std::int64_t residual) {
        if (path.knot == nullptr) grow(path);
        Knot& knot = knots_[static_cast<std::size_t>(~path.last)];
        knot.residual += residual;
        const double r = static_cast<double>(knot.residual) / unit;
        double near = r * knot.rise, far = r * knot.fall;
        for (std::size_t i = path.depth; i-- > 0;) {
            Inner& inner = inners_[static_cast<std::size_t>(path.nodes[i])];
            inner.take(inner.digit(path.key), near, far);
            near = inner.total(0);
            far = inner.total(1);
        }
    }

    // Call `visit` with every knot, from the lowest to the highest.
    template <typename Visit>
    void each(Visit visit) const {
        each(root_, visit);
    }

  private:
    // The keys beneath it agree but for their digits from one on, which tells the children apart.
    struct Inner {
        std::int64_t common;  // one of these keys, times 64, and the bit where the digit begins
        Node child[8];
        double near[8] = {}, far[8] = {};      // of each child: sums of residual * rise, and of residual * fall
        double before[8] = {}, after[8] = {};  // of the children below it, and of those above it

        Inner(Key key, int bit) : common(key * 64 + bit) { std::fill(child, child + 8, nothing); }
        Key key() const { return common >> 6; }
        std::size_t digit(Key other) const { return static_cast<std::size_t>(other >> (common & 63) & 7); }
        bool differs(Key other) const { return ((common >> 6) ^ other) >> ((common & 63) + 3) != 0; }
        double total(int side) const { return side == 0 ? before[7] + near[7] : after[0] + far[0]; }

        void take(std::size_t digit, double its_near, double its_far) {
            near[digit] = its_near;
            far[digit] = its_far;
            for (std::size_t i = 1; i < 8; ++i) before[i] = before[i - 1] + near[i - 1];
            for (std::size_t i = 7; i-- > 0;) after[i] = after[i + 1] + far[i + 1];
        }
    };

    std::vector<Knot> knots_;
    std::vector<Inner> inners_;
    Node root_ = nothing;

    // Make the knot; where the walk ended, put it, or an inner node above it and what was there.
    void grow(Path& path) {
        const Shape shape = path.shape();
        if (knots_.size() >= std::numeric_limits<Node>::max()) throw std::bad_alloc();
        if (inners_.size() == inners_.capacity()) inners_.reserve(inners_.size() + inners_.size() / 2 + 1);
        knots_.push_back({path.key, 0, shape.rise, shape.fall});
        const Node knot = ~static_cast<Node>(knots_.size() - 1), other = path.last;
        path.last = knot;
        path.knot = &knots_.back();
        if (other == nothing) return link(path, knot);
        const Inner* inner = other >= 0 ? &inners_[static_cast<std::size_t>(other)] : nullptr;
        const Knot& beside = knots_[static_cast<std::size_t>(inner != nullptr ? 0 : ~other)];
        const Key key = inner != nullptr ? inner->key() : beside.key;
        const double r = static_cast<double>(beside.residual) / unit;
        const double near = inner != nullptr ? inner->total(0) : r * beside.rise;
        const double far = inner != nullptr ? inner->total(1) : r * beside.fall;
        Inner made(path.key, std::ilogb(static_cast<double>(key ^ path.key)) / 3 * 3);
        made.child[made.digit(path.key)] = knot;
        made.child[made.digit(key)] = other;
        made.take(made.digit(key), near, far);
        inners_.push_back(made);
        const Node above = static_cast<Node>(inners_.size() - 1);
        link(path, above);
        path.nodes[path.depth++] = above;
    }

    // Put a node where the path ends.
    void link(const Path& path, Node node) {
        if (path.depth == 0) {
            root_ = node;
        } else {
            Inner& parent = inners_[static_cast<std::size_t>(path.nodes[path.depth - 1])];
            parent.child[parent.digit(path.key)] = node;
        }
    }

    template <typename Visit>
    void each(Node node, Visit& visit) const {
        if (node == nothing) return;
        if (node < 0) return visit(knots_[static_cast<std::size_t>(~node)]);
        for (const Node child : inners_[static_cast<std::size_t>(node)].child) each(child, visit);
    }
};

}  // namespace truecast

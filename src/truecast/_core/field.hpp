// The field on the arc of residuals at sparse knots: a binary tree on the digits of their keys
// (docs/adaptive.md).
//
// Residuals are integers, and every sum is made anew from those beneath it: nothing drifts, the
// order of additions does not matter, and a saved field gives the same sums bit for bit. A knot
// whose residual is 0 adds zeros, as if it were not there.
//
// Of a field with many knots the top of the tree is complete: halving the arc again and again gives
// about as many cells as there are knots. The sums of these halves lie one after the other, and a
// key tells where, so they are read at once; nodes that say where the next one is are left for keys
// of the same cell. Halves without a knot add zeros: the sums are the same bit for bit.
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
#include "vectors.hpp"

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

// The key nearest to this angle among the multiples of `step`, a power of two: to multiply by its
// inverse is to divide by it, and sooner done.
inline Key key_near(double angle, Key step) {
    const double inverse = 1.0 / static_cast<double>(step);
    const double at = angle * (arc_end / 3.14159265358979323846) * inverse;
    return std::min(static_cast<Key>(at + 0.5) * step, arc_end);
}

class Field {
  public:
    static constexpr double unit = 4294967296.0;  // of the residuals

  private:
    using Node = std::int32_t;  // >= 0: an inner one; else the complement of a knot's number
    static constexpr Node none = std::numeric_limits<Node>::min();

    struct Sums {
        Two side = {0.0, 0.0};  // of residuals * rise, and of residuals * fall

        Sums operator+(const Sums& more) const { return {side + more.side}; }
    };

    // What the keys of two halves add up to.
    struct Halves {
        Sums half[2];

        Sums sums() const { return half[0] + half[1]; }
        // What the way into a half leaves behind: into the upper one the lower's rise, else the
        // upper's fall, and 0. No branch, which would be guessed wrong half of the time.
        Two aside(bool upper) const {
            static constexpr Two parts[2] = {{0.0, 1.0}, {1.0, 0.0}};
            return Two{half[0].side[0], half[1].side[1]} * parts[upper];
        }
        // The sums of both, now that those of one have changed.
        Sums take(bool upper, const Sums& sums) {
            half[upper] = sums;
            return sums + half[!upper];
        }
    };

    // The keys beneath it agree down to `bit`, which tells the children apart.
    struct Inner : Halves {
        std::int64_t digits;  // one of these keys, times 64, and the bit
        Node child[2];

        Inner(Key key, int bit, Node low, Node high) : digits(key * 64 + bit), child{low, high} {}
        Key key() const { return digits >> 6; }
        int bit() const { return static_cast<int>(digits & 63); }
    };

    struct alignas(32) Aligned : Halves {};  // within a line of the cache

    // The complete top of the tree, if there is one.
    struct Top {
        // The first tells the end of the arc from all other keys; then come those of the whole arc,
        // of its lower and upper half, of their halves.
        std::vector<Aligned> halves;
        std::vector<Node> cells;  // where the tree goes on in each smallest half; last, at the end
        int below = end_bit;      // digits of a key that are left to these trees

        static constexpr int end_bit = 40;

        bool empty() const { return cells.empty(); }
        std::size_t count() const { return halves.size(); }  // of cells, the end not counted
        std::size_t cell(Key key) const { return static_cast<std::size_t>(key >> below); }

        // Calls `use(number of halves, whether the key is in the upper one)`, from the whole arc
        // to the cell of the key. A number is that of the halves above, and one more digit.
        template <typename Use>
        void down(Key key, Use use) const {
            use(std::size_t{0}, key == arc_end);
            if (key == arc_end) return;
            constexpr int before = 64 - end_bit;
            std::uint64_t digits = static_cast<std::uint64_t>(key) << before;
            std::size_t number = 1;
            for (const std::size_t end = count(); number < end; digits <<= 1) {
                const bool upper = digits >> 63;
                use(number, upper);
                number = 2 * number + upper;
            }
        }
        template <typename Use>
        void up(Key key, Use use) const {
            if (key != arc_end)
                for (std::size_t number = (count() | cell(key)); number > 1; number /= 2)
                    use(number / 2, (number & 1) != 0);
            use(std::size_t{0}, key == arc_end);
        }

        // Of the halves that this digit of a key parts.
        static std::size_t number(Key key, int bit) {
            return static_cast<std::size_t>((arc_end | key) >> (bit + 1));
        }
    };

  public:
    struct alignas(32) Knot {  // within a line of the cache
        Key key;
        std::int64_t residual;
        double rise, fall;

      private:
        friend class Field;
        Sums sums() const {
            const double r = static_cast<double>(residual) / unit;
            return {Two{r * rise, r * fall}};
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
        fetch_end(key);  // on its way while sums are read
        Walk walk(*this, key, path);
        walk.pass_top();
        walk.finish();
    }

    // The way to a key, in two steps: ways in several fields, gone together, wait for memory
    // together.
    class Walk {
        const Field* field;
        Path* path;
        Key key;
        Node at;
        Two sum = {0.0, 0.0};  // up to the key, and beyond it

      public:
        Walk(const Field& of, Key key_, Path& to)
            : field(&of), path(&to), key(key_), at(of.root_) {}

        // First: through the top, if there is one.
        void pass_top() {
            const Top& top = field->top_;
            if (top.empty()) return;
            at = top.cells[top.cell(key)];
            const Aligned* const halves = top.halves.data();
            Two all = sum;
            top.down(key,
                     [&](std::size_t number, bool upper) { all += halves[number].aside(upper); });
            sum = all;
        }

        // Then from node to node: the path is whole.
        void finish() {
            path->key = key;
            path->depth = 0;
            path->knot = nullptr;
            while (at >= 0) {
                const Inner& inner = field->inners_[static_cast<std::size_t>(at)];
                const int bit = inner.bit();
                if ((inner.key() ^ key) >> (bit + 1) != 0) {
                    add(key > inner.key(), inner.sums());
                    return tell();
                }
                const bool upper = key >> bit & 1;
                sum += inner.aside(upper);
                path->nodes[path->depth++] = at;
                at = inner.child[upper];
            }
            if (at != none) {
                const Knot& knot = field->knots_[static_cast<std::size_t>(~at)];
                add(key >= knot.key, knot.sums());
                if (key == knot.key) path->knot = &knot;
            }
            tell();
        }

        // Have what the second step begins with fetched from memory.
        void fetch_node() const { field->fetch(at); }

      private:
        // What is all below the key, or all above it.
        void add(bool below, const Sums& sums) {
            sum += below ? Two{sums.side[0], 0.0} : Two{0.0, sums.side[1]};
        }
        void tell() const {
            path->last = at;
            path->up_to = sum[0];
            path->beyond = sum[1];
        }
    };

    // Add to the residual at the key that the path leads to, and that has this shape.
    void add(Path& path, const Shape& shape, std::int64_t residual) {
        if (path.knot == nullptr) grow(path, shape);
        knots_[static_cast<std::size_t>(~path.last)].residual += residual;
        Sums sums = sums_of(path.last);
        for (std::size_t i = path.depth; i-- > 0;) {
            Inner& inner = inners_[static_cast<std::size_t>(path.nodes[i])];
            sums = inner.take(path.key >> inner.bit() & 1, sums);
        }
        if (top_.empty()) return;
        Aligned* const halves = top_.halves.data();
        top_.up(path.key,
                [&](std::size_t number, bool upper) { sums = halves[number].take(upper, sums); });
    }

    // Have the first knots and inner nodes fetched from memory: this will be looked at soon.
    void fetch() const {
        truecast::fetch(knots_.data(), std::min(knots_.size(), small) * sizeof(Knot));
        truecast::fetch(inners_.data(), std::min(inners_.size(), small) * sizeof(Inner));
    }

    // Have the way to a key fetched, which will be looked for soon: the last halves of the top, as
    // the first are in the cache anyway; and, when they are there, what they lead to.
    void fetch_way(Key key) const {
        if (top_.empty()) return fetch();
        if (key == arc_end) return;
        truecast::fetch(&top_.cells[top_.cell(key)], sizeof(Node));
        const int to = std::min(top_.below + deepest, Top::end_bit);
        for (int bit = top_.below; bit < to; ++bit)
            truecast::fetch(&top_.halves[Top::number(key, bit)], sizeof(Halves));
    }
    void fetch_end(Key key) const {
        if (!top_.empty()) fetch(top_.cells[top_.cell(key)]);
    }

    // Call `visit` with every knot, from the lowest to the highest.
    template <typename Visit>
    void each(Visit visit) const {
        if (top_.empty()) return each(root_, visit);
        for (const Node cell : top_.cells) each(cell, visit);
    }

  private:
    static constexpr std::size_t small = 16;  // a field with more knots has a top
    static constexpr int deepest = 9;  // digits of a key: the halves that these part fill a cache

    std::vector<Knot> knots_;
    std::vector<Inner> inners_;
    Node root_ = none;   // unless there is a top
    Node spare_ = none;  // an inner node that is not in use; its first child is the next one
    Top top_;

    void fetch(Node node) const {
        if (node >= 0)
            truecast::fetch(&inners_[static_cast<std::size_t>(node)], sizeof(Inner));
        else if (node != none)
            truecast::fetch(&knots_[static_cast<std::size_t>(~node)], sizeof(Knot));
    }

    Sums sums_of(Node node) const {
        if (node == none) return {};
        if (node >= 0) return inners_[static_cast<std::size_t>(node)].sums();
        return knots_[static_cast<std::size_t>(~node)].sums();
    }
    Key key_of(Node node) const {
        return node < 0 ? knots_[static_cast<std::size_t>(~node)].key
                        : inners_[static_cast<std::size_t>(node)].key();
    }

    // Make the knot, and an inner node above it and where the walk ended.
    void grow(Path& path, const Shape& shape) {
        make_room(path);
        knots_.push_back({path.key, 0, shape.rise, shape.fall});
        const Node knot = ~static_cast<Node>(knots_.size() - 1), other = path.last;
        Node& from = parent_of(path);
        path.last = knot;
        path.knot = &knots_.back();
        if (other == none) {
            from = knot;
            return;
        }
        const int bit = std::ilogb(static_cast<double>(key_of(other) ^ path.key));
        const bool upper = path.key >> bit & 1;
        Inner inner(path.key, bit, upper ? other : knot, upper ? knot : other);
        inner.take(!upper, sums_of(other));
        from = path.nodes[path.depth++] = kept(inner);
    }

    // For one more knot, so that nothing fails after it.
    void make_room(Path& path) {
        if (knots_.size() >= std::numeric_limits<Node>::max()) throw std::bad_alloc();
        if (knots_.size() == knots_.capacity()) knots_.reserve(2 * knots_.size() + 2);
        if (inners_.size() == inners_.capacity()) inners_.reserve(2 * inners_.size() + 1);
        if (knots_.size() < std::max(top_.count(), small)) return;
        widen();
        look(path.key, path);
    }

    // The place that names the last node of a path.
    Node& parent_of(const Path& path) {
        if (path.depth == 0) return top_.empty() ? root_ : top_.cells[top_.cell(path.key)];
        Inner& parent = inners_[static_cast<std::size_t>(path.nodes[path.depth - 1])];
        return parent.child[path.key >> parent.bit() & 1];
    }

    Node kept(const Inner& inner) {
        const Node spare = spare_;
        if (spare == none) {
            inners_.push_back(inner);
            return static_cast<Node>(inners_.size() - 1);
        }
        Inner& place = inners_[static_cast<std::size_t>(spare)];
        spare_ = place.child[0];
        place = inner;
        return spare;
    }

    // Make the top, and halve its cells until there are more of them than knots.
    void widen() {
        std::size_t cells = 1;
        while (cells <= knots_.size()) cells *= 2;
        top_.halves.reserve(cells);
        top_.cells.reserve(cells + 1);
        if (top_.empty()) {
            top_.halves.resize(1);
            top_.cells.resize(2, none);
            split(root_, Top::end_bit, 0, 0);
        }
        while (top_.count() < cells) deepen();
    }

    // From the last cell to the first, so that none is written over before it is split.
    void deepen() {
        const std::size_t count = top_.count();
        top_.halves.resize(2 * count);
        top_.cells.resize(2 * count + 1, top_.cells.back());
        --top_.below;
        for (std::size_t cell = count; cell-- > 0;)
            split(top_.cells[cell], top_.below, count + cell, 2 * cell);
    }

    // Split the keys of a node by this digit into a lower and an upper half, with their sums. The
    // keys agree in all higher digits.
    void split(Node node, int bit, std::size_t number, std::size_t lower) {
        Halves& halves = top_.halves[number];
        Node* const cells = &top_.cells[lower];
        if (node >= 0 && inners_[static_cast<std::size_t>(node)].bit() == bit) {
            Inner& inner = inners_[static_cast<std::size_t>(node)];
            halves = inner;
            std::copy(inner.child, inner.child + 2, cells);
            inner.child[0] = spare_;
            spare_ = node;
            return;
        }
        cells[0] = cells[1] = none;
        if (node == none) return;
        const bool upper = key_of(node) >> bit & 1;
        cells[upper] = node;
        halves.take(upper, sums_of(node));
    }

    template <typename Visit>
    void each(Node node, Visit& visit) const {
        if (node == none) return;
        if (node < 0) return visit(knots_[static_cast<std::size_t>(~node)]);
        const Inner& inner = inners_[static_cast<std::size_t>(node)];
        each(inner.child[0], visit);
        each(inner.child[1], visit);
    }
};

}  // namespace truecast

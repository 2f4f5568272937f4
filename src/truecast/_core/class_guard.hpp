// The guard for K classes: one field a class and group, forecasts that sum to 1, one budget for the
// sum of all energies (docs/classes.md, theorem 2).
//
// A forecast p with the outcome j adds Sum price_k + 2 (tilt_j - Sum p_k tilt_k) to that sum. Where
// all tilts agree the second part is 0, so mass goes from classes whose tilt is low to the one
// whose tilt is highest, until the worst outcome fits. If that fails, class_levels.hpp finds where
// they agree. Everything else, the account, late outcomes and the state, is that of the guard for
// one field.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "class_levels.hpp"
#include "guard.hpp"

namespace truecast {

// The part that one class has in a forecast.
struct Share {
    double said = 0.0;
    Key key = 0;
    double tilt = 0.0;   // of all its fields together
    double price = 0.0;  // for one of them
    double off = 0.0;    // how far on the arc it is from its key
};

// A forecast for all classes.
struct ClassPlaced {
    Members of{0};            // the groups it belongs to
    std::vector<double> aim;  // with groups: the hint, and the rows that their offsets made of it
    std::vector<Share> shares;
    std::int64_t worst = 0;  // what it can add to the energies, as things were when it was made
    std::int64_t spill = 0;  // of this, what the budget did not allow for
    std::size_t moves = 0;   // between two classes, until it fitted

    // The first of the largest.
    std::size_t top() const {
        const auto less = [](const Share& a, const Share& b) { return a.said < b.said; };
        return static_cast<std::size_t>(std::max_element(shares.begin(), shares.end(), less) -
                                        shares.begin());
    }
};

inline const Members everyone_alone{0};

// The rounds in which a class is the most probable, one field a class and group. A record: it has
// no budget.
struct Tops : Guard {
    using Guard::Guard;
    std::size_t likely = 0;         // the class that the last hint had on top,
    std::vector<Field::Path> ways;  // and the ways to it, one a group

    // `known`: the way is the one that is kept. If it leads elsewhere, the guard has moved.
    void enter_top(std::size_t group, std::uint32_t field, bool known, Key key, const Shape& shape,
                   const Miss& miss) {
        Field::Path& way = ways[group];
        if (!known || way.key != key) groups[field].field.look(key, way);
        enter(field, way, shape, miss);
    }
};

// The field of class k in group g is `groups[g * K + k]`, and likewise among `tops`.
struct ClassGuard : Guard {
    // Moves between two classes: with the keys of hints, and then with keys as fine as there are.
    std::size_t coarse_moves = 8, fine_moves = 64;  // for each class
    static constexpr int halvings = 46;

    Members classes;            // of everyone: their fields
    std::vector<Nudge> pushes;  // one a class
    Tops tops;
    ClassPlaced made;  // what `asked` is the sum of

    ClassGuard(std::size_t count, double budget_, bool nudges_)
        : Guard(budget_, nudges_),
          pushes(count),
          tops(budget_, nudges_),
          shapes(count, Shape(0.5)) {
        fields = static_cast<double>(count);
        groups.resize(count);
        tops.groups.resize(count);
        for (std::uint32_t k = 0; k < count; ++k) classes.push_back(k);
        // Two classes are the recalibrator for two.
        for (Nudge& push : pushes) push.drive = count > 2 ? Nudge::of_many : Nudge::of_two;
    }

    std::size_t count() const { return pushes.size(); }

    std::size_t group_count() const { return groups.size() / count(); }
    void add_group() { resize(groups.size() + count()); }
    void drop_group() { resize(groups.size() - count()); }

    // Without all other groups.
    ClassGuard copy_of(const std::vector<std::uint32_t>& some) const {
        ClassGuard made_(count(), budget, nudges);
        static_cast<Balance&>(made_) = *this;
        made_.pushes = pushes;
        made_.coarse_moves = coarse_moves;
        made_.fine_moves = fine_moves;
        made_.groups.clear();
        made_.tops.groups.clear();
        for (const std::uint32_t g : fields_of(some)) {
            made_.groups.push_back(groups[g]);
            made_.tops.groups.emplace_back();  // only outcomes need them
        }
        return made_;
    }

    // All fields of these groups, in order.
    Members fields_of(const Members& of) const {
        Members all;
        for (const std::uint32_t g : of)
            for (std::size_t k = 0; k < count(); ++k)
                all.push_back(static_cast<std::uint32_t>(number(g, k)));
        return all;
    }

    // Have fetched from memory what a row will need that comes two rounds later, and what one needs
    // that comes next.
    void look_ahead(const Aim* later, const Aim* next) const {
        const Key unit = step();
        auto group = groups.begin();
        for (std::size_t k = 0; k < count(); ++k, ++group) {
            if (later != nullptr) group->field.fetch_way(key_near(later[k].angle, unit));
            if (next != nullptr) group->field.fetch_end(key_near(next[k].angle, unit));
        }
    }

    // `hint` sums to 1; `to` has its groups.
    void place(const Aim* hint, ClassPlaced& to, bool beside_asked = false) {
        const Key unit = step();
        const double more = room(beside_asked);
        ways.resize(count() * to.of.size());
        aim.resize(count());
        angles.resize(count());
        for (std::size_t k = 0; k < count(); ++k) {
            aim[k] = hint[k].hint;
            angles[k] = hint[k].angle;
        }
        walks.clear();
        to.aim.clear();
        if (nudges) {
            if (to.of.size() > 1) offset_all(to);
            walk_all(unit, everyone_alone);
            go_down();
            nudge_all(unit);
            for (std::size_t k = 0; k < count(); ++k) angles[k] = hint[k].angle_at(aim[k]);
        }
        walk_all(unit, to.of);
        walk_tops(unit, to.of);
        go_down();
        to.shares.resize(count());
        to.spill = 0;
        to.moves = 0;
        for (std::size_t k = 0; k < count(); ++k) to.shares[k] = share(to.of, k, aim[k], angles[k]);
        Verdict found = judge(to, more);
        if (!found.fits) {
            const bool moved = ascend(to, unit, coarse_moves * count(), more) ||
                               ascend(to, 1, fine_moves * count(), more + 1.0 / parts);
            const double left = all_left(more);
            found = judge(to, left);
            if (!found.fits && !moved) {
                level(to, unit);
                found = judge(to, left);
            }
            if (!found.fits) to.spill = parts_up(found.worst - budget * found.price - left);
        }
        to.worst = parts_up(found.worst);
    }

    const ClassPlaced& predict(const Aim* hint, const Members& of) {
        issued = false;  // a level takes memory: if there is none, nothing is asked for
        made.of = of;
        place(hint, made);
        ask();
        issued = true;
        return made;
    }

    // `observe` is about what was made.
    void ask() {
        asked = account(made);
        asked_of = fields_of(made.of);
    }

    void observe(std::size_t y) {
        count_in(made);
        learn(made, y, {}, false);
        wait();
        issued = false;
    }

    const ClassPlaced& round(const Aim* hint, const Members& of, std::size_t y) {
        made.of = of;
        place(hint, made);
        count_in(made);
        learn(made, y, {}, true);
        wait();
        issued = false;
        return made;
    }

    void issue(const Aim* hint, ClassPlaced& to) {
        place(hint, to, true);
        count_in(to);
        wait();
        reserved += to.worst;
        each_of(to, await);
    }

    void settle_late(const ClassPlaced& of, std::size_t y, Weight weight) {
        each_of(of, known);
        reserved -= of.worst;
        learn(of, y, weight, false);
    }

    void give_up(const ClassPlaced& of) {
        each_of(of, lose);
        reserved -= of.worst;
    }

    // As if it had not been given up.
    void take_back(const ClassPlaced& of) {
        each_of(of, find);
        reserved += of.worst;
    }

    // As one forecast of all classes, for the account: it counts once for each field.
    Placed account(const ClassPlaced& of) const {
        Placed all;
        all.worst = of.worst;
        for (const Share& each : of.shares) all.price += each.price;
        all.price /= fields;
        return all;
    }

  private:
    struct Verdict {
        double worst, price;
        bool fits;
    };

    std::size_t number(std::size_t group, std::size_t k) const { return group * count() + k; }

    void resize(std::size_t all) {
        groups.resize(all);
        tops.groups.resize(all);
    }

    // Calls `use` with every field that a forecast is of, those of its top label too, and with what
    // it says there.
    template <typename Use>
    void each_of(const ClassPlaced& made_, Use use) {
        const std::size_t top = made_.top();
        for (const std::uint32_t g : made_.of) {
            for (std::size_t k = 0; k < count(); ++k)
                use(groups[number(g, k)], made_.shares[k].said);
            use(tops.groups[number(g, top)], made_.shares[top].said);
        }
    }

    static void await(Group& group, double said) {
        ++group.late;
        group.unknown += at_worst(said);
    }
    static void known(Group& group, double said) {
        --group.late;
        group.unknown -= at_worst(said);
    }
    static void lose(Group& group, double) {
        --group.late;
        ++group.lost;
    }
    static void find(Group& group, double) {
        ++group.late;
        --group.lost;
    }

    void wait() {
        for (Nudge& push : pushes) push.wait(everyone().late);
    }

    // What the budget did not allow for counts as excess: later forecasts need not make up for it.
    void count_in(const ClassPlaced& of) {
        of.of.size() == 1 ? grant(account(of), classes) : grant(account(of), fields_of(of.of));
        grow(excess, of.spill);
    }

    // Of all that is left, `more` is the share that a row may take as a rule. Rounded down.
    double all_left(double more) const {
        const double crowded = 1.0 + static_cast<double>(everyone().late) / crowd;
        return more / boldness * crowded * (1.0 - 0x1p-50);
    }

    Share share(const Members& of, std::size_t k, double p, Key unit) {
        const double angle = angle_of(p);
        return share_at(of, k, p, angle, key_near(angle, unit));
    }

    Share share_at(const Members& of, std::size_t k, double p, double angle, Key key) {
        for (std::size_t i = 0; i < of.size(); ++i)
            groups[number(of[i], k)].field.look(key, ways[number(i, k)]);
        return share(of, k, p, angle);
    }

    // At the key that its ways lead to.
    Share share(const Members& of, std::size_t k, double p, double angle) {
        Share found;
        found.said = p;
        found.key = ways[k].key;
        found.off = Placed::off_by(angle, found.key);
        const Shape shape = shapes[k] = ways[k].shape();
        double field = ways[k].field(shape);
        for (std::size_t i = 1; i < of.size(); ++i) field += ways[number(i, k)].field(shape);
        const auto members = static_cast<double>(of.size());
        found.price = Placed::price_of(p, shape);
        found.tilt = field + members * (shape.rise * shape.fall) * (0.5 - p);
        return found;
    }

    // What the worst outcome adds.
    Verdict judge(const ClassPlaced& of, double more) const {
        double price = 0.0, mean = 0.0, most = of.shares[0].tilt;
        for (const Share& each : of.shares) {
            price += each.price;
            mean += each.said * each.tilt;
            most = std::max(most, each.tilt);
        }
        price *= static_cast<double>(of.of.size());
        const double worst = price + 2.0 * (most - mean);
        return {worst, price, worst <= budget * price + more};
    }

    // Move mass between two classes, again and again, until the worst outcome fits: whether it
    // does.
    bool ascend(ClassPlaced& to, Key unit, std::size_t most, double more) {
        std::vector<Share>& shares = to.shares;
        for (std::size_t k = 0; unit == 1 && k < count(); ++k)
            shares[k] = share(to.of, k, shares[k].said, unit);
        for (std::size_t done = 0; done < most; ++done) {
            std::size_t high = 0;
            for (std::size_t k = 1; k < count(); ++k)
                if (shares[k].tilt > shares[high].tilt) high = k;
            // Of what is missing, the part of one class: the largest of them.
            std::size_t low = high;
            double part = 0.0;
            for (std::size_t k = 0; k < count(); ++k) {
                const double lacks = shares[k].said * (shares[high].tilt - shares[k].tilt);
                if (lacks > part) {
                    part = lacks;
                    low = k;
                }
            }
            if (low == high) return true;
            ++to.moves;
            if (move(to, high, low, unit, more)) return true;
        }
        return false;
    }

    // From `low` to `high`, in steps that double until their tilts agree, or the worst outcome
    // fits; then by halving, back to where it just fits. Both are on a quarter of a circle, whose
    // ends are all of it for one of them. Returns whether the worst outcome fits. Invariant: at
    // `from` the tilt of `high` is the higher; at `to` it is not, or `to` fits.
    bool move(ClassPlaced& made_, std::size_t high, std::size_t low, Key unit, double more) {
        std::vector<Share>& shares = made_.shares;
        const double both = std::min(shares[high].said + shares[low].said, 1.0);  // rounding
        const double near = static_cast<double>(unit) * angle_of_key / 2.0;
        double from = std::atan2(std::sqrt(shares[high].said), std::sqrt(shares[low].said));
        double to = from;
        bool fits = false, rises = true;
        const auto look = [&](double angle) {
            const double sine = std::sin(angle), cosine = std::cos(angle);
            const bool mostly_low = cosine > sine;
            const double less = both * (mostly_low ? sine * sine : cosine * cosine);
            shares[high] = share(made_.of, high, mostly_low ? less : both - less, unit);
            shares[low] = share(made_.of, low, mostly_low ? both - less : less, unit);
            fits = judge(made_, more).fits;
            rises = shares[high].tilt > shares[low].tilt;
        };
        for (double width = near; rises && !fits; width *= 2.0) {
            if (to >= half_pi) return false;  // all of it
            from = to;
            to = std::min(from + width, half_pi);
            look(to);
        }
        bool good = fits;
        for (int k = 0; k < halvings && !(good && to - from < 1.5 * near); ++k) {
            const double middle = 0.5 * (from + to);
            if (!(middle > from && middle < to)) break;
            look(middle);
            good = good || fits;
            (fits || !rises ? to : from) = middle;
        }
        look(to);
        return fits;
    }

    // The last resort, if moves lead nowhere: a height that all tilts pass in cells of the arc that
    // can sum to 1. Each class says a point of its cell or of the one below.
    void level(ClassPlaced& to, Key unit) {
        const Key cell = std::max(unit / 4, arc_end / static_cast<Key>(Levels::most_cells));
        const auto cells = static_cast<std::size_t>(arc_end / cell);
        std::vector<double> tilts;
        tilts.reserve(count() * (cells + 1));
        for (std::size_t k = 0; k < count(); ++k)
            for (Key key = 0; key <= arc_end; key += cell) tilts.push_back(tilt_at(to.of, k, key));
        const auto [who, crossings] = Levels(tilts, count()).find();
        const double height = tilts[who * (cells + 1) + crossings[who]];
        std::vector<double> low, high;
        double least = 0.0, most = 0.0;
        for (const std::size_t crossing : crossings) {
            const std::size_t from =
                crossing > cells ? cells : std::max(crossing, std::size_t{2}) - 2;
            low.push_back(forecast_at(static_cast<Key>(from) * cell));
            high.push_back(forecast_at(static_cast<Key>(std::min(crossing, cells)) * cell));
            least += low.back();
            most += high.back();
        }
        const double part = std::clamp((1.0 - least) / (most - least), 0.0, 1.0);
        for (std::size_t k = 0; k < count(); ++k) {
            const double said = low[k] + part * (high[k] - low[k]);
            const Key end = std::min(static_cast<Key>(crossings[k]) * cell, arc_end);
            const bool inside = k != who && crossings[k] > 0 && crossings[k] <= cells;
            const Key key = inside ? passes(to.of, k, end - cell, end, height, said > 0.5) : end;
            to.shares[k] = share_at(to.of, k, said, angle_of(said), key);
        }
    }

    double tilt_at(const Members& of, std::size_t k, Key key) {
        return share_at(of, k, forecast_at(key), 0.0, key).tilt;
    }

    // Of the two neighbouring keys between which the tilt passes this height, the one above it, or
    // the one below.
    Key passes(const Members& of, std::size_t k, Key from, Key to, double height, bool above) {
        const bool falls = tilt_at(of, k, from) >= tilt_at(of, k, to);
        while (to - from > 1) {
            const Key middle = from + (to - from) / 2;
            ((tilt_at(of, k, middle) > height) == falls ? from : to) = middle;
        }
        return falls == above ? from : to;
    }

    // The ways to the keys of `aim`, in all fields of these groups: where they begin.
    void walk_all(Key unit, const Members& of) {
        for (std::size_t k = 0; k < count(); ++k) {
            const Key key = key_near(angles[k], unit);
            for (std::size_t i = 0; i < of.size(); ++i)
                walks.emplace_back(groups[number(of[i], k)].field, key, ways[number(i, k)]);
        }
    }

    // The same for the top label, which is this class unless the guard moves.
    void walk_tops(Key unit, const Members& of) {
        const auto most = std::max_element(aim.begin(), aim.end());
        tops.likely = static_cast<std::size_t>(most - aim.begin());
        const Key key = key_near(angles[tops.likely], unit);
        tops.ways.resize(of.size());
        for (std::size_t i = 0; i < of.size(); ++i)
            walks.emplace_back(tops.groups[number(of[i], tops.likely)].field, key, tops.ways[i]);
    }

    // The fields are more than a cache holds: go down in all of them together, so that they wait
    // for memory together.
    void go_down() {
        for (Field::Walk& walk : walks) {
            walk.pass_top();
            walk.fetch_node();
        }
        for (Field::Walk& walk : walks) walk.finish();
        walks.clear();
    }

    // The offset of class k in the i-th of a row's groups, everyone not counted.
    auto offset_at(const Members& of) {
        return [this, &of](std::size_t i, std::size_t k) -> Offset& {
            return groups[number(of[i + 1], k)].offset;
        };
    }

    void offset_all(ClassPlaced& to) {
        to.aim.resize((1 + offsets::scales) * count());
        std::copy(aim.begin(), aim.end(), to.aim.begin());
        offsets.apply_row(to.aim.data(), count(), to.of.size() - 1, offset_at(to.of), aim.data(),
                          to.aim.data() + count());
        for (std::size_t k = 0; k < count(); ++k) angles[k] = angle_of(aim[k]);
    }

    void nudge_all(Key unit) {
        double total = 0.0;
        auto each = groups.cbegin();
        for (std::size_t k = 0; k < count(); ++k, ++each) {
            const Group& group = *each;
            const double own = static_cast<double>(group.energy) / parts, hint = aim[k];
            aim[k] = pushes[k].apply(hint, own, [&](double p) {
                if (p == hint) return ways[k].field(ways[k].shape());
                Field::Path path;
                group.field.look(key_near(angle_of(p), unit), path);
                return path.field(path.shape());
            });
            total += aim[k];
        }
        for (double& p : aim) p = std::min(p / total, 1.0);
    }

    // `at_once`: the ways to the keys are those of `place`.
    void learn(const ClassPlaced& of, std::size_t y, Weight weight, bool at_once) {
        const std::int64_t before = energy;
        const std::size_t top = of.top();
        ways.resize(count() * of.of.size());
        tops.ways.resize(of.of.size());
        for (std::size_t k = 0; k < count(); ++k) {
            const Share& each = of.shares[k];
            if (!at_once) {
                groups[k].field.look(each.key, ways[k]);
                shapes[k] = ways[k].shape();
            }
            const Shape shape = shapes[k];
            const Miss miss(each.said, each.off, y == k);
            for (std::size_t i = 0; i < of.of.size(); ++i) {
                const auto into = static_cast<std::uint32_t>(number(of.of[i], k));
                Field::Path& way = ways[number(i, k)];
                if (!at_once && i > 0) groups[into].field.look(each.key, way);
                enter(into, way, shape, miss);
                if (k == top)
                    tops.enter_top(i, into, at_once && k == tops.likely, each.key, shape, miss);
            }
            if (nudges) pushes[k].learn(each.price, weight.effect);
        }
        if (!of.aim.empty()) learn_offsets(of, y, weight, at_once);
        grow(excess, std::max(energy - before - of.worst, std::int64_t{0}));
    }

    void learn_offsets(const ClassPlaced& of, std::size_t y, Weight weight, bool at_once) {
        const double lag = pushes[0].lag;
        const auto all = static_cast<double>(everyone().rounds);
        std::vector<double> part;
        for (std::size_t i = 1; lag > 0.0 && i < of.of.size(); ++i)
            part.push_back(static_cast<double>(groups[number(of.of[i], 0)].rounds) / all);
        offsets.learn_row(of.aim.data(), count(), of.of.size() - 1, offset_at(of.of), part.data(),
                          y, weight.weight, of.aim.data() + count(), lag, at_once);
    }

    static constexpr double half_pi = 1.57079632679489661923;
    std::vector<Field::Path> ways;    // of the last `place`, group by group
    std::vector<Shape> shapes;        // of the keys that they lead to, one a class
    std::vector<double> aim, angles;  // where the forecast will be
    std::vector<Field::Walk> walks;
};

}  // namespace truecast

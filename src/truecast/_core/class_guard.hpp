// The guard for K classes: one field a class, forecasts that sum to 1, one budget for the sum of
// all energies (docs/classes.md, theorem 2).
//
// A forecast p with the outcome j adds Sum price_k + 2 (tilt_j - Sum p_k tilt_k) to that sum. Where
// all tilts agree the second part is 0, so mass goes from classes whose tilt is low to the one
// whose tilt is highest, until the worst outcome fits. Everything else, the account, late outcomes
// and the state, is that of the guard for one field.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "guard.hpp"

namespace truecast {

// The part that one class has in a forecast.
struct Share {
    double said = 0.0;
    Key key = 0;
    double tilt = 0.0, price = 0.0;
    double off = 0.0;  // how far on the arc it is from its key
};

// A forecast for all classes.
struct ClassPlaced {
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

// The rounds in which a class is the most probable, one group a class. A record: it has no budget.
struct Tops : Guard {
    using Guard::Guard;
    void enter_top(std::uint32_t k, Key key, const Shape& shape, const Miss& miss) {
        Field::Path way;
        groups[k].field.look(key, way);
        enter(k, way, shape, miss);
    }
};

struct ClassGuard : Guard {
    // Moves between two classes: with the keys of hints, and then with keys as fine as there are.
    static constexpr std::size_t coarse_moves = 8, fine_moves = 64;  // for each class
    static constexpr int halvings = 46;

    Members classes;            // all of them
    std::vector<Nudge> pushes;  // one a class
    Tops tops;
    ClassPlaced made;  // what `asked` is the sum of

    ClassGuard(std::size_t count, double budget_, bool nudges_)
        : Guard(budget_, nudges_), pushes(count), tops(budget_, nudges_) {
        fields = static_cast<double>(count);
        groups.resize(count);
        tops.groups.resize(count);
        for (std::uint32_t k = 0; k < count; ++k) classes.push_back(k);
    }

    std::size_t count() const { return groups.size(); }

    // `hint` sums to 1.
    void place(const double* hint, ClassPlaced& to, bool beside_asked = false) {
        const Key unit = step();
        const double more = room(beside_asked);
        ways.resize(count());
        aim.assign(hint, hint + count());
        look_ahead(unit);
        if (nudges) {
            nudge_all(unit);
            look_ahead(unit);
        }
        to.shares.resize(count());
        to.spill = 0;
        to.moves = 0;
        for (std::size_t k = 0; k < count(); ++k)
            to.shares[k] = share(k, aim[k], angles[k], keys[k]);
        Verdict found = judge(to.shares, more);
        if (!found.fits) {
            if (!ascend(to, unit, coarse_moves * count(), more))
                ascend(to, 1, fine_moves * count(), more + 1.0 / parts);
            found = judge(to.shares, more);
        }
        to.worst = parts_up(found.worst);
        if (!found.fits) to.spill = parts_up(found.worst - budget * found.price - more);
    }

    const ClassPlaced& predict(const double* hint) {
        place(hint, made);
        asked = account(made);
        asked_of = classes;
        issued = true;
        return made;
    }

    void observe(std::size_t y) {
        count_in(made);
        learn(made, y, {}, false);
        wait();
        issued = false;
    }

    const ClassPlaced& round(const double* hint, std::size_t y) {
        place(hint, made);
        count_in(made);
        learn(made, y, {}, true);
        wait();
        issued = false;
        return made;
    }

    void issue(const double* hint, ClassPlaced& to) {
        place(hint, to, true);
        count_in(to);
        wait();
        reserved += to.worst;
        for (std::size_t k = 0; k < count(); ++k) await(groups[k], to.shares[k].said);
        const std::size_t top = to.top();
        await(tops.groups[top], to.shares[top].said);
    }

    void settle_late(const ClassPlaced& of, std::size_t y, Weight weight) {
        for (std::size_t k = 0; k < count(); ++k) known(groups[k], of.shares[k].said);
        const std::size_t top = of.top();
        known(tops.groups[top], of.shares[top].said);
        reserved -= of.worst;
        learn(of, y, weight, false);
    }

    void give_up(const ClassPlaced& of) {
        for (Group& group : groups) lose(group);
        lose(tops.groups[of.top()]);
        reserved -= of.worst;
    }

    // As one forecast of all classes, for the account.
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

    static void await(Group& group, double said) {
        ++group.late;
        group.unknown += at_worst(said);
    }
    static void known(Group& group, double said) {
        --group.late;
        group.unknown -= at_worst(said);
    }
    static void lose(Group& group) {
        --group.late;
        ++group.lost;
    }

    void wait() {
        for (Nudge& push : pushes) push.wait(everyone().late);
    }

    // What the budget did not allow for counts as excess: later forecasts need not make up for it.
    void count_in(const ClassPlaced& of) {
        grant(account(of), classes);
        grow(excess, of.spill);
    }

    Share share(std::size_t k, double p, Key unit) {
        const double angle = angle_of(p);
        return share(k, p, angle, key_near(angle, unit));
    }

    Share share(std::size_t k, double p, double angle, Key key) {
        Share found;
        found.said = p;
        found.key = key;
        found.off = Placed::off_by(angle, found.key);
        groups[k].field.look(found.key, ways[k]);
        const Shape shape = ways[k].shape();
        found.price = Placed::price_of(p, shape);
        found.tilt = ways[k].field(shape) + (shape.rise * shape.fall) * (0.5 - p);
        return found;
    }

    // What the worst outcome adds.
    Verdict judge(const std::vector<Share>& shares, double more) const {
        double price = 0.0, mean = 0.0, most = shares[0].tilt;
        for (const Share& each : shares) {
            price += each.price;
            mean += each.said * each.tilt;
            most = std::max(most, each.tilt);
        }
        const double worst = price + 2.0 * (most - mean);
        return {worst, price, worst <= budget * price + more};
    }

    // Move mass between two classes, again and again, until the worst outcome fits: whether it
    // does.
    bool ascend(ClassPlaced& to, Key unit, std::size_t most, double more) {
        std::vector<Share>& shares = to.shares;
        for (std::size_t k = 0; unit == 1 && k < count(); ++k)
            shares[k] = share(k, shares[k].said, unit);
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
            if (move(shares, high, low, unit, more)) return true;
        }
        return false;
    }

    // From `low` to `high`, in steps that double until their tilts agree, or the worst outcome
    // fits; then by halving, back to where it just fits. Both are on a quarter of a circle, whose
    // ends are all of it for one of them. Returns whether the worst outcome fits. Invariant: at
    // `from` the tilt of `high` is the higher; at `to` it is not, or `to` fits.
    bool move(std::vector<Share>& shares, std::size_t high, std::size_t low, Key unit,
              double more) {
        const double both = std::min(shares[high].said + shares[low].said, 1.0);  // rounding
        const double near = static_cast<double>(unit) * angle_of_key / 2.0;
        double from = std::atan2(std::sqrt(shares[high].said), std::sqrt(shares[low].said));
        double to = from;
        bool fits = false, rises = true;
        const auto look = [&](double angle) {
            const double sine = std::sin(angle), cosine = std::cos(angle);
            const bool mostly_low = cosine > sine;
            const double less = both * (mostly_low ? sine * sine : cosine * cosine);
            shares[high] = share(high, mostly_low ? less : both - less, unit);
            shares[low] = share(low, mostly_low ? both - less : less, unit);
            fits = judge(shares, more).fits;
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

    // The fields of many classes are more than a cache holds: go down in all of them together, so
    // that they wait for memory together.
    void look_ahead(Key unit) {
        const std::size_t top =
            static_cast<std::size_t>(std::max_element(aim.begin(), aim.end()) - aim.begin());
        angles.resize(count());
        keys.resize(count());
        probes.resize(count() + 1);
        for (std::size_t k = 0; k < count(); ++k) {
            angles[k] = angle_of(aim[k]);
            keys[k] = key_near(angles[k], unit);
            probes[k] = Field::Probe(groups[k].field, keys[k]);
        }
        probes.back() = Field::Probe(tops.groups[top].field, keys[top]);
        for (bool more = true; more;) {
            more = false;
            for (Field::Probe& probe : probes) more = probe.next() || more;
        }
    }

    void nudge_all(Key unit) {
        double total = 0.0;
        for (std::size_t k = 0; k < count(); ++k) {
            const Group& group = groups[k];
            const double own = static_cast<double>(group.energy) / parts, hint = aim[k];
            aim[k] = pushes[k].apply(hint, own, [&](double p) {
                Field::Path path;
                group.field.look(p == hint ? keys[k] : key_near(angle_of(p), unit), path);
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
        for (std::size_t k = 0; k < count(); ++k) {
            const Share& each = of.shares[k];
            if (!at_once) {
                ways.resize(count());
                groups[k].field.look(each.key, ways[k]);
            }
            const Shape shape = ways[k].shape();
            const Miss miss(each.said, each.off, y == k);
            enter(static_cast<std::uint32_t>(k), ways[k], shape, miss);
            if (k == top) tops.enter_top(static_cast<std::uint32_t>(k), each.key, shape, miss);
            if (nudges) pushes[k].learn(each.price, weight.effect);
        }
        grow(excess, std::max(energy - before - of.worst, std::int64_t{0}));
    }

    static constexpr double half_pi = 1.57079632679489661923;
    std::vector<Field::Path> ways;    // of the last `place`
    std::vector<double> aim, angles;  // where the forecast will be
    std::vector<Key> keys;
    std::vector<Field::Probe> probes;
};

}  // namespace truecast

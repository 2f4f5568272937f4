// The guard: follows hints while the energy of what was said stays within a budget
// (docs/adaptive.md, theorem 6).
//
// Energies, prices and what is reserved are integers over 2^20, rounded against us: their sums are
// exact, so rounds can be undone, and saved and learned in any order.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "field.hpp"
#include "nudge.hpp"
#include "offsets.hpp"

namespace truecast {

constexpr double parts = 1048576.0;  // 2^20: energies are whole numbers of these parts

constexpr double most_parts =
    0x1p58;  // of one energy, so that sums of some are far from what an integer holds

inline std::int64_t parts_up(double energy) {
    return static_cast<std::int64_t>(
        std::clamp(std::ceil(energy * parts), -most_parts, most_parts));
}
inline std::int64_t parts_down(double energy) {
    return static_cast<std::int64_t>(std::min(std::floor(energy * parts), most_parts));
}

// The numbers of the groups that a round belongs to. Everyone is group 0, and always the first.
using Members = std::vector<std::uint32_t>;

// What rounds change of a group, but for its residuals.
struct Counts {
    std::int64_t rounds = 0, late = 0, lost = 0;
    std::int64_t energy = 0;
    std::uint64_t hidden = 0, unknown = 0;
    double squared_error = 0.0;
    Offset offset;

    // `knots`: those of its residuals.
    Entries entries(std::int64_t& knots) {
        return {
            {"rounds", rounds, 0, most_rounds / 2, "outcomes learned"},
            {"late", late, 0, half_range, "forecasts whose outcomes are awaited"},
            {"lost", lost, 0, half_range, "forecasts whose outcomes are awaited no longer"},
            {"energy", energy, -2 * half_range, 2 * half_range,
             "over 2^20: of the residuals, each round's part rounded up"},
            {"hidden", hidden, 0, 2 * half_range,
             "over 2^40: what crediting forecasts to knots can hide of the energy"},
            {"unknown", unknown, 0, 2 * half_range,
             "over 2^32: what forecasts without an outcome add at worst"},
            {"squared_error", squared_error, 0, most_rounds / 2, "sum of (forecast - outcome)^2"},
            {"knots", knots, 0, 0x1p28, "how many of the knots are its own"}};
    }
};

struct Group : Counts {
    Field field;
};

// A hint, and where it is on the arc: both can be known before the guard is at it.
struct Aim {
    double hint, angle;

    Aim(double given) : hint(given + 0.0), angle(angle_of(hint)) {}  // -0.0 becomes 0.0
    double angle_at(double p) const { return p == hint ? angle : angle_of(p); }
};

// A forecast, and where it was made.
struct Placed {
    double said = 0.0;
    Key key = 0;
    std::int64_t worst = 0;  // what it can add to the energy, as things were when it was made
    double price = 0.0;      // p (1 - p) K, for one group
    double off = 0.0;        // how far on the arc it is from its key
    double hint = 0.0;       // what it was made from, for the offsets of groups,
    Offsets::Notes notes{};  // and what they said of it

    // What it was made from, in few bits: it may have to be saved.
    void wait() {
        hint = hints::rough(hint);
        for (double& note : notes) note = hints::rough(note);
    }

    static double off_by(double angle, Key key) {
        return std::fabs(angle - static_cast<double>(key) * angle_of_key);
    }
    static double price_of(double p, const Shape& shape) {
        return p * (1.0 - p) * (shape.rise * shape.fall);
    }
};

// What rounds change of a guard, but for its groups.
struct Balance {
    std::int64_t energy = 0;   // of all groups
    std::int64_t counted = 0;  // forecasts made, each once for every group it is in
    std::int64_t granted = 0, reserved = 0, excess = 0, most_late = 0;
    Nudge nudge;
    Offsets offsets;

    // Those that are not sums over groups.
    Entries entries() {
        return {{"granted", granted, 0, half_range,
                 "over 2^20: prices, each times one more than the forecasts outstanding"},
                {"reserved", reserved, 0, half_range, "over 2^20: for outcomes that are awaited"},
                {"excess", excess, 0, half_range,
                 "over 2^20: what outcomes added beyond that, as others came in between"},
                {"most_late", most_late, 0, half_range,
                 "the most forecasts that were outstanding when one was made"}};
    }
    // What it has learned of hints.
    Entries aims() { return joined(nudge.entries(), offsets.entries()); }

    bool issued = false;  // `asked` awaits its outcome
    Placed asked;
    Members asked_of;
};

struct Guard : Balance {
    static constexpr double start =
        1000.0;  // t0: the budget before the first round is that of t0 rounds
    static constexpr double boldness =
        0.1;  // kappa: the share of what is left that a round may take,
    static constexpr double crowd = 10.0;  // half of it if this many others are outstanding

    double budget;  // C
    bool nudges;
    double fields = 1.0;  // that the budget before the first round is for
    std::deque<Group> groups;
    bool busy = false;

    struct Added {
        std::uint32_t group;
        Key key;
        std::int64_t residual;
    };
    std::vector<Added>* log = nullptr;  // where to write what is added, if it may have to be undone

    Guard(double budget_, bool nudges_) : budget(budget_), nudges(nudges_), groups(1) {}

    const Group& everyone() const { return groups[0]; }

    std::size_t group_count() const { return groups.size(); }
    void add_group() { groups.emplace_back(); }
    void drop_group() { groups.pop_back(); }

    // The distance of the keys that hints are credited to: the arc has 4096 such steps, and at
    // least 2 t^(2/3).
    Key step() const {
        const auto made =
            static_cast<double>(everyone().rounds + everyone().late + everyone().lost);
        const double square = made * made;
        std::uint64_t bits;  // the exponent plus 1023, and 52 digits
        std::memcpy(&bits, &square, sizeof bits);
        // 2^power is the least power of two that is not below the square
        const int power = static_cast<int>(bits >> 52) - 1023 + ((bits << 12) != 0);
        return arc_end >> std::max(12, (power + 2) / 3 + 1);
    }

    // What the energies of all groups and what is reserved may come to: C times what was granted,
    // and the excess, which later forecasts need not make up for.
    double allowance() const {
        return budget * (start * fields * static_cast<double>(1 + most_late) +
                         static_cast<double>(granted) / parts) +
               static_cast<double>(excess) / parts;
    }

    // Sums stay below 2^62. One that would pass it stays there, and from then on the account proves
    // nothing.
    static constexpr std::int64_t full = std::int64_t{1} << 62;
    static void grow(std::int64_t& sum, std::int64_t growth) {
        if (sum < full) sum = std::min(sum + growth, full);
    }
    bool overflowed() const {
        return energy >= full || excess >= full || granted >= most_granted();
    }

    Placed place(double hint, const Members& of, bool beside_asked = false) const {
        Paths paths;
        return place(hint, of, beside_asked, paths);
    }

    // The same, and on which piece of the map it lies: a number that is another one wherever the
    // forecast can jump as the hint moves. These are the places where a field is read at another
    // key, and those where the guard departs from the hint.
    double place(double hint, const Members& of, std::int64_t& piece) const {
        Paths paths;
        return place(hint, of, false, paths, &piece).said;
    }

    double predict(double hint, const Members& of) {
        asked = place(hint, of);
        asked_of = of;
        issued = true;
        return asked.said;
    }

    void observe(bool y) {
        grant(asked, asked_of);
        learn(asked, asked_of, y, {}, nullptr);
        nudge.wait(everyone().late);
        issued = false;
    }

    // Have fetched from memory what rounds after the k-th of a batch will need.
    void look_ahead(const std::vector<Aim>& aims, std::size_t k) const {
        const Field& field = everyone().field;
        const Key unit = step();
        const auto key = [&](std::size_t i) { return key_near(aims[i].angle, unit); };
        if (k + 4 < aims.size()) field.fetch_way(key(k + 4));
        if (k + 2 < aims.size()) field.fetch_end(key(k + 2));
    }

    double round(const Aim& aim, const Members& of, bool y) {
        Paths paths;
        const Placed made = place(aim, of, false, paths);
        grant(made, of);
        learn(made, of, y, {}, &paths);
        nudge.wait(everyone().late);
        issued = false;
        return made.said;
    }

    Placed issue(double hint, const Members& of) {
        Placed made = place(hint, of, true);
        if (of.size() > 1) made.wait();
        grant(made, of);
        nudge.wait(everyone().late);
        reserved += made.worst;
        for (const std::uint32_t g : of) {
            ++groups[g].late;
            groups[g].unknown += at_worst(made.said);
        }
        return made;
    }

    // How much an outcome counts for what is learned of it, and how many such outcomes make one
    // observation, lately.
    struct Weight {
        double weight = 1.0, effect = 1.0;
    };

    void settle_late(const Placed& made, const Members& of, bool y, Weight weight) {
        for (const std::uint32_t g : of) {
            --groups[g].late;
            groups[g].unknown -= at_worst(made.said);
        }
        reserved -= made.worst;
        learn(made, of, y, weight, nullptr);
    }

    void give_up(const Placed& made, const Members& of) {
        for (const std::uint32_t g : of) {
            --groups[g].late;
            ++groups[g].lost;
        }
        reserved -= made.worst;
    }

    // Add to the residual of a group at a key.
    void add(std::uint32_t number, Key key, std::int64_t residual) {
        Field::Path path;
        groups[number].field.look(key, path);
        add(groups[number], path, path.shape(), residual);
    }

    // Over 2^32, rounded up.
    static std::uint64_t at_worst(double p) {
        const double scaled = p * Field::unit;
        return static_cast<std::uint64_t>(
            std::max(std::ceil(scaled), Field::unit - std::floor(scaled)));
    }

  protected:
    struct Judged {
        double worst, tilt, price;
        bool fits;
    };

    // The ways to a key in the fields of a round's first groups: most rounds are of no more.
    class Paths {
        std::array<Field::Path, 4> first;

      public:
        bool keeps(std::size_t i) const { return i + 1 < first.size(); }
        Field::Path& of(std::size_t i) { return keeps(i) ? first[i] : first.back(); }
    };

    // What an outcome adds to the counts of a group.
    struct Miss {
        std::int64_t residual;
        std::uint64_t hides;
        double squared;

        Miss(double said, double off, bool y) {
            const auto whole = static_cast<std::int64_t>(std::floor(said * Field::unit + 0.5));
            const double miss = y ? 1.0 - said : said;
            residual = (y ? std::int64_t{1} << 32 : 0) - whole;
            hides = static_cast<std::uint64_t>(std::ceil(miss * (off + 0x1p-26) * 0x1p40));
            squared = miss * miss;
        }
    };

    // Add a round to a group, at the key that the path leads to.
    void enter(std::uint32_t number, Field::Path& path, const Shape& shape, const Miss& miss) {
        Group& group = groups[number];
        add(group, path, shape, miss.residual);
        if (log != nullptr) log->push_back({number, path.key, miss.residual});
        ++group.rounds;
        group.hidden += miss.hides;
        group.squared_error += miss.squared;
    }

    // What a forecast may add to the energy beyond what it is granted: a share of what is left.
    double room(bool beside_asked) const {
        if (energy >= full) return 0.0;
        double left =
            allowance() - (static_cast<double>(energy) + static_cast<double>(reserved)) / parts;
        if (beside_asked && issued) {  // which may be dropped: then it brings nothing
            const double brings = budget * asked.price * static_cast<double>(asked_of.size());
            left += std::min(brings - static_cast<double>(asked.worst) / parts, 0.0);
        }
        return boldness / (1.0 + static_cast<double>(everyone().late) / crowd) *
               std::max(left, 0.0);
    }

    // Numbers of keys, so that different sequences of them mostly give different pieces.
    static void note(std::int64_t* piece, Key number) {
        if (piece == nullptr) return;
        const auto mixed = static_cast<std::uint64_t>(*piece) * 0x9e3779b97f4a7c15U;
        *piece = static_cast<std::int64_t>(mixed + static_cast<std::uint64_t>(number) + 1U);
    }

    Placed place(const Aim& aim, const Members& of, bool beside_asked, Paths& paths,
                 std::int64_t* piece = nullptr) const {
        const Key unit = step();
        const double more = room(beside_asked);
        Placed made;
        made.hint = made.said = aim.hint;
        if (piece != nullptr) *piece = 0;
        if (nudges) made.said = nudged(aim, offset(made, of), unit, piece);
        double angle = aim.angle_at(made.said);
        made.key = key_near(angle, unit);
        Judged found = judge(made.said, made.key, of, more, paths);
        if (!found.fits) {
            made.key = moved(made.key, unit, found.tilt > 0.0, of, more);
            made.said = forecast_at(made.key);
            note(piece, made.key);
            angle = angle_of(made.said);
            found = judge(made.said, made.key, of, more, paths);
        }
        made.worst = parts_up(found.worst);
        made.price = found.price;
        made.off = Placed::off_by(angle, made.key);
        return made;
    }

    Judged judge(double p, Key key, const Members& of, double more, Paths& paths) const {
        everyone().field.look(key, paths.of(0));
        const Shape shape = paths.of(0).shape();
        double field = paths.of(0).field(shape);
        for (std::size_t i = 1; i < of.size(); ++i) {
            groups[of[i]].field.look(key, paths.of(i));
            field += paths.of(i).field(shape);
        }
        const auto members = static_cast<double>(of.size());
        const double price = Placed::price_of(p, shape);
        const double tilt = field + members * (shape.rise * shape.fall) * (0.5 - p);
        const double worst = members * price + 2.0 * tilt * (tilt > 0.0 ? 1.0 - p : -p);
        return {worst, tilt, price, worst <= budget * members * price + more};
    }

    // From a key that does not fit towards the root of the tilt, up or down: one that fits, and no
    // more than a unit beyond one that does not. Invariant: the tilt points from `from` on, and
    // back from `to`, or `to` is an end or fits.
    Key moved(Key from, Key unit, bool up, const Members& of, double more) const {
        Key to = up ? arc_end : 0, good = -1;
        Paths paths;
        const auto at = [&](Key key) { return judge(forecast_at(key), key, of, more, paths); };
        for (Key gap; (gap = std::abs(to - from)) > (good >= 0 ? unit : 1);) {
            const Key whole = gap > unit ? unit : 1;
            const Key half = std::max(whole, gap / 2 / whole * whole);
            const Key middle = up ? from + half : from - half;
            const Judged there = at(middle);
            if (there.fits) good = middle;
            (there.fits || (there.tilt > 0.0) != up ? to : from) = middle;
        }
        if (good >= 0) return good;
        return at(to).worst <= at(from).worst ? to : from;
    }

    // The offsets of a round's groups: pointers to them, of which there are mostly few.
    template <typename Groups, typename Use>
    static void with_offsets(Groups& groups, const Members& of, Use use) {
        using Pointer = decltype(&groups[0].offset);
        std::array<Pointer, 8> few;
        std::vector<Pointer> many(of.size() > few.size() ? of.size() : 0);
        Pointer* all = many.empty() ? few.data() : many.data();
        for (std::size_t i = 1; i < of.size(); ++i) all[i - 1] = &groups[of[i]].offset;
        use(all, of.size() - 1);
    }

    double offset(Placed& made, const Members& of) const {
        double p = made.hint;
        if (of.size() > 1)
            with_offsets(groups, of, [&](const Offset* const* all, std::size_t n) {
                p = offsets.apply(p, all, n, made.notes);
            });
        return p;
    }

    double nudged(const Aim& aim, double hint, Key unit, std::int64_t* piece) const {
        return nudge.apply(hint, static_cast<double>(everyone().energy) / parts, [&](double p) {
            Field::Path path;
            const Key key = key_near(aim.angle_at(p), unit);
            note(piece, key);
            everyone().field.look(key, path);
            return path.field(path.shape());
        });
    }

    // What stands before the guard learns, too. `at_once`: nothing has changed since the forecast.
    void adapt(const Placed& made, const Members& of, bool y, Weight weight, bool at_once) {
        nudge.learn(made.price, weight.effect);
        if (of.size() == 1) return;
        const auto all = static_cast<double>(everyone().rounds);
        std::vector<double> part;
        for (std::size_t i = 1; nudge.lag > 0.0 && i < of.size(); ++i)
            part.push_back(static_cast<double>(groups[of[i]].rounds) / all);
        with_offsets(groups, of, [&](Offset* const* each, std::size_t n) {
            offsets.learn(made.hint, each, part.data(), n, y, weight.weight, made.notes, nudge.lag,
                          at_once);
        });
    }

    // With a million outcomes outstanding all along, sums would leave 64 bits after some million
    // rounds. To grant less is always allowed.
    void grant(const Placed& made, const Members& of) {
        const auto times =
            static_cast<double>(of.size()) * static_cast<double>(1 + everyone().late);
        most_late = std::max(most_late, everyone().late);
        granted =
            std::min(granted + parts_down(std::min(made.price * times, 0x1p40)), most_granted());
        counted += static_cast<std::int64_t>(of.size());
    }

    std::int64_t most_granted() const { return static_cast<std::int64_t>(0x1p61 / budget); }

    void add(Group& group, Field::Path& path, const Shape& shape, std::int64_t residual) {
        const double r = static_cast<double>(residual) / Field::unit;
        const double own = r * (shape.rise * shape.fall), others = 2.0 * path.field(shape);
        const std::int64_t growth = parts_up(r * (own + others));
        group.field.add(path, shape, residual);
        grow(group.energy, growth);
        grow(energy, growth);
    }

    // `at_once`: the ways to the key, if nothing has changed since the forecast was made.
    void learn(const Placed& made, const Members& of, bool y, Weight weight, Paths* at_once) {
        const std::int64_t before = energy;
        const Miss miss(made.said, made.off, y);
        Paths looked;
        Paths& ways = at_once != nullptr ? *at_once : looked;
        if (at_once == nullptr) everyone().field.look(made.key, ways.of(0));
        const Shape shape = ways.of(0).shape();
        for (std::size_t i = 0; i < of.size(); ++i) {
            const bool known = i == 0 || (at_once != nullptr && ways.keeps(i));
            if (!known) groups[of[i]].field.look(made.key, ways.of(i));
            enter(of[i], ways.of(i), shape, miss);
        }
        if (nudges) adapt(made, of, y, weight, at_once != nullptr);
        grow(excess, std::max(energy - before - made.worst, std::int64_t{0}));
    }
};

// What a batch changes of a guard, to go back to: of every group copies, or if that is less, what
// was added to it.
class Undo {
    Guard& guard;
    const Balance balance;
    const std::size_t count;  // of groups
    std::vector<std::pair<std::uint32_t, Counts>> counts;
    std::vector<std::pair<std::uint32_t, Field>> fields;
    std::vector<Guard::Added> added;
    const bool copies;

    static std::size_t knots(const Guard& guard, const std::vector<std::uint32_t>& used) {
        std::size_t all = 0;
        for (const std::uint32_t g : used) all += guard.groups[g].field.knots();
        return all;
    }

  public:
    // `used`: the groups that the batch may change; `additions`: how many residuals it adds to them
    // at most. Groups that come to be later are dropped.
    Undo(Guard& of, const std::vector<std::uint32_t>& used, std::size_t additions)
        : guard(of), balance(of), count(of.groups.size()), copies(4 * knots(of, used) < additions) {
        counts.reserve(used.size());
        for (const std::uint32_t g : used) counts.emplace_back(g, guard.groups[g]);
        if (copies) {
            fields.reserve(used.size());
            for (const std::uint32_t g : used) fields.emplace_back(g, guard.groups[g].field);
        } else {
            added.reserve(additions);
            guard.log = &added;
        }
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() { guard.log = nullptr; }

    void restore() {
        for (const Guard::Added& each : added)
            if (each.group < count) guard.add(each.group, each.key, -each.residual);
        for (auto& [g, field] : fields) guard.groups[g].field = std::move(field);
        for (auto& [g, before] : counts) static_cast<Counts&>(guard.groups[g]) = before;
        while (guard.groups.size() > count) guard.groups.pop_back();
        static_cast<Balance&>(guard) = balance;
    }
};

}  // namespace truecast

// The guard, as Python sees it.
#include "guard.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <vector>

#include "arrays.hpp"
#include "edge.hpp"
#include "guard_state.hpp"
#include "saving.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {

namespace {

std::int64_t forecasts_of(const Group& group) { return group.rounds + group.late + group.lost; }

// The energy of a group from its knots. O(knots).
ArcEnergy energy_of(const Group& group) {
    std::vector<Shaped> points;
    points.reserve(group.field.knots());
    group.field.each([&](const Field::Knot& knot) {
        points.push_back({knot.rise, knot.fall, static_cast<double>(knot.residual) / Field::unit});
    });
    return arc_energy(points.data(), PlainResiduals(), points.size());
}

// The allowance, and what rounding can add beyond it (docs/adaptive.md, theorem 10). Infinite where
// nothing is proved.
double most_energy(const Guard& guard) {
    const auto forecasts = static_cast<double>(forecasts_of(guard.everyone()));
    const auto counted = static_cast<double>(guard.counted);
    if (forecasts > 0x1p30 || guard.overflowed()) return std::numeric_limits<double>::infinity();
    const double account = (guard.budget + 1.0) * forecasts / parts;
    return guard.allowance() + account + counted * (guard.budget * 0x1p-37 + forecasts * 0x1p-39);
}

}  // namespace

nb::tuple group_parts(const Guard& guard, std::size_t number) {
    require(number < guard.groups.size(), "there is no such group");
    const Group& group = guard.groups[number];
    const ArcEnergy found = energy_of(group);
    return nb::make_tuple(group.rounds, group.late, group.lost, group.squared_error, found.energy,
                          found.gross, group.hidden, group.unknown, most_energy(guard));
}

Placed placed(double said, Key key, std::int64_t worst, const double* aim) {
    require(key >= 0 && key <= arc_end, "there is no such key");
    Placed made;
    made.said = said;
    made.key = key;
    made.worst = worst;
    made.price = Placed::price_of(said, Shape(forecast_at(key)));
    made.off = Placed::off_by(angle_of(said), key);
    made.hint = aim[0];
    std::copy(aim + 1, aim + aim_size, made.notes.begin());
    return made;
}

std::vector<double> aim_of(const Placed& made) {
    std::vector<double> aim{made.hint};
    aim.insert(aim.end(), made.notes.begin(), made.notes.end());
    return aim;
}

namespace {

// Of all groups, one after the other.
struct Tables {
    std::vector<float> offset;
    std::vector<Key> key;
    std::vector<std::int64_t> residual;

    static constexpr std::size_t offsets_each = 2 * offsets::scales;

    Entries offsets() {
        return {{"offset", offset, -offsets::farthest, offsets::farthest,
                 "of each group: the means that the members see, then their variances"}};
    }
    Entries knots() {
        return {{"key", key, 0, arc_end,
                 "the angle on the arc over pi, times 2^40, increasing in each group"},
                {"residual", residual, -half_range, half_range,
                 "over 2^32: outcomes less forecasts credited to it"}};
    }
};

nb::dict groups_of(Guard& guard, Tables& tables) {
    Columns groups;
    Counts counts;  // of one group after the other, so that there is one list
    std::int64_t knots = 0;
    const Entries entries = counts.entries(knots);
    for (Group& group : guard.groups) {
        for (const Offset::Row* row : {&group.offset.mean, &group.offset.variance})
            tables.offset.insert(tables.offset.end(), row->begin(), row->end());
        knots = 0;
        group.field.each([&](const Field::Knot& knot) {
            if (knot.residual == 0) return;
            tables.key.push_back(knot.key);
            tables.residual.push_back(knot.residual);
            ++knots;
        });
        counts = group;
        groups.add(entries);
    }
    return groups.dict(entries);
}

void load_group(Group& group, const Tables& tables, std::size_t number, std::size_t from,
                std::size_t to) {
    const float* offset = tables.offset.data() + Tables::offsets_each * number;
    std::copy(offset, offset + offsets::scales, group.offset.mean.begin());
    std::copy(offset + offsets::scales, offset + Tables::offsets_each,
              group.offset.variance.begin());
    require(group.offset.settle(), "the offset of a group must be within its limits");
    for (std::size_t k = from; k < to; ++k) {
        require(tables.key[k] >= 0 && tables.key[k] <= arc_end, "there is no such key");
        Field::Path path;
        group.field.look(tables.key[k], path);
        group.field.add(path, path.shape(), tables.residual[k]);
    }
    const double found = energy_of(group).energy * parts;
    const double loose = 1e-6 * std::fabs(found) + static_cast<double>(group.rounds) + 1024.0;
    const bool same = std::fabs(found - static_cast<double>(group.energy)) <= 2.0 * loose;
    require(group.energy == Guard::full || (same && group.energy < Guard::full),
            "the energy must be that of the knots");
}

void load_groups(Guard& guard, const nb::dict& numbers, const Tables& tables) {
    Counts counts;  // of one group after the other, so that there is one list
    std::int64_t knots = 0;
    const Entries entries = counts.entries(knots);
    const Columns groups(numbers, entries);
    require(tables.offset.size() == Tables::offsets_each * groups.rows(),
            "each group needs its offsets");
    require(tables.key.size() == tables.residual.size(), "columns must be of one length");
    guard.groups.clear();
    std::size_t at = 0;
    for (std::size_t g = 0; g < groups.rows(); ++g) {
        Group& group = guard.groups.emplace_back();
        groups.read(g, entries);
        static_cast<Counts&>(group) = counts;
        require(knots >= 0 && static_cast<std::size_t>(knots) <= tables.key.size() - at,
                "knots must fit the keys");
        load_group(group, tables, g, at, at + static_cast<std::size_t>(knots));
        at += static_cast<std::size_t>(knots);
        Guard::grow(guard.energy, group.energy);
        Guard::grow(guard.counted, forecasts_of(group));
    }
    require(!guard.groups.empty() && at == tables.key.size(), "knots must fit the keys");
}

void load_aims(Guard& guard, const std::vector<double>& aims) {
    std::size_t count = 0;
    each_float(guard.aims(), [&](double& aim, const Entry&) {
        if (count < aims.size()) aim = aims[count];
        ++count;
    });
    require(in_range(guard.aims()), "what the nudge has learned must be within its limits");
    require(count == aims.size() && guard.nudge.settle() && guard.offsets.settle(),
            "what the nudge has learned must fit together");
}

void load_asked(Guard& guard, const nb::object& asked) {
    if (asked.is_none()) return;
    const auto aim = nb::cast<std::vector<double>>(asked[4]);
    require(aim.size() == aim_size, "a forecast was made from a hint");
    guard.issued = true;
    guard.asked = placed(nb::cast<double>(asked[0]), nb::cast<Key>(asked[1]),
                         nb::cast<std::int64_t>(asked[2]), aim.data());
    guard.asked_of = nb::cast<Members>(asked[3]);
    require(!guard.asked_of.empty() && guard.asked_of[0] == 0,
            "everyone is among the groups of a round");
    for (const std::uint32_t g : guard.asked_of)
        require(g < guard.groups.size(), "there is no such group");
}

nb::dict described_guard() {
    Balance balance;
    Counts counts;
    std::int64_t knots = 0;
    Tables tables;
    nb::dict all;
    all["guard"] = described(balance.entries());
    all["aims"] = described(balance.aims());
    all["groups"] = described(counts.entries(knots));
    all["offsets"] = described(tables.offsets());
    all["knots"] = described(tables.knots());
    return all;
}

}  // namespace

nb::dict saved(Guard& guard) {
    nb::dict state = saved(guard.entries());
    nb::list aims;
    each_float(guard.aims(), [&](double aim, const Entry&) { aims.append(aim); });
    state["aims"] = aims;
    state["asked"] = nb::none();
    if (guard.issued)
        state["asked"] =
            nb::list(nb::make_tuple(guard.asked.said, guard.asked.key, guard.asked.worst,
                                    guard.asked_of, aim_of(guard.asked)));
    Tables tables;
    state["groups"] = groups_of(guard, tables);
    state["offsets"] = saved(tables.offsets());
    state["knots"] = saved(tables.knots());
    return state;
}

void load(Guard& guard, const nb::dict& state) {
    Guard read(guard.budget, guard.nudges);
    load(read.entries(), state);
    load_aims(read, nb::cast<std::vector<double>>(state["aims"]));
    Tables tables;
    load(tables.offsets(), nb::cast<nb::dict>(state["offsets"]));
    load(tables.knots(), nb::cast<nb::dict>(state["knots"]));
    load_groups(read, nb::cast<nb::dict>(state["groups"]), tables);
    load_asked(read, state["asked"]);
    guard = std::move(read);
}

namespace {

const Members alone{0};

void observe(Guard& guard, nb::handle y) { guard.observe(awaited_outcome(guard, y)); }

void run(Guard& guard, Array<const double, 1> hints, Array<const std::uint8_t, 1> y,
         Array<double, 1> said) {
    const std::size_t rounds = y.shape(0);
    require(hints.shape(0) == rounds && said.shape(0) == rounds,
            "there must be an entry for each outcome");
    const Busy working(guard);
    Undo undo(guard, alone, rounds);
    try {
        in_blocks(rounds, 4096, [&](std::size_t t, std::size_t end) {
            for (; t < end; ++t)
                said.data()[t] = guard.round(checked(hints.data()[t]), alone, y.data()[t] & 1);
        });
    } catch (...) {
        undo.restore();
        throw;
    }
}

}  // namespace

void bind_guard(nb::module_& m) {
    m.attr("ARC_END") = arc_end;
    m.attr("GUARD") = described_guard();
    m.attr("PARTS") = static_cast<std::int64_t>(parts);
    nb::class_<Guard>(m, "Guard")
        .def(nb::init<double, bool>(), "budget"_a, "nudges"_a)
        .def(
            "predict",
            [](Guard& g, nb::handle hint) {
                const double h = probability("hint", hint);
                return at_rest(g).predict(h, alone);
            },
            "hint"_a.none(),
            "The hint, or a forecast near it that the budget allows. The outcome that comes next "
            "is about the last one asked for.")
        .def("observe", &observe, "outcome"_a.none(),
             "Learn the outcome, 0 or 1, that the last forecast was about. Refused, with nothing "
             "changed, if there was none.")
        .def("_run", &run, "hints"_a, "outcomes"_a, "said"_a,
             "Play a round for every outcome; write what was said.")
        .def(
            "_parts", [](Guard& g) { return group_parts(at_rest(g), 0); },
            "What the certificate is made of.")
        .def(
            "_saved", [](Guard& g) { return saved(at_rest(g)); },
            "All numbers of the state, those of groups and knots in columns.")
        .def(
            "_load", [](Guard& g, const nb::dict& state) { load(at_rest(g), state); }, "state"_a,
            "Take over what `_saved` gave.")
        .def_prop_ro(
            "issued", [](Guard& g) { return at_rest(g).issued; },
            "Whether the outcome of the last `predict` is awaited.")
        .def_prop_ro(
            "knots", [](Guard& g) { return at_rest(g).everyone().field.knots(); },
            "Points of the arc that forecasts were credited to.")
        .def_prop_ro(
            "rounds", [](Guard& g) { return at_rest(g).everyone().rounds; },
            "Outcomes observed so far.");
}

}  // namespace truecast

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

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {

namespace {

std::int64_t forecasts_of(const Group& group) { return group.rounds + group.late + group.lost; }

// The energy of a group from its knots. O(knots).
ArcEnergy energy_of(const Group& group) {
    std::vector<double> p, r;
    p.reserve(group.field.knots());
    r.reserve(group.field.knots());
    group.field.each([&](const Field::Knot& knot) {
        p.push_back(forecast_at(knot.key));
        r.push_back(static_cast<double>(knot.residual) / Field::unit);
    });
    return arc_energy(p.data(), PlainResiduals{r.data()}, p.size());
}

// The allowance, and what rounding can add beyond it (docs/adaptive.md, theorem 10). Infinite where nothing is proved.
double most_energy(const Guarded& guard) {
    const auto forecasts = static_cast<double>(forecasts_of(guard.everyone()));
    const auto counted = static_cast<double>(guard.counted);
    if (forecasts > 0x1p30 || guard.overflowed()) return std::numeric_limits<double>::infinity();
    const double account = (guard.budget + 1.0) * forecasts / parts;
    return guard.allowance() + account + counted * (guard.budget * 0x1p-37 + forecasts * 0x1p-39);
}

}  // namespace

nb::tuple group_parts(const Guarded& guard, std::size_t number) {
    require(number < guard.groups.size(), "there is no such group");
    const Group& group = guard.groups[number];
    const ArcEnergy found = energy_of(group);
    return nb::make_tuple(group.rounds, group.late, group.lost, group.squared_error, found.energy, found.gross,
                          group.hidden, group.unknown, most_energy(guard));
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
    std::copy(aim + 1, aim + aims, made.notes.begin());
    return made;
}

std::vector<double> aim_of(const Placed& made) {
    std::vector<double> aim{made.hint};
    aim.insert(aim.end(), made.notes.begin(), made.notes.end());
    return aim;
}

nb::dict saved(const Guarded& guard) {
    std::vector<std::int64_t> rounds, late, lost, energy, knots, keys, residuals;
    std::vector<std::uint64_t> hidden, unknown;
    std::vector<double> squared_error;
    std::vector<float> offsets;
    for (const Group& group : guard.groups) {
        rounds.push_back(group.rounds);
        late.push_back(group.late);
        lost.push_back(group.lost);
        energy.push_back(group.energy);
        hidden.push_back(group.hidden);
        unknown.push_back(group.unknown);
        squared_error.push_back(group.squared_error);
        for (const Offset::Row* row : {&group.offset.mean, &group.offset.variance})
            offsets.insert(offsets.end(), row->begin(), row->end());
        const std::size_t before = keys.size();
        group.field.each([&](const Field::Knot& knot) {
            if (knot.residual == 0) return;
            keys.push_back(knot.key);
            residuals.push_back(knot.residual);
        });
        knots.push_back(static_cast<std::int64_t>(keys.size() - before));
    }
    nb::dict numbers;
    numbers["rounds"] = copy(rounds);
    numbers["late"] = copy(late);
    numbers["lost"] = copy(lost);
    numbers["energy"] = copy(energy);
    numbers["hidden"] = copy(hidden);
    numbers["unknown"] = copy(unknown);
    numbers["squared_error"] = copy(squared_error);
    numbers["offset"] = copy(offsets);
    numbers["knots"] = copy(knots);
    numbers["key"] = copy(keys);
    numbers["residual"] = copy(residuals);
    numbers["granted"] = guard.granted;
    numbers["reserved"] = guard.reserved;
    numbers["excess"] = guard.excess;
    numbers["most_late"] = guard.most_late;
    Guarded now(guard.budget, guard.nudges);  // fields() are to be written to as well
    static_cast<Balance&>(now) = guard;
    std::vector<double> aims;
    for (const std::vector<hints::Field>& fields : {now.nudge.fields(), now.offsets.fields()})
        for (const hints::Field& field : fields) aims.insert(aims.end(), field.values, field.values + field.count);
    numbers["aims"] = aims;
    numbers["asked"] = nb::none();
    if (guard.issued)
        numbers["asked"] = nb::make_tuple(guard.asked.said, guard.asked.key, guard.asked.worst, guard.asked_of,
                                          aim_of(guard.asked));
    return numbers;
}

namespace {

template <typename T>
Array<const T, 1> column(const nb::dict& numbers, const char* name, std::size_t count) {
    auto found = nb::cast<Array<const T, 1>>(numbers[name]);
    require(found.shape(0) == count, "columns must be of one length");
    return found;
}

}  // namespace

void load(Guarded& guard, const nb::dict& numbers) {
    const auto length = [&](const char* name) { return nb::len(nb::object(numbers[name])); };
    const std::size_t count = length("rounds"), all = length("key");
    const auto whole = [&](const char* name, std::size_t n) { return column<std::int64_t>(numbers, name, n); };
    const auto rounds = whole("rounds", count), late = whole("late", count), lost = whole("lost", count),
               energy = whole("energy", count), knots = whole("knots", count), key = whole("key", all), residual = whole("residual", all);
    const auto hidden = column<std::uint64_t>(numbers, "hidden", count),
               unknown = column<std::uint64_t>(numbers, "unknown", count);
    const auto squared_error = column<double>(numbers, "squared_error", count);
    constexpr std::size_t scales = offsets::scales;
    const auto offset = column<float>(numbers, "offset", 2 * scales * count);
    Guarded read(guard.budget, guard.nudges);
    read.groups.clear();
    std::size_t at = 0;
    for (std::size_t g = 0; g < count; ++g) {
        Group& group = read.groups.emplace_back();
        group.rounds = rounds.data()[g];
        group.late = late.data()[g];
        group.lost = lost.data()[g];
        group.hidden = hidden.data()[g];
        group.unknown = unknown.data()[g];
        group.squared_error = squared_error.data()[g];
        const float* row = offset.data() + 2 * scales * g;
        std::copy(row, row + scales, group.offset.mean.begin());
        std::copy(row + scales, row + 2 * scales, group.offset.variance.begin());
        require(group.offset.settle(), "the offset of a group must be within its limits");
        const std::int64_t mine = knots.data()[g];
        require(mine >= 0 && static_cast<std::size_t>(mine) <= all - at, "knots must fit the keys");
        for (std::int64_t k = 0; k < mine; ++k, ++at) {
            require(key.data()[at] >= 0 && key.data()[at] <= arc_end, "there is no such key");
            Field::Path path;
            group.field.look(key.data()[at], path);
            group.field.add(path, path.shape(), residual.data()[at]);
        }
    }
    require(count > 0 && at == all, "knots must fit the keys");
    for (std::size_t g = 0; g < count; ++g) {
        const std::int64_t kept = energy.data()[g];
        const double found = energy_of(read.groups[g]).energy * parts;
        const double loose = 1e-6 * std::fabs(found) + static_cast<double>(rounds.data()[g]) + 1024.0;
        const bool same = std::fabs(found - static_cast<double>(kept)) <= 2.0 * loose;
        require(kept == Guarded::full || (same && kept < Guarded::full), "the energy must be that of the knots");
        read.groups[g].energy = kept;
        Guarded::grow(read.energy, kept);
        Guarded::grow(read.counted, forecasts_of(read.groups[g]));
    }
    read.granted = nb::cast<std::int64_t>(numbers["granted"]);
    read.reserved = nb::cast<std::int64_t>(numbers["reserved"]);
    read.excess = nb::cast<std::int64_t>(numbers["excess"]);
    read.most_late = nb::cast<std::int64_t>(numbers["most_late"]);
    const auto aims = nb::cast<std::vector<double>>(numbers["aims"]);
    std::size_t from = 0;
    for (const std::vector<hints::Field>& fields : {read.nudge.fields(), read.offsets.fields()})
        for (const hints::Field& field : fields)
            for (std::size_t k = 0; k < field.count; ++k, ++from) {
                require(from < aims.size() && aims[from] >= field.least && aims[from] <= field.most,
                        "what the nudge has learned must be within its limits");
                field.values[k] = aims[from];
            }
    require(from == aims.size() && read.nudge.settle() && read.offsets.settle(),
            "what the nudge has learned must fit together");
    if (const nb::object asked = numbers["asked"]; !asked.is_none()) {
        read.issued = true;
        const auto aim = nb::cast<std::vector<double>>(asked[4]);
        require(aim.size() == truecast::aims, "a forecast was made from a hint");
        read.asked =
            placed(nb::cast<double>(asked[0]), nb::cast<Key>(asked[1]), nb::cast<std::int64_t>(asked[2]), aim.data());
        read.asked_of = nb::cast<Members>(asked[3]);
        require(!read.asked_of.empty() && read.asked_of[0] == 0, "everyone is among the groups of a round");
        for (const std::uint32_t g : read.asked_of) require(g < count, "there is no such group");
    }
    guard = std::move(read);
}

namespace {

const Members alone{0};

void observe(Guarded& guard, nb::handle y) {
    const std::uint8_t bit = outcome(y);
    if (!at_rest(guard).issued) refuse("observe() needs a forecast to judge: call predict() before each observe()");
    guard.observe(bit);
}

void run(Guarded& guard, Array<const double, 1> hints, Array<const std::uint8_t, 1> y, Array<double, 1> said) {
    const std::size_t rounds = y.shape(0);
    require(hints.shape(0) == rounds && said.shape(0) == rounds, "there must be an entry for each outcome");
    const Busy working(guard);
    Undo undo(guard, alone, rounds);
    try {
        in_blocks(rounds, 4096, [&](std::size_t t, std::size_t end) {
            for (; t < end; ++t) said.data()[t] = guard.round(checked(hints.data()[t]), alone, y.data()[t] & 1);
        });
    } catch (...) {
        undo.restore();
        throw;
    }
}

}  // namespace

void bind_guard(nb::module_& m) {
    m.attr("ARC_END") = arc_end;
    m.attr("PARTS") = static_cast<std::int64_t>(parts);
    nb::class_<Guarded>(m, "Guarded")
        .def(nb::init<double, bool>(), "budget"_a, "nudges"_a)
        .def(
            "predict",
            [](Guarded& g, nb::handle hint) {
                const double h = probability("hint", hint);
                return at_rest(g).predict(h, alone);
            },
            "hint"_a.none(),
            "The hint, or a forecast near it that the budget allows. The outcome that comes next is about the last one "
            "asked for.")
        .def("observe", &observe, "outcome"_a.none(),
             "Learn the outcome, 0 or 1, that the last forecast was about. Refused, with nothing changed, if there was "
             "none.")
        .def("_run", &run, "hints"_a, "outcomes"_a, "said"_a, "Play a round for every outcome; write what was said.")
        .def(
            "_parts", [](Guarded& g) { return group_parts(at_rest(g), 0); }, "What the certificate is made of.")
        .def("_saved", [](Guarded& g) { return saved(at_rest(g)); }, "All numbers of the state, most in columns.")
        .def(
            "_load", [](Guarded& g, const nb::dict& numbers) { load(at_rest(g), numbers); }, "numbers"_a,
            "Take over what `_saved` gave.")
        .def_prop_ro(
            "issued", [](Guarded& g) { return at_rest(g).issued; },
            "Whether the outcome of the last `predict` is awaited.")
        .def_prop_ro(
            "knots", [](Guarded& g) { return at_rest(g).everyone().field.knots(); },
            "Points of the arc that forecasts were credited to.")
        .def_prop_ro(
            "rounds", [](Guarded& g) { return at_rest(g).everyone().rounds; }, "Outcomes observed so far.");
}

}  // namespace truecast

// The desk of a recalibrator for K classes: hints, a guard, and the tickets of forecasts whose
// outcomes are awaited. As in recalibrate.cpp, Python runs only before anything is changed: an
// operation happened or it did not.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ahead.hpp"
#include "arrays.hpp"
#include "class_desk.hpp"
#include "edge.hpp"
#include "guard_state.hpp"
#include "saving.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {

namespace classes {

namespace {

using Row1 = Array<const double, 1>;
using Table2 = Array<const double, 2>;
using Aims = std::vector<Aim>;

// Numbers that Python has checked, and may change in another thread meanwhile: `row` does not mind.
ClassRow row_of(const ClassDesk& desk, const Row1& scores) {
    require(scores.shape(0) == desk.classes(), "there must be a score of each class");
    return desk.row(scores.data());
}

std::size_t class_of(const ClassDesk& desk, std::int64_t y) {
    require(y >= 0 && static_cast<std::size_t>(y) < desk.classes(), "there is no such class");
    return static_cast<std::size_t>(y);
}

void write(const ClassPlaced& made, double* to) {
    for (const Share& each : made.shares) *to++ = each.said;
}

Aims aims_of(const Numbers& hint) { return Aims(hint.begin(), hint.end()); }

nb::object predict(ClassDesk& desk, const Row1& scores, nb::handle group, Array<double, 1> said) {
    const nb::object name = group_of(group);
    const ClassRow row = row_of(desk, scores);
    require(said.shape(0) == desk.classes(), "there must be room for each class");
    const Busy working(unread(desk));
    Seating seating(desk.seats, desk.guard);
    const Members of = seating.of(name);
    Numbers now = row.given;
    write(desk.guard.predict(aims_of(desk.hint.predict(row)).data(), of), said.data());
    seating.keep();
    desk.asked = std::move(now);
    return nb::none();
}

void observe(ClassDesk& desk, std::int64_t y) {
    const std::size_t outcome = class_of(desk, y);
    if (!unread(desk).guard.issued) refuse(no_forecast);
    const Busy working(desk);
    desk.hint.learn(desk.row(desk.asked.data()), outcome);
    desk.guard.observe(outcome);
}

// A forecast to be issued: `keep` changes the desk. It fails only if there is no memory for a
// level.
class Issue {
    Tickets room;
    Aims hint;

  public:
    Issue(ClassDesk& desk, Members of, const ClassRow& row, std::int64_t event) {
        Awaited& forecast = room[desk.issued];
        forecast.event = event;
        forecast.kept = row.given;
        forecast.kept.resize(desk.classes() + desk.hint.notes());
        forecast.made.of = std::move(of);
        forecast.made.shares.resize(desk.classes());
        hint = aims_of(desk.hint.issue(row, forecast.kept.data() + desk.classes()));
        desk.events.prepare(event, desk.issued);
    }

    // The ticket that is given up if there is no room goes to `given_up`.
    const Awaited& keep(ClassDesk& desk, Tickets& given_up) {
        make_room(desk, given_up);
        Awaited& forecast = room.begin()->second;
        desk.guard.issue(hint.data(), forecast.made);
        keep_ticket(desk, room);
        return forecast;
    }
};

nb::object issue(ClassDesk& desk, const Row1& scores, nb::handle group, nb::handle event) {
    const nb::object name = group_of(group);
    const std::int64_t about = event_of(event);
    const ClassRow row = row_of(desk, scores);
    std::int64_t number;
    Numbers said;
    {
        const Busy working(unread(desk));
        Seating seating(desk.seats, desk.guard);
        TicketsBefore<ClassDesk> before(desk);
        try {
            said.resize(desk.classes());
            Issue forecast(desk, seating.of(name), row, about);
            write(forecast.keep(desk, before.given_up).made, said.data());
        } catch (...) {
            for (const auto& [_, lost] : before.given_up) desk.guard.take_back(lost.made);
            before.restore_tickets();
            throw;
        }
        seating.keep();
        number = desk.issued - 1;
    }
    return ticket(desk.ticket_type, number, as_object(said));
}

// How much an outcome counts goes by how the most probable class did; of two, by how the second
// did, as for two outcomes.
void settle(ClassDesk& desk, Tickets::iterator found, std::size_t y) {
    const Awaited& forecast = found->second;
    const std::size_t whose = desk.classes() == 2 ? 1 : forecast.made.top();
    const double residual = (y == whose ? 1.0 : 0.0) - forecast.made.shares[whose].said;
    const double weight = desk.bursts.weight(residual, desk.events.mates(forecast.event));
    desk.hint.learn(desk.row(forecast.kept.data()), y, forecast.kept.data() + desk.classes(),
                    weight);
    desk.guard.settle_late(forecast.made, y, {weight, desk.bursts.effect()});
    desk.events.closed(forecast.event);
    desk.tickets.erase(found);
}

void resolve(ClassDesk& desk, nb::handle given, std::int64_t y) {
    const std::size_t outcome = class_of(desk, y);
    const auto found = Handed(desk.ticket_type, given).find(desk, given);
    const Busy working(desk);
    settle(desk, found, outcome);
}

// Everything that a batch changes, to go back to.
class Before : public TicketsBefore<ClassDesk> {
    ClassMix hint;
    const std::vector<Nudge> pushes;
    const ClassPlaced made;
    const std::vector<std::uint32_t> changed;  // fields
    Undo guard, tops;
    const Numbers asked;

  public:
    Before(ClassDesk& of, const Plan& plan, std::size_t rounds, bool late)
        : TicketsBefore(of),
          hint(of.hint),
          pushes(of.guard.pushes),
          made(of.guard.made),
          changed(of.guard.fields_of(changed_by(of, plan, rounds, late))),
          guard(of.guard, changed, plan.additions * of.classes()),
          tops(of.guard.tops, changed, plan.additions),
          asked(of.asked) {}

    void restore() {
        desk.hint = std::move(hint);
        guard.restore();
        tops.restore();
        desk.guard.pushes = pushes;
        desk.guard.made = made;
        desk.asked = asked;
        restore_tickets();
    }
};

constexpr std::size_t some = 64;  // rows whose numbers stay in the cache

// Rounds of up to 5 microseconds for each class, as in a batch of two outcomes; all of some rows.
std::size_t block_of(const ClassDesk& desk, bool late) {
    constexpr std::size_t numbers = 4096;
    return late ? some : some * std::max(numbers / desk.classes() / some, std::size_t{1});
}

// Plays the rounds of a batch by `play(plan, before, from, to)`; all or, if something is thrown,
// nothing.
template <typename Play>
void play_whole(ClassDesk& desk, nb::handle groups, std::size_t rounds, bool late, Play play) {
    const Busy working(unread(desk));
    if (rounds == 0) return;
    Seating seating(desk.seats, desk.guard);
    Plan plan(seating, groups, rounds);
    Before before(desk, plan, rounds, late);
    try {
        Play playing = std::move(play);  // ends here, with its threads, before all is restored
        in_blocks(rounds, block_of(desk, late),
                  [&](std::size_t from, std::size_t to) { playing(plan, before, from, to); });
        seating.keep();
    } catch (...) {
        before.restore();
        throw;
    }
}

void require_table(const ClassDesk& desk, const Table2& scores, std::size_t rounds,
                   const Array<double, 2>& said) {
    require(scores.shape(0) == rounds && said.shape(0) == rounds, "rows must be as many");
    require(scores.shape(1) == desk.classes() && said.shape(1) == desk.classes(),
            "there must be a column for each class");
}

// An outcome of an array that was checked: another thread can have written to it since.
std::size_t outcome_at(const ClassDesk& desk, const Array<const std::int64_t, 1>& y,
                       std::size_t t) {
    return static_cast<std::size_t>(y.data()[t]) % desk.classes();
}

void run(ClassDesk& desk, Table2 scores, nb::handle groups, Array<const std::int64_t, 1> y,
         Array<double, 2> said, bool threads) {
    const std::size_t rounds = y.shape(0), classes = desk.classes();
    require_table(desk, scores, rounds, said);
    // What the hints say of rows: they learn from each at once, and need nothing of the guard.
    std::vector<ClassRow> rows;
    std::vector<std::size_t> outcomes;
    Numbers hinted;
    const auto hint = [&](std::size_t from, std::size_t to, Aims& aims) {
        for (std::size_t next; from < to; from = next) {
            next = std::min(from + some, to);
            rows.resize(next - from);
            outcomes.resize(next - from);
            hinted.resize((next - from) * classes);
            for (std::size_t t = from; t < next; ++t) {
                rows[t - from].read(scores.data() + t * classes, classes, desk.logit);
                outcomes[t - from] = outcome_at(desk, y, t);
            }
            desk.hint.play(rows, outcomes.data(), hinted.data());
            aims.insert(aims.end(), hinted.begin(), hinted.end());
        }
    };
    play_whole(desk, groups, rounds, false,
               [&, ahead = std::unique_ptr<Ahead<Aim>>()](Plan& plan, Before&, std::size_t from,
                                                          std::size_t to) mutable {
                   if (from == 0) ahead = std::make_unique<Ahead<Aim>>(rounds, to, threads, hint);
                   const Aims& aims = ahead->next();
                   const auto aim = [&](std::size_t t) {
                       return t < to ? &aims[(t - from) * classes] : nullptr;
                   };
                   for (std::size_t t = from; t < to; ++t) {
                       desk.guard.look_ahead(aim(t + 2), aim(t + 1));
                       write(desk.guard.round(aim(t), plan.of(t), outcome_at(desk, y, t)),
                             said.data() + t * classes);
                   }
               });
}

// Issue every round, and resolve after it what is known then. An outcome that was given up is
// passed over.
void replay(ClassDesk& desk, Table2 scores, nb::handle groups, Array<const std::int64_t, 1> y,
            Array<const std::int64_t, 1> known_at, Array<const std::int64_t, 1> events,
            Array<double, 2> said) {
    const std::size_t rounds = y.shape(0), classes = desk.classes();
    require_table(desk, scores, rounds, said);
    require(known_at.shape(0) == rounds && (events.shape(0) == rounds || events.shape(0) == 0),
            "there must be an entry for each outcome");
    Known known(rounds);
    play_whole(desk, groups, rounds, true,
               [&](Plan& plan, Before& before, std::size_t t, std::size_t end) {
                   ClassRow row;
                   for (; t < end; ++t) {
                       row.read(scores.data() + t * classes, classes, desk.logit);
                       Issue forecast(desk, plan.of(t), row, event_at(events, t));
                       write(forecast.keep(desk, before.given_up).made, said.data() + t * classes);
                       before.forget_own();
                       known.add(t, known_at.data()[t]);
                       known.after(t, [&](std::size_t s) {
                           const auto found =
                               desk.tickets.find(before.issued + static_cast<std::int64_t>(s));
                           if (found != desk.tickets.end())
                               settle(desk, found, outcome_at(desk, y, s));
                       });
                   }
               });
}

// On copies, so that all other calls go on meanwhile: of the groups that are asked about.
void place(ClassDesk& desk, Table2 scores, nb::handle groups, Array<double, 2> said) {
    const std::size_t rounds = scores.shape(0), classes = desk.classes();
    require_table(desk, scores, rounds, said);
    if (rounds == 0) return;
    std::optional<Busy<ClassDesk>> copying(std::in_place, unread(desk));
    std::optional<Seating<ClassGuard>> seating(std::in_place, desk.seats, desk.guard);
    Plan plan(*seating, groups, rounds, true);
    ClassGuard guard = desk.guard.copy_of(plan.used);
    plan.renumber();
    seating.reset();
    ClassMix hint = desk.hint;
    copying.reset();
    ClassPlaced made;
    ClassRow row;
    in_blocks(rounds, some, [&](std::size_t t, std::size_t end) {
        for (; t < end; ++t) {
            row.read(scores.data() + t * classes, classes, desk.logit);
            made.of = plan.of(t);
            guard.place(aims_of(hint.predict(row)).data(), made);
            write(made, said.data() + t * classes);
        }
    });
}

// Of the last forecast that `predict` or a batch made, to be studied.
nb::dict last(const ClassDesk& desk) {
    const ClassPlaced& made = desk.guard.made;
    nb::list tilts, keys;
    for (const Share& each : made.shares) {
        tilts.append(each.tilt);
        keys.append(each.key);
    }
    nb::dict all;
    all["tilts"] = tilts;
    all["keys"] = keys;
    all["moves"] = made.moves;
    all["spill"] = made.spill;
    all["worst"] = made.worst;
    all["energy"] = desk.guard.energy;
    all["allowance"] = desk.guard.allowance();
    return all;
}

nb::tuple find_level(const Table2& tilts) {
    const std::size_t classes = tilts.shape(0), cells = tilts.shape(1) - 1;
    require(classes >= 2 && classes <= 4096 && cells >= 1 && cells <= Levels::most_cells &&
                (cells & (cells - 1)) == 0,
            "each of several classes needs a power of two of tilts, and one");
    const std::vector<double> all(tilts.data(), tilts.data() + classes * (cells + 1));
    const Levels::Found found = Levels(all, classes).find();
    nb::list crossings;
    for (const std::size_t crossing : found.crossings) crossings.append(crossing);
    return nb::make_tuple(found.who, crossings);
}

}  // namespace

}  // namespace classes

void bind_classes(nb::module_& m) {
    using namespace classes;
    m.def("find_level", &find_level, "tilts"_a,
          "The class whose sample is at the height, and a crossing of each class "
          "(class_levels.hpp).");
    m.attr("CLASS_TICKETS") = described_tickets();
    m.attr("NUDGE") = described(Nudge().entries());
    nb::class_<ClassDesk, DeskBase>(m, "ClassDesk")
        .def(
            "__init__",
            [](ClassDesk* self, hints::HintHolder& each, std::size_t classes, bool across,
               double budget, bool nudges, bool logit, nb::type_object ticket_type,
               std::size_t most_groups, std::size_t most_tickets) {
                require(classes >= 2 && each.hint->inputs() == 1 && !each.hint->runs_python(),
                        "a desk needs a compiled hint and classes");
                new (self) ClassDesk(ClassMix(*at_rest(each).hint, classes, across), budget, nudges,
                                     logit, std::move(ticket_type), most_groups, most_tickets);
            },
            "each"_a, "classes"_a, "across"_a, "budget"_a, "nudges"_a, "logit"_a, "ticket_type"_a,
            "most_groups"_a, "most_tickets"_a)
        .def("predict", &predict, "scores"_a, "group"_a.none(), "said"_a,
             "Write what to say where the model says these scores.")
        .def("observe", &observe, "outcome"_a,
             "Learn the outcome that the last `predict` was about.")
        .def("issue", &issue, "scores"_a, "group"_a.none(), "event"_a.none(),
             "The ticket of a forecast whose outcome comes later.")
        .def("resolve", &resolve, "ticket"_a.none(), "outcome"_a, "Learn the outcome of a ticket.")
        .def("give_up", &give_up<ClassDesk>, "ticket"_a.none(),
             "Await the outcome of a ticket no longer.")
        .def("run", &run, "scores"_a, "groups"_a.none(), "outcomes"_a, "said"_a, "threads"_a,
             "Play a round for every outcome; write what was said. All or, if it is interrupted, "
             "nothing.")
        .def("replay", &replay, "scores"_a, "groups"_a.none(), "outcomes"_a, "known_at"_a,
             "events"_a, "said"_a,
             "Issue every round and resolve it once it is known; write what was said. All or "
             "nothing.")
        .def("place", &place, "scores"_a, "groups"_a.none(), "said"_a,
             "Write what would be said of each row if it came next.")
        .def("table", &table, "The tickets, column by column.")
        .def("restore", &restore_tickets, "issued"_a, "columns"_a, "Take over what `table` gave.")
        .def("saved_asked", &saved_asked, "The forecast that `observe` is about, if there is one.")
        .def("ask", &ask, "columns"_a, "Take over what `saved_asked` gave.")
        .def("saved_guard", &saved_guard, "All numbers of the guard.")
        .def("load_guard", &load_guard, "names"_a, "numbers"_a,
             "The names of groups, in the order of their numbers. Take over what `saved_guard` "
             "gave.")
        .def("hint_entries", &hint_entries, "What the state of the hints has (saving.hpp).")
        .def("saved_hint", &saved_hint, "All numbers of the hints.")
        .def("load_hint", &load_hint, "state"_a,
             "Take these numbers if they fit together; say whether they did.")
        .def("take", &take<ClassDesk>, "other"_a, "Take over everything that rounds change.")
        .def(
            "parts",
            [](const ClassDesk& d, std::size_t group, std::size_t k, bool top) {
                require(k < d.classes(), "there is no such class");
                return group_parts(top ? static_cast<const Guard&>(d.guard.tops) : d.guard,
                                   group * d.classes() + k);
            },
            "group"_a, "number"_a, "top"_a,
            "What the certificate of a class in a group is made of, 0 for everyone and 1 for all "
            "others; or of the rounds in which it was the most probable.")
        .def_prop_ro(
            "classes", [](const ClassDesk& d) { return d.classes(); }, "How many there are.")
        .def_prop_ro(
            "notes", [](const ClassDesk& d) { return d.hint.notes(); },
            "How many numbers a ticket keeps beside its scores.")
        .def(
            "limit_moves",
            [](ClassDesk& d, std::size_t coarse, std::size_t fine) {
                d.guard.coarse_moves = coarse;
                d.guard.fine_moves = fine;
            },
            "coarse"_a, "fine"_a,
            "Between two classes, for each of them: so that the last resort can be tested.")
        .def_prop_ro("last", &last,
                     "Of the last forecast: tilts and keys of the classes, how many moves between "
                     "two of them it took, and the account (class_guard.hpp).")
        .def_prop_ro(
            "rounds", [](ClassDesk& d) { return unread(d).guard.everyone().rounds; },
            "Outcomes learned so far.")
        .def_prop_ro("awaited", &awaited<ClassDesk>,
                     "The tickets whose outcomes are awaited, oldest first.")
        .def_prop_ro(
            "unresolved", [](ClassDesk& d) { return unread(d).tickets.size(); },
            "How many tickets await their outcomes.");
}

}  // namespace truecast

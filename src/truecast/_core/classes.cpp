// The desk of a recalibrator for K classes: hints, a guard, and the tickets of forecasts whose
// outcomes are awaited. As in recalibrate.cpp, Python runs only before anything is changed: an
// operation happened or it did not.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bursts.hpp"
#include "class_guard.hpp"
#include "class_hints.hpp"
#include "desk.hpp"
#include "edge.hpp"
#include "guard_state.hpp"
#include "saving.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {

nb::dict state_of(hints::Hint& hint);  // of hints.cpp
bool take_state(hints::Hint& hint, const nb::dict& state);

namespace {

using hints::ClassMix;
using hints::ClassRow;
using hints::Numbers;

// A forecast until its outcome comes.
struct Awaited {
    ClassPlaced made;
    Numbers kept;  // the scores, then the notes of the hints

    bool said(nb::handle p) const {
        if (!PyTuple_CheckExact(p.ptr())) return false;
        if (static_cast<std::size_t>(PyTuple_GET_SIZE(p.ptr())) != made.shares.size()) return false;
        for (std::size_t k = 0; k < made.shares.size(); ++k) {
            PyObject* const each = PyTuple_GET_ITEM(p.ptr(), static_cast<Py_ssize_t>(k));
            if (!PyFloat_CheckExact(each)) return false;
            if (PyFloat_AS_DOUBLE(each) != made.shares[k].said) return false;
        }
        return true;
    }
};

using Tickets = std::map<std::int64_t, Awaited>;

struct ClassDesk : Shared {
    nb::object ticket_type;
    std::size_t most_tickets;
    bool logit;

    ClassMix hint;
    ClassGuard guard;
    Tickets tickets;
    std::int64_t issued = 0;
    hints::Bursts bursts;
    Numbers asked;  // the scores that `observe` is about

    ClassDesk(ClassMix hint_, double budget, bool nudges, bool logit_, nb::object ticket_type_,
              std::size_t tickets_)
        : ticket_type(std::move(ticket_type_)),
          most_tickets(tickets_),
          logit(logit_),
          hint(std::move(hint_)),
          guard(hint.classes(), budget, nudges) {}

    std::size_t classes() const { return hint.classes(); }
    ClassRow row(const double* from) const {
        ClassRow made;
        made.read(from, classes(), logit);
        return made;
    }
};

using Row1 = Array<const double, 1>;
using Table2 = Array<const double, 2>;

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

nb::object predict(ClassDesk& desk, const Row1& scores, Array<double, 1> said) {
    const ClassRow row = row_of(desk, scores);
    require(said.shape(0) == desk.classes(), "there must be room for each class");
    const Busy working(unread(desk));
    Numbers now = row.given;
    write(desk.guard.predict(desk.hint.predict(row).data()), said.data());
    desk.asked = std::move(now);
    return nb::none();
}

void observe(ClassDesk& desk, std::int64_t y) {
    const std::size_t outcome = class_of(desk, y);
    if (!unread(desk).guard.issued)
        refuse("observe() needs a forecast to judge: call predict() before each observe()");
    const Busy working(desk);
    desk.hint.learn(desk.row(desk.asked.data()), outcome);
    desk.guard.observe(outcome);
}

nb::object said_of(const ClassPlaced& made) {
    nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(made.shares.size())));
    if (!all.is_valid()) throw nb::python_error();
    for (std::size_t k = 0; k < made.shares.size(); ++k) {
        PyObject* const p = PyFloat_FromDouble(made.shares[k].said);
        if (p == nullptr) throw nb::python_error();
        PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(k), p);
    }
    return all;
}

// A forecast to be issued: all that may fail comes first, `keep` changes the desk.
class Issue {
    Tickets room;
    Numbers hint;

  public:
    Issue(ClassDesk& desk, const ClassRow& row) {
        Awaited& forecast = room[desk.issued];
        forecast.kept = row.given;
        forecast.kept.resize(desk.classes() + desk.hint.notes());
        forecast.made.shares.resize(desk.classes());
        hint = desk.hint.issue(row, forecast.kept.data() + desk.classes());
    }

    // The ticket that is given up if there is no room goes to `given_up`.
    const ClassPlaced& keep(ClassDesk& desk, Tickets& given_up) {
        if (desk.tickets.size() >= desk.most_tickets) {
            desk.guard.give_up(desk.tickets.begin()->second.made);
            desk.bursts.given_up();
            given_up.insert(desk.tickets.extract(desk.tickets.begin()));
        }
        ClassPlaced& made = room.begin()->second.made;
        desk.guard.issue(hint.data(), made);
        desk.bursts.issued();
        desk.tickets.insert(desk.tickets.end(), room.extract(room.begin()));
        ++desk.issued;
        return made;
    }
};

nb::object issue(ClassDesk& desk, const Row1& scores) {
    const ClassRow row = row_of(desk, scores);
    std::int64_t number;
    nb::object said;
    {
        const Busy working(unread(desk));
        Issue forecast(desk, row);
        Tickets given_up;
        const ClassPlaced& made = forecast.keep(desk, given_up);
        number = desk.issued - 1;
        said = said_of(made);
    }
    return ticket(desk.ticket_type, number, said);
}

// How much an outcome counts goes by how the most probable class did.
void settle(ClassDesk& desk, Tickets::iterator found, std::size_t y) {
    const Awaited& forecast = found->second;
    const std::size_t top = forecast.made.top();
    const double residual = (y == top ? 1.0 : 0.0) - forecast.made.shares[top].said;
    const double weight = desk.bursts.weight(residual, 0);
    desk.hint.learn(desk.row(forecast.kept.data()), y, forecast.kept.data() + desk.classes(),
                    weight);
    desk.guard.settle_late(forecast.made, y, {weight, desk.bursts.effect()});
    desk.tickets.erase(found);
}

void resolve(ClassDesk& desk, nb::handle given, std::int64_t y) {
    const std::size_t outcome = class_of(desk, y);
    const auto found = Handed(desk.ticket_type, given).find(desk, given);
    const Busy working(desk);
    settle(desk, found, outcome);
}

void give_up(ClassDesk& desk, nb::handle given) {
    const auto found = Handed(desk.ticket_type, given).find(desk, given);
    const Busy working(desk);
    desk.guard.give_up(found->second.made);
    desk.bursts.given_up();
    desk.tickets.erase(found);
}

// Everything that a batch changes, to go back to.
class Before {
    ClassDesk& desk;
    ClassMix hint;
    const std::vector<Nudge> pushes;
    const ClassPlaced made;
    Undo guard, tops;
    const hints::Bursts bursts;
    const Numbers asked;

  public:
    const std::int64_t issued;
    Tickets given_up;  // since

    Before(ClassDesk& of, std::size_t rounds)
        : desk(of),
          hint(of.hint),
          pushes(of.guard.pushes),
          made(of.guard.made),
          guard(of.guard, of.guard.classes, rounds * of.classes()),
          tops(of.guard.tops, of.guard.classes, rounds),
          bursts(of.bursts),
          asked(of.asked),
          issued(of.issued) {}

    // Tickets that the batch itself issued and gave up need not come back.
    void forget_own() { given_up.erase(given_up.lower_bound(issued), given_up.end()); }

    void restore() {
        desk.hint = std::move(hint);
        guard.restore();
        tops.restore();
        desk.guard.pushes = pushes;
        desk.guard.made = made;
        desk.bursts = bursts;
        desk.asked = asked;
        desk.tickets.erase(desk.tickets.lower_bound(issued), desk.tickets.end());
        forget_own();
        desk.tickets.merge(given_up);
        desk.issued = issued;
    }
};

constexpr std::size_t block = 16;

// Plays the rounds of a batch by `play(before, from, to)`; all or, if something is thrown, nothing.
template <typename Play>
void play_whole(ClassDesk& desk, std::size_t rounds, Play play) {
    const Busy working(unread(desk));
    if (rounds == 0) return;
    Before before(desk, rounds);
    try {
        in_blocks(rounds, block, [&](std::size_t from, std::size_t to) { play(before, from, to); });
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

void run(ClassDesk& desk, Table2 scores, Array<const std::int64_t, 1> y, Array<double, 2> said) {
    const std::size_t rounds = y.shape(0), classes = desk.classes();
    require_table(desk, scores, rounds, said);
    play_whole(desk, rounds, [&](Before&, std::size_t t, std::size_t end) {
        ClassRow row;
        for (; t < end; ++t) {
            const std::size_t outcome = outcome_at(desk, y, t);
            row.read(scores.data() + t * classes, classes, desk.logit);
            write(desk.guard.round(desk.hint.predict(row).data(), outcome),
                  said.data() + t * classes);
            desk.hint.learn(row, outcome);
        }
    });
}

// Issue every round, and resolve after it what is known then. An outcome that was given up is
// passed over.
void replay(ClassDesk& desk, Table2 scores, Array<const std::int64_t, 1> y,
            Array<const std::int64_t, 1> known_at, Array<double, 2> said) {
    const std::size_t rounds = y.shape(0), classes = desk.classes();
    require_table(desk, scores, rounds, said);
    require(known_at.shape(0) == rounds, "there must be an entry for each outcome");
    Known known(rounds);
    play_whole(desk, rounds, [&](Before& before, std::size_t t, std::size_t end) {
        ClassRow row;
        for (; t < end; ++t) {
            row.read(scores.data() + t * classes, classes, desk.logit);
            Issue forecast(desk, row);
            write(forecast.keep(desk, before.given_up), said.data() + t * classes);
            before.forget_own();
            known.add(t, known_at.data()[t]);
            known.after(t, [&](std::size_t s) {
                const auto found = desk.tickets.find(before.issued + static_cast<std::int64_t>(s));
                if (found != desk.tickets.end()) settle(desk, found, outcome_at(desk, y, s));
            });
        }
    });
}

// On copies, so that all other calls go on meanwhile.
void place(ClassDesk& desk, Table2 scores, Array<double, 2> said) {
    const std::size_t rounds = scores.shape(0), classes = desk.classes();
    require_table(desk, scores, rounds, said);
    if (rounds == 0) return;
    std::optional<Busy<ClassDesk>> copying(std::in_place, unread(desk));
    ClassGuard guard = desk.guard;
    ClassMix hint = desk.hint;
    copying.reset();
    ClassPlaced made;
    ClassRow row;
    in_blocks(rounds, block, [&](std::size_t t, std::size_t end) {
        for (; t < end; ++t) {
            row.read(scores.data() + t * classes, classes, desk.logit);
            guard.place(hint.predict(row).data(), made);
            write(made, said.data() + t * classes);
        }
    });
}

nb::list awaited(ClassDesk& desk) {
    std::vector<std::pair<std::int64_t, nb::object>>
        all;  // first: a finaliser can run while tickets are made
    for (const auto& [number, forecast] : unread(desk).tickets)
        all.emplace_back(number, said_of(forecast.made));
    nb::list tickets;
    for (const auto& [number, p] : all) tickets.append(ticket(desk.ticket_type, number, p));
    return tickets;
}

// The tickets as they are saved, column by column.
struct Table {
    std::vector<std::int64_t> number, worst, key;
    Numbers forecast, kept;

    Entries entries() {
        return {{"number", number, 0, half_range, "of each ticket, increasing"},
                {"worst", worst, 0, half_range, "over 2^20: what is reserved for it"},
                {"key", key, 0, arc_end, "of each class: where on the arc it is credited"},
                {"forecast", forecast, 0, 1, "of each class: what was said"},
                {"kept", kept, -largest, largest, "scores, then the notes of the hints"}};
    }

    void add(const ClassPlaced& made) {
        worst.push_back(made.worst);
        for (const Share& each : made.shares) {
            key.push_back(each.key);
            forecast.push_back(each.said);
        }
    }

    void read(std::size_t at, std::size_t classes, ClassPlaced& made) const {
        made.worst = worst[at];
        made.shares.resize(classes);
        for (std::size_t k = 0; k < classes; ++k) {
            const std::size_t place = at * classes + k;
            const double none[aim_size] = {};
            const Placed one = placed(forecast[place], key[place], 0, none);
            made.shares[k] = {one.said, one.key, 0.0, one.price, one.off};
        }
    }
};

nb::dict table(ClassDesk& desk) {
    Table all;
    for (const auto& [number, ticket] : desk.tickets) {
        all.number.push_back(number);
        all.add(ticket.made);
        all.kept.insert(all.kept.end(), ticket.kept.begin(), ticket.kept.end());
    }
    return saved(all.entries());
}

void restore_tickets(ClassDesk& desk, std::int64_t issued, const nb::dict& columns) {
    Table all;
    load(all.entries(), columns);
    const std::size_t count = all.number.size(), classes = desk.classes();
    const std::size_t each = classes + desk.hint.notes();
    require(all.worst.size() == count && all.key.size() == count * classes &&
                all.forecast.size() == count * classes && all.kept.size() == count * each,
            "columns must be of one length");
    Tickets tickets;
    for (std::size_t t = 0; t < count; ++t) {
        Awaited& one = tickets[all.number[t]];
        all.read(t, classes, one.made);
        const double* const from = all.kept.data() + t * each;
        one.kept.assign(from, from + each);
    }
    require(tickets.size() == count, "tickets must have numbers of their own");
    desk.tickets = std::move(tickets);
    desk.issued = issued;
}

// The forecast that `observe` is about, if there is one: its row of the table, then what the
// budget did not allow for.
nb::dict asked(ClassDesk& desk) {
    Table one;
    if (desk.guard.issued) {
        one.number.push_back(desk.guard.made.spill);
        one.add(desk.guard.made);
        one.kept = desk.asked;
    }
    return saved(one.entries());
}

void ask(ClassDesk& desk, const nb::dict& columns) {
    Table one;
    load(one.entries(), columns);
    const std::size_t classes = desk.classes(), count = one.number.size();
    require(count <= 1 && one.worst.size() == count && one.key.size() == count * classes &&
                one.forecast.size() == count * classes && one.kept.size() == count * classes &&
                desk.guard.issued == (count == 1),
            "one forecast is asked for, if an outcome is awaited");
    if (count == 0) return;
    one.read(0, classes, desk.guard.made);
    desk.guard.made.spill = one.number[0];
    desk.guard.asked = desk.guard.account(desk.guard.made);
    desk.asked = one.kept;
}

nb::dict saved_guard(ClassDesk& desk) {
    nb::dict all;
    all["classes"] = saved(static_cast<Guard&>(desk.guard));
    all["tops"] = saved(static_cast<Guard&>(desk.guard.tops));
    nb::list pushes;
    for (Nudge& push : desk.guard.pushes) pushes.append(saved(push.entries()));
    all["nudges"] = pushes;
    return all;
}

bool load_guard(ClassDesk& desk, const nb::dict& all) {
    ClassGuard read(desk.classes(), desk.guard.budget, desk.guard.nudges);
    load(static_cast<Guard&>(read), nb::cast<nb::dict>(all["classes"]));
    load(static_cast<Guard&>(read.tops), nb::cast<nb::dict>(all["tops"]));
    read.fields = static_cast<double>(desk.classes());
    require(read.groups.size() == desk.classes() && read.tops.groups.size() == desk.classes(),
            "there must be a field for each class");
    for (std::size_t k = 0; k < desk.classes(); ++k) {
        load(read.pushes[k].entries(), nb::cast<nb::dict>(all["nudges"][k]));
        if (!in_range(read.pushes[k].entries()) || !read.pushes[k].settle()) return false;
    }
    desk.guard = std::move(read);
    return true;
}

nb::list hint_entries(ClassDesk& desk) {
    nb::list all;
    all.append(described(desk.hint.entries()));
    return all;
}

nb::dict saved_hint(ClassDesk& desk) {
    nb::dict all = saved(desk.hint.entries());
    nb::list each;
    for (const auto& hint : desk.hint.each()) each.append(state_of(*hint));
    all["each"] = each;
    return all;
}

// Numbers that Python has checked one by one: whether they fit together.
bool load_hint(ClassDesk& desk, const nb::dict& state) {
    ClassMix read(desk.hint);
    load(read.entries(), state);
    if (!in_range(read.entries()) || !read.settle()) return false;
    for (std::size_t k = 0; k < read.classes(); ++k)
        if (!take_state(*read.each()[k], nb::cast<nb::dict>(state["each"][k]))) return false;
    desk.hint = std::move(read);
    return true;
}

bool set_bursts(ClassDesk& desk, const nb::dict& numbers) {
    hints::Bursts read;
    load(read.entries(), numbers);
    if (!in_range(read.entries()) || !read.settle()) return false;
    desk.bursts = read;
    return true;
}

// All that rounds change becomes that of the other, at once.
void take(ClassDesk& desk, ClassDesk& other) {
    unread(other);
    unread(desk);
    std::swap(desk.hint, other.hint);
    std::swap(desk.guard, other.guard);
    std::swap(desk.tickets, other.tickets);
    std::swap(desk.issued, other.issued);
    std::swap(desk.bursts, other.bursts);
    std::swap(desk.asked, other.asked);
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

}  // namespace

void bind_classes(nb::module_& m) {
    m.attr("CLASS_TICKETS") = described(Table().entries());
    m.attr("NUDGE") = described(Nudge().entries());
    nb::class_<ClassDesk>(m, "ClassDesk")
        .def(
            "__init__",
            [](ClassDesk* self, hints::HintHolder& each, std::size_t classes, bool across,
               double budget, bool nudges, bool logit, nb::type_object ticket_type,
               std::size_t most_tickets) {
                require(classes >= 2 && most_tickets > 0 && each.hint->inputs() == 1 &&
                            !each.hint->runs_python(),
                        "a desk needs a compiled hint, classes and room for a ticket");
                require(PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(ticket_type.ptr()),
                                         &PyLong_Type) != 0,
                        "tickets must be ints");
                new (self) ClassDesk(ClassMix(*at_rest(each).hint, classes, across), budget, nudges,
                                     logit, std::move(ticket_type), most_tickets);
            },
            "each"_a, "classes"_a, "across"_a, "budget"_a, "nudges"_a, "logit"_a, "ticket_type"_a,
            "most_tickets"_a)
        .def("predict", &predict, "scores"_a, "said"_a,
             "Write what to say where the model says these scores.")
        .def("observe", &observe, "outcome"_a,
             "Learn the outcome that the last `predict` was about.")
        .def("issue", &issue, "scores"_a, "The ticket of a forecast whose outcome comes later.")
        .def("resolve", &resolve, "ticket"_a.none(), "outcome"_a, "Learn the outcome of a ticket.")
        .def("give_up", &give_up, "ticket"_a.none(), "Await the outcome of a ticket no longer.")
        .def("run", &run, "scores"_a, "outcomes"_a, "said"_a,
             "Play a round for every outcome; write what was said. All or, if it is interrupted, "
             "nothing.")
        .def("replay", &replay, "scores"_a, "outcomes"_a, "known_at"_a, "said"_a,
             "Issue every round and resolve it once it is known; write what was said. All or "
             "nothing.")
        .def("place", &place, "scores"_a, "said"_a,
             "Write what would be said of each row if it came next.")
        .def("alone", &alone<ClassDesk>, "read"_a, "Call this while calls of other threads wait.")
        .def("table", &table, "The tickets, column by column.")
        .def("restore", &restore_tickets, "issued"_a, "columns"_a, "Take over what `table` gave.")
        .def("saved_asked", &asked, "The forecast that `observe` is about, if there is one.")
        .def("ask", &ask, "columns"_a, "Take over what `saved_asked` gave.")
        .def("saved_guard", &saved_guard, "All numbers of the guard.")
        .def("load_guard", &load_guard, "numbers"_a, "Take over what `saved_guard` gave.")
        .def("hint_entries", &hint_entries, "What the state of the hints has (saving.hpp).")
        .def("saved_hint", &saved_hint, "All numbers of the hints.")
        .def("load_hint", &load_hint, "state"_a,
             "Take these numbers if they fit together; say whether they did.")
        .def("take", &take, "other"_a, "Take over everything that rounds change.")
        .def(
            "parts",
            [](const ClassDesk& d, std::size_t k, bool top) {
                return group_parts(top ? static_cast<const Guard&>(d.guard.tops) : d.guard, k);
            },
            "number"_a, "top"_a,
            "What the certificate of a class is made of; or of the rounds in which it was the most "
            "probable.")
        .def(
            "bursts", [](ClassDesk& d) { return saved(d.bursts.entries()); },
            "What is known of outcomes that come together.")
        .def("set_bursts", &set_bursts, "numbers"_a,
             "Take over what `bursts` gave, if the numbers fit together.")
        .def_prop_ro(
            "notes", [](const ClassDesk& d) { return d.hint.notes(); },
            "How many numbers a ticket keeps beside its scores.")
        .def_prop_ro("last", &last,
                     "Of the last forecast: tilts and keys of the classes, how many moves between "
                     "two of them it took, and the account (class_guard.hpp).")
        .def_prop_ro(
            "rounds", [](ClassDesk& d) { return unread(d).guard.everyone().rounds; },
            "Outcomes learned so far.")
        .def_prop_ro("awaited", &awaited, "The tickets whose outcomes are awaited, oldest first.")
        .def_prop_ro(
            "unresolved", [](ClassDesk& d) { return unread(d).tickets.size(); },
            "How many tickets await their outcomes.")
        .def_prop_ro(
            "issued", [](const ClassDesk& d) { return d.issued; },
            "How many tickets there were so far.");
}

}  // namespace truecast

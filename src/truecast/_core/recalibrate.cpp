// The recalibrator's desk: a hint, the guards of the groups, and the tickets of forecasts whose outcomes are awaited.
//
// An operation is one call, and in it Python runs only before anything is changed: to check arguments, and to make the
// guard of a new group. From then on no byte code runs, so neither an interrupt nor another thread can come in between:
// the operation happened or it did not.
//
// A hint that Python provides runs in the midst of it. Meanwhile the desk is busy, so that other calls are refused. It
// is asked before the guard is, and learns before the guard does: if it throws, the desk and its guards are as before.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>
#ifndef _WIN32
#include <unistd.h>
#endif

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "edge.hpp"
#include "hints.hpp"
#include "split_ladder.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {

Placed placed(const Guarded& guard, std::int64_t low, std::int64_t high, double said);  // of split_ladder.cpp
hints::Score score_of(const hints::Held& held, nb::handle score);                       // of hints.cpp

namespace {

using hints::Held;
using hints::Hint;

// A forecast until its outcome comes.
struct Awaited {
    std::size_t guard;
    double score;
    Placed made;
    std::vector<double> notes;  // the hint's
};

// By their numbers, so oldest first. A node each: there is never a table to copy, so no call takes long.
using Tickets = std::map<std::int64_t, Awaited>;

struct Desk {
    nb::object make, ticket_type;  // makes a guard; the class of tickets
    std::size_t most_groups, most_tickets;

    nb::object hint;
    nb::dict names;                  // of groups, to the numbers of their guards; 0 is that of all others
    std::vector<nb::object> owners;  // of the guards
    std::vector<Guarded*> guards;
    Tickets tickets;
    std::int64_t issued = 0;
    std::size_t asked = none;  // the guard whose last forecast `observe` is about
    double asked_score = 0.0;

    bool busy = false;         // a call is under way, such as a batch without the interpreter lock
    unsigned long reader = 0;  // the thread that reads the whole, in several calls: others wait
    int reader_process = 0;    // a fork has no such thread
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    bool full() const { return tickets.size() >= most_tickets; }
    Held& held() const { return *nb::inst_ptr<Held>(hint); }

    void add(nb::object owner) {
        guards.push_back(nb::cast<Guarded*>(owner));
        owners.push_back(std::move(owner));
    }
};

int process() {
#ifdef _WIN32
    return 0;  // there is no fork
#else
    return static_cast<int>(getpid());
#endif
}

[[noreturn]] void refuse_ticket(const char* kind, const nb::object& rule, nb::handle value) {
    const nb::object type = nb::module_::import_("truecast.errors").attr(kind);
    const nb::object error = type("ticket", rule, value);
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
}

// The desk when no other call is under way: while another thread reads the whole, wait for it, and let signals in; while
// a batch runs, refuse.
Desk& at_rest(Desk& desk) {
    if (desk.reader != 0 && desk.reader_process != process()) desk.reader = 0;
    while (desk.reader != 0 && desk.reader != PyThread_get_thread_ident()) {
        {
            const nb::gil_scoped_release unlocked;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    if (desk.reader != 0) refuse("in use: it is being saved or certified by the call that this one interrupts");
    return truecast::at_rest<Desk>(desk);
}

// Calls `read` while all other calls wait.
nb::object alone(Desk& desk, const nb::callable& read) {
    struct Reading {
        Desk& desk;
        explicit Reading(Desk& of) : desk(of) {
            desk.reader = PyThread_get_thread_ident();
            desk.reader_process = process();
        }
        ~Reading() { desk.reader = 0; }
    };
    const Reading reading(at_rest(desk));
    return read();
}

// The name of a group: a str, an int or None, none of which runs code when it is looked up.
nb::object group_of(nb::handle group) {
    const bool plain = PyUnicode_CheckExact(group.ptr()) && PyUnicode_IS_ASCII(group.ptr());
    if (group.is_none() || plain) return nb::borrow(group);
    return nb::module_::import_("truecast._check").attr("group")(group);
}

std::size_t find(const nb::dict& names, nb::handle group) {
    PyObject* number = PyDict_GetItemWithError(names.ptr(), group.ptr());
    if (number == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    return number == nullptr ? Desk::none : PyLong_AsSize_t(number);
}

void name(const nb::dict& names, nb::handle group, std::size_t number) {
    const nb::int_ value(number);
    if (PyDict_SetItem(names.ptr(), group.ptr(), value.ptr()) != 0) throw nb::python_error();
}

// The guard of a group, which may have to be made; `keep` makes it one of the desk's.
class Place {
    nb::object group, made;

  public:
    std::size_t number;
    Guarded* guard;

    // The last that runs Python in an operation: afterwards the desk is at rest.
    Place(Desk& desk, nb::object name_) : group(std::move(name_)) {
        const auto is_new = [&] {
            number = find(at_rest(desk).names, group);
            if (number == Desk::none && desk.names.size() >= desk.most_groups) number = 0;
            return number == Desk::none;
        };
        if (is_new()) {
            made = desk.make();
            if (!is_new()) made.reset();  // another thread came first
        }
        number = made.is_valid() ? desk.guards.size() : number;
        guard = made.is_valid() ? nb::cast<Guarded*>(made) : desk.guards[number];
        truecast::at_rest(*guard);
        truecast::at_rest(desk.held());
    }

    void keep(Desk& desk) {
        if (!made.is_valid()) return;
        desk.owners.reserve(number + 1);
        desk.guards.reserve(number + 1);
        name(desk.names, group, number);
        desk.add(std::move(made));
    }
};

// The check may run Python, and another thread may load a state meanwhile: hold on to the hint that is asked.
hints::Score checked_score(const Desk& desk, nb::handle score) {
    const nb::object hint = desk.hint;
    return score_of(*nb::inst_ptr<Held>(hint), score);
}

double predict(Desk& desk, nb::handle score, nb::handle group) {
    const hints::Score x = checked_score(desk, score);
    Place place(desk, group_of(group));
    const Busy working(desk);
    const double hint = desk.held().hint->predict(&x);
    truecast::at_rest(*place.guard);
    place.keep(desk);
    desk.asked = place.number;
    desk.asked_score = x.given;
    return place.guard->predict(hint);
}

void observe(Desk& desk, nb::handle y) {
    const bool bit = outcome(y) != 0;
    if (at_rest(desk).asked == Desk::none || !desk.guards[desk.asked]->issued)
        refuse("observe() needs a forecast to judge: call predict() before each observe()");
    Guarded& guard = truecast::at_rest(*desk.guards[desk.asked]);
    Held& held = truecast::at_rest(desk.held());
    const Busy working(desk);
    const Busy guarding(guard);
    const hints::Score score = held.score(desk.asked_score);
    held.hint->learn(&score, bit);
    guard.observe(bit);
    desk.asked = Desk::none;
}

// A ticket, made without byte code.
nb::object ticket(const Desk& desk, std::int64_t number, double p) {
    static PyObject* const name_of_p = PyUnicode_InternFromString("p");
    const nb::tuple arguments = nb::make_tuple(number);
    auto* type = reinterpret_cast<PyTypeObject*>(desk.ticket_type.ptr());
    nb::object made = nb::steal(PyLong_Type.tp_new(type, arguments.ptr(), nullptr));
    const nb::float_ said(p);
    if (!made.is_valid() || PyObject_SetAttr(made.ptr(), name_of_p, said.ptr()) != 0) throw nb::python_error();
    return made;
}

// A forecast to be issued: all that may fail comes first, `keep` changes the desk.
class Issue {
    Tickets room;
    double hint;

  public:
    Issue(Desk& desk, std::size_t guard, const hints::Score& score) {
        Hint& from = *desk.held().hint;
        Awaited& forecast = room[desk.issued];
        forecast = {guard, score.given, {}, std::vector<double>(from.notes())};
        hint = from.issue(&score, forecast.notes.data());
    }

    // The ticket that is given up if there is no room goes to `given_up`.
    double keep(Desk& desk, const std::vector<Guarded*>& guards, Tickets& given_up) {
        if (desk.full()) {
            guards[desk.tickets.begin()->second.guard]->give_up();
            given_up.insert(desk.tickets.extract(desk.tickets.begin()));
        }
        Awaited& forecast = room.begin()->second;
        forecast.made = guards[forecast.guard]->issue(hint);
        desk.tickets.insert(desk.tickets.end(), room.extract(room.begin()));
        ++desk.issued;
        return forecast.made.said;
    }
};

nb::object issue(Desk& desk, nb::handle score, nb::handle group) {
    const hints::Score x = checked_score(desk, score);
    Place place(desk, group_of(group));
    std::int64_t number;
    double said;
    {
        const Busy working(desk);
        Issue forecast(desk, place.number, x);
        truecast::at_rest(*place.guard);
        if (desk.full()) truecast::at_rest(*desk.guards[desk.tickets.begin()->second.guard]);
        place.keep(desk);
        Tickets given_up;
        said = forecast.keep(desk, desk.guards, given_up);
        number = desk.issued - 1;
    }
    return ticket(desk, number, said);
}

// A ticket as it was handed in: its number, and what it says was said, if it is not the plain number.
struct Handed {
    std::int64_t number = -1;
    bool has_p;
    double p = 0.0;

    Handed(const Desk& desk, nb::handle given) {
        has_p = PyObject_TypeCheck(given.ptr(), reinterpret_cast<PyTypeObject*>(desk.ticket_type.ptr()));
        if (PyLong_CheckExact(given.ptr()) || has_p) {
            int over = 0;
            number = PyLong_AsLongLongAndOverflow(given.ptr(), &over);
            if (over != 0 || number > std::int64_t{1} << 62) number = -1;
        }
        if (number < 0) {
            const nb::object check = nb::module_::import_("truecast._check").attr("whole_number");
            number = nb::cast<std::int64_t>(
                check("ticket", given, "least"_a = 0, "most"_a = nb::int_(std::int64_t{1} << 62)));
        }
        if (has_p && !nb::try_cast(nb::getattr(given, "p", nb::none()), p)) refuse_other(given);
    }

    Tickets::iterator find(Desk& desk, nb::handle given) const {
        const auto found = at_rest(desk).tickets.find(number);
        if (found == desk.tickets.end()) {
            if (number < desk.issued)
                refuse_ticket("TicketError",
                              nb::str("must be one whose outcome is awaited: this was resolved or given up before"),
                              nb::int_(number));
            refuse_ticket("InputError", nb::str("must be one that was issued, below {}").format(desk.issued),
                          nb::int_(number));
        }
        if (has_p && p != found->second.made.said) refuse_other(given);
        return found;
    }

  private:
    [[noreturn]] static void refuse_other(nb::handle given) {
        refuse_ticket("InputError", nb::str("must be one of this recalibrator, not of another"), given);
    }
};

void settle(Desk& desk, const std::vector<Guarded*>& guards, Tickets::iterator found, bool y) {
    const Awaited& forecast = found->second;
    const Held& held = desk.held();
    const hints::Score score = held.score(forecast.score);
    held.hint->learn(&score, y, forecast.notes.data());
    guards[forecast.guard]->settle_late(forecast.made, y);
    desk.tickets.erase(found);
}

void resolve(Desk& desk, nb::handle given, nb::handle y) {
    const bool bit = outcome(y) != 0;
    const auto found = Handed(desk, given).find(desk, given);
    truecast::at_rest(desk.held());
    const Busy guarding(*desk.guards[found->second.guard]);
    const Busy working(desk);
    settle(desk, desk.guards, found, bit);
}

void give_up(Desk& desk, nb::handle given) {
    const auto found = Handed(desk, given).find(desk, given);
    truecast::at_rest(*desk.guards[found->second.guard]).give_up();
    desk.tickets.erase(found);
}

// The guards that the rounds of a batch belong to; those of new groups are the desk's once they are kept.
struct Plan {
    std::vector<std::size_t> numbers;  // of each round; a single one if it is that of all
    std::vector<Guarded*> guards;      // all: those of the desk, then the new ones
    std::vector<std::size_t> used;     // of the desk's

    // `makes` those of new groups; else they are that of all others, which is as new while there is room for groups.
    // `all` guards count as used, if tickets of any may be given up.
    Plan(Desk& desk, nb::handle groups, std::size_t rounds, bool makes, bool all = false) : guards(desk.guards) {
        if (groups.is_none()) {
            numbers.push_back(number(desk, groups, makes));
        } else {
            require(PyList_CheckExact(groups.ptr()) && nb::len(groups) == rounds, "each round needs a group");
            numbers.reserve(rounds);
            PyObject* last = nullptr;  // rows of a group often stand together
            for (std::size_t t = 0; t < rounds; ++t) {
                if (t % (1 << 20) == (1 << 20) - 1 && PyErr_CheckSignals() != 0) throw nb::python_error();
                PyObject* group = PyList_GET_ITEM(groups.ptr(), static_cast<Py_ssize_t>(t));
                numbers.push_back(group == last ? numbers.back() : number(desk, group, makes));
                last = group;
            }
        }
        std::vector<char> seen(guards.size(), 0);
        for (std::size_t k = 0; all && k < desk.guards.size(); ++k) {
            used.push_back(k);
            seen[k] = 1;
        }
        for (const std::size_t k : numbers) {
            if (k < desk.guards.size() && !seen[k]) used.push_back(k);
            seen[k] = 1;
        }
        for (const std::size_t k : used) truecast::at_rest(*guards[k]);
        truecast::at_rest(desk.held());
    }

    std::size_t of(std::size_t t) const { return numbers[numbers.size() == 1 ? 0 : t]; }

    void keep(Desk& desk) {
        desk.owners.reserve(guards.size());
        desk.guards.reserve(guards.size());
        for (auto& [group, owner] : fresh) {
            name(desk.names, group, desk.guards.size());
            desk.add(std::move(owner));
        }
    }

  private:
    std::vector<std::pair<nb::object, nb::object>> fresh;  // groups and their guards
    nb::dict fresh_names;

    std::size_t number(Desk& desk, nb::handle group, bool makes) {
        std::size_t found = find(desk.names, group);
        if (found != Desk::none) return found;
        if (!makes || (found = find(fresh_names, group)) != Desk::none) return makes ? found : 0;
        if (guards.size() > desk.most_groups) return 0;
        fresh.emplace_back(nb::borrow(group), desk.make());
        name(fresh_names, group, guards.size());
        guards.push_back(nb::cast<Guarded*>(fresh.back().second));
        return guards.size() - 1;
    }
};

// Everything that a batch changes, to go back to. Copies only the guards that its rounds use.
class Before {
    Desk& desk;
    std::unique_ptr<Hint> hint;
    std::vector<std::pair<Guarded*, Guarded>> guards;

  public:
    const std::int64_t issued;
    Tickets given_up;  // since

    Before(Desk& of, const Plan& plan) : desk(of), hint(desk.held().hint->clone()), issued(desk.issued) {
        guards.reserve(plan.used.size());
        for (const std::size_t k : plan.used) guards.emplace_back(plan.guards[k], *plan.guards[k]);
    }

    void restore() {
        desk.held().hint = std::move(hint);
        for (auto& [guard, before] : guards) *guard = std::move(before);
        desk.tickets.erase(desk.tickets.lower_bound(issued), desk.tickets.end());
        given_up.erase(given_up.lower_bound(issued), given_up.end());
        desk.tickets.merge(given_up);
        desk.issued = issued;
    }
};

// Which rounds become known after which: a chain of rounds for each, in their order.
class Known {
    std::vector<std::size_t> first, next;

  public:
    static constexpr std::size_t end = static_cast<std::size_t>(-1);

    Known(const std::int64_t* known_at, std::size_t rounds) : first(rounds, end), next(rounds, end) {
        for (std::size_t t = rounds; t-- > 0;) {
            const auto at = static_cast<std::size_t>(known_at[t]);
            if (at >= rounds) continue;  // not in this batch
            next[t] = first[at];
            first[at] = t;
        }
    }

    template <typename Use>
    void after(std::size_t t, Use use) const {
        for (std::size_t s = first[t]; s != end; s = next[s]) use(s);
    }
};

constexpr std::size_t block = 256;  // rounds, of some microseconds each if the hint is a large mix

// Plays the rounds of a batch by `play(plan, before, from, to)`; all or, if something is thrown, nothing. If outcomes are
// known `late`, tickets of any group may be given up.
template <typename Play>
void play_whole(Desk& desk, nb::handle groups, std::size_t rounds, bool late, Play play) {
    at_rest(desk);
    const Busy working(desk);
    if (rounds == 0) return;
    Plan plan(desk, groups, rounds, true, late && desk.tickets.size() + rounds > desk.most_tickets);
    const Busy hinting(desk.held());
    std::vector<Busy<Guarded>> guarding;
    guarding.reserve(plan.used.size());
    for (const std::size_t k : plan.used) guarding.emplace_back(*plan.guards[k]);
    Before before(desk, plan);
    const bool runs_python = desk.held().hint->runs_python();
    try {
        in_blocks(
            rounds, block, [&](std::size_t from, std::size_t to) { play(plan, before, from, to); }, runs_python);
        if (runs_python) desk.held().hint->at(-1);
        plan.keep(desk);
    } catch (...) {
        before.restore();
        throw;
    }
}

void run(Desk& desk, Array<const double, 1> scores, nb::handle groups, Array<const std::uint8_t, 1> y,
         Array<double, 1> said) {
    const std::size_t rounds = y.shape(0);
    require(scores.shape(0) == rounds && said.shape(0) == rounds, "there must be an entry for each outcome");
    play_whole(desk, groups, rounds, false, [&](const Plan& plan, Before&, std::size_t t, std::size_t end) {
        Hint& hint = *desk.held().hint;
        const bool runs_python = hint.runs_python();
        for (; t < end; ++t) {
            const hints::Score score = desk.held().score(scores.data()[t]);
            const bool one = (y.data()[t] & 1) != 0;
            if (runs_python) hint.at(static_cast<std::int64_t>(t));
            said.data()[t] = plan.guards[plan.of(t)]->round(hint.predict(&score), one);
            hint.learn(&score, one);
        }
    });
    if (rounds != 0) desk.asked = Desk::none;
}

// Issue every round, and resolve after it what is known then. An outcome that was given up is passed over.
void replay(Desk& desk, Array<const double, 1> scores, nb::handle groups, Array<const std::uint8_t, 1> y,
            Array<const std::int64_t, 1> known_at, Array<double, 1> said) {
    const std::size_t rounds = y.shape(0);
    require(scores.shape(0) == rounds && said.shape(0) == rounds && known_at.shape(0) == rounds,
            "there must be an entry for each outcome");
    const Known known(known_at.data(), rounds);
    play_whole(desk, groups, rounds, true, [&](const Plan& plan, Before& before, std::size_t t, std::size_t end) {
        Hint& hint = *desk.held().hint;
        const bool runs_python = hint.runs_python();
        for (; t < end; ++t) {
            if (runs_python) hint.at(static_cast<std::int64_t>(t));
            Issue forecast(desk, plan.of(t), desk.held().score(scores.data()[t]));
            said.data()[t] = forecast.keep(desk, plan.guards, before.given_up);
            known.after(t, [&](std::size_t s) {
                const auto found = desk.tickets.find(before.issued + static_cast<std::int64_t>(s));
                if (runs_python) hint.at(static_cast<std::int64_t>(s));
                if (found != desk.tickets.end()) settle(desk, plan.guards, found, (y.data()[s] & 1) != 0);
            });
        }
    });
}

// On copies, so that all other calls go on meanwhile.
void place(Desk& desk, Array<const double, 1> scores, nb::handle groups, Array<double, 1> said) {
    const std::size_t rounds = scores.shape(0);
    require(said.shape(0) == rounds, "there must be an entry for each score");
    if (rounds == 0) return;
    std::optional<Busy<Desk>> copying(std::in_place, at_rest(desk));
    const Plan plan(desk, groups, rounds, false);
    std::map<std::size_t, Guarded> guards;
    for (const std::size_t k : plan.used) guards.emplace(k, *plan.guards[k]);
    const Held hint = desk.held().copy();
    const bool runs_python = hint.hint->runs_python();
    copying.reset();
    std::vector<const Guarded*> copies(plan.guards.size(), nullptr);
    for (const auto& [k, guard] : guards) copies[k] = &guard;
    const auto play = [&](std::size_t t, std::size_t end) {
        for (; t < end; ++t) {
            if (runs_python) hint.hint->at(static_cast<std::int64_t>(t));
            const hints::Score score = hint.score(scores.data()[t]);
            said.data()[t] = copies[plan.of(t)]->place(hint.hint->predict(&score)).said;
        }
    };
    in_blocks(rounds, block, play, runs_python);
}

// A list of all guards, that of all others first.
nb::list guards(const Desk& desk) {
    nb::list all;
    for (const nb::object& owner : desk.owners) all.append(owner);
    return all;
}

nb::dict groups(const Desk& desk) {
    nb::dict all;
    for (const auto [group, number] : desk.names) all[group] = desk.owners[nb::cast<std::size_t>(number)];
    return all;
}

std::int64_t rounds(Desk& desk) {
    std::int64_t all = 0;
    for (const Guarded* guard : at_rest(desk).guards) all += guard->rounds;
    return all;
}

nb::list awaited(Desk& desk) {
    std::vector<std::pair<std::int64_t, double>> all;  // first: a finaliser can run while tickets are made
    for (const auto& [number, forecast] : at_rest(desk).tickets) all.emplace_back(number, forecast.made.said);
    nb::list tickets;
    for (const auto& [number, p] : all) tickets.append(ticket(desk, number, p));
    return tickets;
}

// Columns: number, guard, low, high; score, forecast, notes. And which notes are those that the hint would give now. A
// hint that Python provides is not asked.
nb::tuple table(Desk& desk) {
    const Held& held = truecast::at_rest(desk.held());
    const bool asks = held.hint->notes() != 0 && !held.hint->runs_python();
    const Held hint = asks ? held.copy() : Held{};
    std::vector<std::int64_t> whole_numbers[4];
    std::vector<double> scores, said, notes, now(held.hint->notes());
    std::vector<std::uint8_t> same;
    for (const auto& [number, forecast] : desk.tickets) {
        const std::int64_t row[] = {number, static_cast<std::int64_t>(forecast.guard), forecast.made.low,
                                    forecast.made.high};
        for (std::size_t k = 0; k < 4; ++k) whole_numbers[k].push_back(row[k]);
        scores.push_back(forecast.score);
        said.push_back(forecast.made.said);
        if (asks) {
            const hints::Score score = hint.score(forecast.score);
            hint.hint->issue(&score, now.data());
        }
        same.push_back(forecast.notes.empty() || (asks && now == forecast.notes));
        if (!same.back()) notes.insert(notes.end(), forecast.notes.begin(), forecast.notes.end());
    }
    return nb::make_tuple(copy(whole_numbers[0]), copy(whole_numbers[1]), copy(whole_numbers[2]),
                          copy(whole_numbers[3]), copy(scores), copy(said), copy(same), copy(notes));
}

using Column = Array<const std::int64_t, 1>;
using Floats = Array<const double, 1>;

void restore(Desk& desk, std::int64_t issued, Column numbers, Column guards, Column low, Column high, Floats scores,
             Floats said, Array<const std::uint8_t, 1> same, Floats notes) {
    const Held& held = truecast::at_rest(at_rest(desk).held());
    Hint& hint = *held.hint;
    const std::size_t count = numbers.shape(0), each = hint.notes();
    require(guards.shape(0) == count && low.shape(0) == count && high.shape(0) == count && scores.shape(0) == count &&
                said.shape(0) == count && same.shape(0) == count,
            "columns must be of one length");
    Tickets tickets;
    std::size_t from = 0;
    for (std::size_t t = 0; t < count; ++t) {
        const auto guard = static_cast<std::size_t>(guards.data()[t]);
        require(guard < desk.guards.size(), "no such guard");
        const hints::Score score = held.score(scores.data()[t]);
        Awaited forecast{guard, score.given, placed(*desk.guards[guard], low.data()[t], high.data()[t], said.data()[t]),
                         std::vector<double>(each)};
        if (same.data()[t] & 1) {
            if (each != 0) hint.issue(&score, forecast.notes.data());
        } else {
            require(from + each <= notes.shape(0), "there must be notes for each ticket");
            std::copy(notes.data() + from, notes.data() + from + each, forecast.notes.begin());
            from += each;
        }
        tickets.emplace_hint(tickets.end(), numbers.data()[t], std::move(forecast));
    }
    require(from == notes.shape(0) && tickets.size() == count, "there must be notes for each ticket");
    desk.tickets = std::move(tickets);
    desk.issued = issued;
}

// Groups in the order of their guards, which come after that of all others.
void seat(Desk& desk, const nb::list& names, const nb::list& guards) {
    require(guards.size() == names.size() + 1, "there must be a guard for each group, and one for all others");
    Desk& empty = at_rest(desk);
    require(empty.owners.size() == 1 && empty.tickets.empty(), "only a new desk can be furnished");
    nb::dict numbers;
    std::vector<nb::object> owners;
    std::vector<Guarded*> pointers;
    for (nb::handle guard : guards) {
        pointers.push_back(nb::cast<Guarded*>(guard));
        owners.push_back(nb::borrow(guard));
    }
    std::size_t number = 0;
    for (nb::handle group : names) name(numbers, group, ++number);
    desk.names = std::move(numbers);
    desk.owners = std::move(owners);
    desk.guards = std::move(pointers);
}

nb::object asked(const Desk& desk) {
    if (desk.asked == Desk::none) return nb::none();
    return nb::make_tuple(desk.asked_score, desk.asked);
}

void ask(Desk& desk, double score, std::size_t number) {
    require(number < at_rest(desk).guards.size() && desk.guards[number]->issued, "this guard awaits no outcome");
    desk.asked_score = desk.held().score(score).given;
    desk.asked = number;
}

// All that rounds change becomes that of the other, at once.
void take(Desk& desk, Desk& other) {
    at_rest(other);
    at_rest(desk);
    truecast::at_rest(desk.held());
    for (Guarded* guard : desk.guards) truecast::at_rest(*guard);
    std::swap(desk.hint, other.hint);
    std::swap(desk.names, other.names);
    std::swap(desk.owners, other.owners);
    std::swap(desk.guards, other.guards);
    std::swap(desk.tickets, other.tickets);
    std::swap(desk.issued, other.issued);
    std::swap(desk.asked, other.asked);
    std::swap(desk.asked_score, other.asked_score);
}

}  // namespace

void bind_recalibrate(nb::module_& m) {
    nb::class_<Desk>(m, "Desk")
        .def(
            "__init__",
            [](Desk* self, nb::handle hint, nb::callable make, nb::type_object ticket_type, std::size_t most_groups,
               std::size_t most_tickets) {
                require(nb::isinstance<Held>(hint) && most_tickets > 0, "a desk needs a hint and room for a ticket");
                require(nb::inst_ptr<Held>(hint)->hint->inputs() == 1, "a desk takes hints of one score");
                require(PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(ticket_type.ptr()), &PyLong_Type) != 0,
                        "tickets must be ints");
                nb::object others = make();
                nb::cast<Guarded*>(others);
                new (self) Desk{std::move(make), std::move(ticket_type), most_groups, most_tickets, nb::borrow(hint)};
                self->add(std::move(others));
            },
            "hint"_a, "make"_a, "ticket_type"_a, "most_groups"_a, "most_tickets"_a)
        .def("predict", &predict, "score"_a.none(), "group"_a.none(), "What to say where the model says this score.")
        .def("observe", &observe, "outcome"_a.none(), "Learn the outcome that the last `predict` was about.")
        .def("issue", &issue, "score"_a.none(), "group"_a.none(), "The ticket of a forecast whose outcome comes later.")
        .def("resolve", &resolve, "ticket"_a.none(), "outcome"_a.none(), "Learn the outcome of a ticket.")
        .def("give_up", &give_up, "ticket"_a.none(), "Await the outcome of a ticket no longer.")
        .def("run", &run, "scores"_a, "groups"_a.none(), "outcomes"_a, "said"_a,
             "Play a round for every outcome; write what was said. All or, if it is interrupted, nothing.")
        .def("replay", &replay, "scores"_a, "groups"_a.none(), "outcomes"_a, "known_at"_a, "said"_a,
             "Issue every round and resolve it once it is known; write what was said. All or nothing.")
        .def("place", &place, "scores"_a, "groups"_a.none(), "said"_a,
             "Write what would be said of each score if it came next.")
        .def("alone", &alone, "read"_a, "Call this while calls of other threads wait.")
        .def("table", &table, "The tickets, column by column.")
        .def("restore", &restore, "issued"_a, "number"_a, "guard"_a, "low"_a, "high"_a, "score"_a, "forecast"_a,
             "same"_a, "notes"_a, "Take over what `table` gave.")
        .def("seat", &seat, "names"_a, "guards"_a, "Give a new desk its groups.")
        .def("ask", &ask, "score"_a, "number"_a, "Have `observe` judge the guard of this number.")
        .def("take", &take, "other"_a, "Take over everything that rounds change.")
        .def_prop_ro(
            "hint", [](const Desk& d) { return d.hint; }, "What makes something of the scores.")
        .def_prop_ro(
            "names", [](const Desk& d) { return nb::list(d.names.keys()); }, "The groups, in order.")
        .def_prop_ro("guards", &guards, "All guards, that of all others first.")
        .def_prop_ro("groups", &groups, "The guard of each group.")
        .def_prop_ro("asked", &asked, "The score and the number of the guard that `observe` will judge.")
        .def_prop_ro("rounds", &rounds, "Outcomes learned so far.")
        .def_prop_ro("awaited", &awaited, "The tickets whose outcomes are awaited, oldest first.")
        .def_prop_ro(
            "unresolved", [](Desk& d) { return at_rest(d).tickets.size(); }, "How many tickets await their outcomes.")
        .def_prop_ro(
            "issued", [](const Desk& d) { return d.issued; }, "How many tickets there were so far.");
}

}  // namespace truecast

// The monitor's desk, as Python sees it. As in recalibrate.cpp an operation is one call, and Python
// runs only before anything is changed: it happened or it did not.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "desk.hpp"
#include "edge.hpp"
#include "watch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using namespace monitor;

void require_no_classes(const Watch& watch) {
    require(watch.classes() == 0, "forecasts of classes are rows");
}

void update(Watch& watch, nb::handle p, nb::handle y, nb::handle group) {
    require_no_classes(watch);
    const double said = probability("p", p);
    const bool one = outcome(y) != 0;
    const nb::object name = group_of(group);
    at_rest(watch);
    if (name.is_none())
        watch.desk.at_once(said, everyone, one);
    else
        watch.desk.at_once(said, watch.members(name), one);
}

std::int64_t issue(Watch& watch, nb::handle p, nb::handle group, nb::handle event) {
    require_no_classes(watch);
    const double said = probability("p", p);
    const nb::object name = group_of(group);
    const std::int64_t about = event_of(event);
    at_rest(watch);
    return watch.desk.issue(said, watch.members(name), about);
}

// The number of a forecast that awaits its outcome.
std::int64_t awaited(Watch& watch, nb::handle ticket) {
    std::int64_t number = -1;
    if (!PyLong_Check(ticket.ptr()) || PyBool_Check(ticket.ptr()) ||
        !nb::try_cast(ticket, number) || number < 0 || number >= at_rest(watch).desk.book.clock)
        refuse_ticket("InputError", nb::str("must be one that issue() gave"), ticket);
    if (!watch.desk.awaits(number))
        refuse_ticket("TicketError",
                      nb::str("awaits no outcome any more: it is resolved or given up"), ticket);
    return number;
}

void resolve(Watch& watch, nb::handle ticket, nb::handle y) {
    require_no_classes(watch);
    const bool one = outcome(y) != 0;
    watch.desk.close(awaited(watch, ticket), one ? Came::one : Came::zero);
}

void give_up(Watch& watch, nb::handle ticket, bool at_random) {
    const std::int64_t number = awaited(watch, ticket);
    if (at_random)
        watch.desk.close(number, std::nullopt);
    else
        watch.desk.close(number, Came::never);
}

// What a batch changes, to go back to.
class Undo {
    Watch& watch;
    const std::size_t names;
    const Book book;
    std::map<std::int64_t, Pending> tickets;  // as they were; those that are new are not among them
    const std::vector<bool> taken;
    const std::int64_t awaited, passed_over, given_up;
    const Lags lags;

  public:
    explicit Undo(Watch& of)
        : watch(of),
          names(of.names.size()),
          book(of.desk.book),
          taken(of.desk.late.taken),
          awaited(of.desk.late.awaited),
          passed_over(of.desk.late.passed_over),
          given_up(of.desk.late.given_up),
          lags(of.desk.late.lags) {
        watch.desk.late.changed = &tickets;
        watch.desk.late.first_new = book.clock;
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() { watch.desk.late.changed = nullptr; }

    void restore() {
        Late& late = watch.desk.late;
        late.tickets.erase(late.tickets.lower_bound(book.clock), late.tickets.end());
        for (const auto& [number, ticket] : tickets) late.tickets.erase(number);
        late.tickets.merge(tickets);
        late.taken = taken;
        late.awaited = awaited;
        late.passed_over = passed_over;
        late.given_up = given_up;
        late.lags = lags;
        watch.desk.book = book;
        watch.forget(names);
        late.events.clear();
        for (const auto& [number, ticket] : late.tickets)
            if (ticket.open && ticket.event != 0) ++late.events[ticket.event];
    }
};

// A batch: all of it or, if something is thrown, nothing.
template <typename Batch>
void all_or_nothing(Watch& watch, Batch batch) {
    const Busy working(watch);
    Undo before(watch);
    try {
        batch();
    } catch (...) {
        before.restore();
        throw;
    }
}

// Plays rounds in order. With `known_at`, each is issued, and resolved after the round named there;
// an outcome that was given up is passed over.
template <typename AtOnce, typename Issue, typename Close>
void play(Watch& watch, std::size_t rounds, Array<const std::int64_t, 1> known_at,
          Array<double, 1> evidence, AtOnce at_once, Issue issue, Close close) {
    const bool late = known_at.shape(0) != 0;
    require(!late || known_at.shape(0) == rounds, "there must be an entry for each outcome");
    require(evidence.shape(0) == rounds || evidence.shape(0) == 0,
            "there must be a place for the evidence of each round");
    Known known(late ? rounds : 0);
    const std::int64_t first = watch.desk.book.clock;
    in_blocks(rounds, 4096, [&](std::size_t t, std::size_t end) {
        for (; t < end; ++t) {
            if (late) {
                issue(t);
                known.add(t, known_at.data()[t]);
                known.after(t, [&](std::size_t s) {
                    const std::int64_t number = first + static_cast<std::int64_t>(s);
                    if (watch.desk.awaits(number)) close(number, s);
                });
            } else {
                at_once(t);
            }
            if (evidence.shape(0) != 0) evidence.data()[t] = watch.desk.book.evidence_of(0);
        }
    });
}

std::vector<Members> members_of(Watch& watch, nb::handle groups, std::size_t rounds) {
    std::vector<Members> of;
    if (groups.is_none()) return of;
    require(PyList_CheckExact(groups.ptr()) && nb::len(groups) == rounds,
            "each round needs a group");
    of.reserve(rounds);
    for (std::size_t t = 0; t < rounds; ++t) {
        if (t % 4096 == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
        of.push_back(watch.members(PyList_GET_ITEM(groups.ptr(), static_cast<Py_ssize_t>(t))));
    }
    return of;
}

// Issue and resolve, in the order of the steps: 0 is the next forecast, 1 the next ticket. Returns
// the number of the first ticket that was issued.
std::int64_t steps(Watch& watch, Array<const double, 1> p, nb::handle groups,
                   Array<const std::int64_t, 1> events, Array<const std::int64_t, 1> tickets,
                   Array<const std::uint8_t, 1> y, Array<const std::uint8_t, 1> order) {
    const std::size_t rounds = p.shape(0);
    require_no_classes(watch);
    require((events.shape(0) == rounds || events.shape(0) == 0) && tickets.shape(0) == y.shape(0) &&
                order.shape(0) == rounds + y.shape(0),
            "there must be a step for each forecast and ticket");
    // Invariant: of the steps before t, `issued` were forecasts and `resolved` tickets.
    std::size_t issued = 0, resolved = 0;
    std::vector<Members> of;
    const auto play = [&](std::size_t t, std::size_t end) {
        for (; t < end; ++t) {
            if (order.data()[t] == 0) {
                require(issued < rounds, "each must have a step");
                watch.desk.issue(checked(p.data()[issued]), of.empty() ? everyone : of[issued],
                                 event_at(events, issued));
                ++issued;
            } else {
                require(resolved < y.shape(0), "each must have a step");
                const std::int64_t number = tickets.data()[resolved];
                if (!watch.desk.awaits(number)) throw NotAwaited{resolved};
                const bool one = (y.data()[resolved] & 1) != 0;
                watch.desk.close(number, one ? Came::one : Came::zero);
                ++resolved;
            }
        }
    };
    try {
        all_or_nothing(watch, [&] {
            of = members_of(watch, groups, rounds);
            in_blocks(order.shape(0), 4096, play);
        });
        return watch.desk.book.clock - static_cast<std::int64_t>(rounds);
    } catch (const NotAwaited& step) {
        refuse_row(tickets.data()[step.place], watch.desk.book.clock, step.place);
    }
}

void run(Watch& watch, Array<const double, 1> p, Array<const std::uint8_t, 1> y, nb::handle groups,
         Array<const std::int64_t, 1> known_at, Array<const std::int64_t, 1> events,
         Array<double, 1> evidence) {
    const std::size_t rounds = y.shape(0);
    require_no_classes(watch);
    require(p.shape(0) == rounds, "there must be a forecast for each outcome");
    require(events.shape(0) == rounds || events.shape(0) == 0,
            "there must be an event for each outcome");
    std::vector<Members> groups_of;
    const auto of = [&](std::size_t t) -> const Members& {
        return groups_of.empty() ? everyone : groups_of[t];
    };
    const auto one = [&](std::size_t t) { return (y.data()[t] & 1) != 0; };
    all_or_nothing(watch, [&] {
        groups_of = members_of(watch, groups, rounds);
        play(
            watch, rounds, known_at, evidence,
            [&](std::size_t t) { watch.desk.at_once(checked(p.data()[t]), of(t), one(t)); },
            [&](std::size_t t) {
                watch.desk.issue(checked(p.data()[t]), of(t), event_at(events, t));
            },
            [&](std::int64_t number, std::size_t t) {
                watch.desk.close(number, one(t) ? Came::one : Came::zero);
            });
    });
}

// Rows of classes, and the numbers of those that came. They are checked; another thread can have
// written to them since.
void run_rows(Watch& watch, Array<const double, 2> rows, Array<const std::int64_t, 1> labels,
              Array<const std::int64_t, 1> known_at, Array<double, 1> evidence) {
    const std::size_t rounds = labels.shape(0), classes = watch.classes();
    require(classes > 0 && rows.shape(0) == rounds && rows.shape(1) == classes,
            "there must be a row for each outcome");
    std::vector<double> row(classes);
    const auto said = [&](std::size_t t) {
        std::transform(rows.data() + t * classes, rows.data() + (t + 1) * classes, row.begin(),
                       checked);
        return row.data();
    };
    const auto label = [&](std::size_t t) {
        return std::min(static_cast<std::size_t>(labels.data()[t]), classes - 1);
    };
    all_or_nothing(watch, [&] {
        play(
            watch, rounds, known_at, evidence,
            [&](std::size_t t) { watch.desk.at_once(said(t), label(t)); },
            [&](std::size_t t) { watch.desk.issue(said(t)); },
            [&](std::int64_t number, std::size_t t) { watch.desk.close_row(number, label(t)); });
    });
}

void update_row(Watch& watch, Array<const double, 1> row, std::size_t label) {
    const std::size_t classes = at_rest(watch).classes();
    require(row.shape(0) == classes && label < classes, "there must be a forecast of each class");
    watch.desk.at_once(row.data(), label);
}

std::int64_t issue_row(Watch& watch, Array<const double, 1> row) {
    require(row.shape(0) == at_rest(watch).classes(), "there must be a forecast of each class");
    return watch.desk.issue(row.data());
}

void resolve_row(Watch& watch, nb::handle ticket, std::size_t label) {
    require(label < at_rest(watch).classes(), "there is no such class");
    watch.desk.close_row(awaited(watch, ticket), label);
}

nb::tuple as_tuple(const Finding& found, std::size_t chain) {
    return nb::make_tuple(found.round, found.evidence, found.since, found.earliest, found.latest,
                          found.bet, found.share, found.miss, found.count, found.said, chain);
}

// Of a group in one chain, or in all if that is none: evidence, peak, alarms, refuted forecasts and
// rounds; what there is to say now, and what the last alarm said, or None, each with its chain. Of
// all chains: evidence of the one that has most, alarms of all.
nb::tuple look(Watch& watch, std::size_t group, std::optional<std::size_t> only) {
    const Book& book = at_rest(watch).desk.book;
    require(group < book.chains[0].accounts.size(), "there is no such group");
    require(!only || *only < book.chains.size(), "there is no such chain");
    const std::size_t begin = only.value_or(0), end = only ? *only + 1 : book.chains.size();
    std::int64_t alarms = 0, refuted = 0, rounds = 0;
    double peak = 0.0;
    nb::object last = nb::none();
    std::int64_t latest = -1;
    for (std::size_t at = begin; at < end; ++at) {
        const Account& account = book.chains[at].accounts[group];
        alarms += account.alarms;
        refuted += account.refuted;
        rounds += account.rounds;
        peak = std::max(peak, account.peak);
        const bool first = latest < 0 || (book.level && account.last.round < latest) ||
                           (!book.level && account.last.round > latest);
        if (account.alarms > 0 && first) {
            latest = account.last.round;
            last = as_tuple(account.last, at);
        }
    }
    const std::size_t at = only.value_or(book.leading(group));
    const double evidence = book.evidence(at, group);
    if (book.of_classes) rounds = book.rounds;
    return nb::make_tuple(evidence, peak, alarms, refuted, rounds,
                          as_tuple(book.chains[at].accounts[group].look(evidence), at), last);
}

std::uint32_t number_of(Watch& watch, nb::handle group) {
    const nb::object name = group_of(group);
    std::uint32_t found = Names::unknown;
    if (!name.is_none() && !PyTuple_CheckExact(name.ptr()))
        found = at_rest(watch).names.find(name, Names::Mark(name));
    if (found == Names::unknown) {
        PyErr_SetObject(PyExc_KeyError, group.ptr());
        throw nb::python_error();
    }
    return Watch::first + found;
}

}  // namespace

void bind_monitor(nb::module_& m) {
    m.attr("WATCH") = described_watch();
    m.attr("FOR_CERTAIN") = for_certain;
    m.attr("PLACES") = places;
    nb::class_<Watch>(m, "Watch")
        .def(nb::init<bool, double, int, std::size_t, std::size_t, std::size_t, std::size_t>(),
             "level"_a, "limit"_a, "order"_a, "chains"_a, "most_groups"_a, "most_awaited"_a,
             "classes"_a)
        .def("update", &update, "p"_a.none(), "y"_a.none(), "group"_a = nb::none(),
             "Learn the outcome of a forecast that is known before the next one is made.")
        .def("_issue", &issue, "p"_a.none(), "group"_a.none(), "event"_a.none())
        .def("resolve", &resolve, "ticket"_a.none(), "y"_a.none(),
             "Learn the outcome, 0 or 1, of an issued forecast.")
        .def("_give_up", &give_up, "ticket"_a.none(), "at_random"_a)
        .def("_run", &run, "p"_a, "y"_a, "groups"_a.none(), "known_at"_a, "events"_a, "evidence"_a)
        .def("_update_row", &update_row, "row"_a, "label"_a)
        .def("_issue_row", &issue_row, "row"_a)
        .def("_resolve_row", &resolve_row, "ticket"_a.none(), "label"_a)
        .def("_run_rows", &run_rows, "rows"_a, "labels"_a, "known_at"_a, "evidence"_a)
        .def("_steps", &steps, "p"_a, "groups"_a.none(), "events"_a, "tickets"_a, "y"_a, "order"_a)
        .def("_look", &look, "group"_a, "chain"_a = nb::none())
        .def("_names", &names_of)
        .def("_number_of", &number_of, "group"_a.none())
        .def("_saved", &saved_watch)
        .def("_load", &load_watch, "names"_a, "state"_a)
        .def(
            "_smooth",
            [](Watch& w) {
                const Book& book = at_rest(w).desk.book;
                return nb::make_tuple(copy(book.residual.data(), book.residual.size()), book.width,
                                      book.known);
            },
            "Residuals by forecast, the sum of K(p, p), and the number of outcomes.")
        .def_prop_ro(
            "_lags",
            [](Watch& w) {
                const Lags& lags = at_rest(w).desk.late.lags;
                return std::vector<double>(lags.begin(), lags.end());
            },
            "Of zeros and of ones: how many, the sum of their lags, and of the squares.")
        .def_prop_ro(
            "rounds", [](Watch& w) { return at_rest(w).desk.book.rounds; },
            "Outcomes bet on so far.")
        .def_prop_ro(
            "forecasts", [](Watch& w) { return at_rest(w).desk.book.clock; },
            "Forecasts so far, those that await their outcomes among them.")
        .def_prop_ro(
            "unresolved", [](Watch& w) { return at_rest(w).desk.late.awaited; },
            "Forecasts whose outcomes are awaited.")
        .def_prop_ro(
            "passed_over", [](Watch& w) { return at_rest(w).desk.late.passed_over; },
            "Forecasts that are not bet on: of an event that another one is about, say.")
        .def_prop_ro(
            "given_up", [](Watch& w) { return at_rest(w).desk.late.given_up; },
            "Forecasts whose outcomes never came.")
        .def_prop_ro(
            "awaited",
            [](Watch& w) {
                nb::list all;
                for (const auto& [number, ticket] : at_rest(w).desk.late.tickets)
                    if (ticket.open) all.append(number);
                return all;
            },
            "The tickets whose outcomes are awaited, oldest first.");
}

}  // namespace truecast

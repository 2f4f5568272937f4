// The monitor's desk, as Python sees it. As in recalibrate.cpp an operation is one call, and Python
// runs only before anything is changed: it happened or it did not.
#include "monitor.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <vector>

#include "arrays.hpp"
#include "desk.hpp"
#include "edge.hpp"
#include "late.hpp"
#include "names.hpp"
#include "saving.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using namespace monitor;

struct Watch {
    monitor::Desk desk;
    std::size_t most_groups;
    Names names;  // of accounts from `first` on; 0 is everyone, 1 all others beyond `most_groups`
    bool busy = false;

    static constexpr std::uint32_t others = 1, first = 2;

    Watch(bool level, double limit, int order, std::size_t chains, std::size_t groups,
          std::size_t awaited)
        : desk(level, limit, static_cast<Order>(order), chains, awaited), most_groups(groups) {
        require(order >= 0 && order <= 2 && chains >= 1, "there is no such order");
        desk.book.make_room(first);
    }

    std::uint32_t number(nb::handle name) {
        const Names::Mark mark(name);
        const std::uint32_t found = names.find(name, mark);
        if (found != Names::unknown) return first + found;
        if (names.size() >= most_groups) return others;
        desk.book.make_room(first + names.size() + 1);
        names.add(name, mark);
        return static_cast<std::uint32_t>(first + names.size() - 1);
    }

    Members members(nb::handle group) {
        if (group.is_none()) return {0};
        if (!PyTuple_CheckExact(group.ptr())) return {0, number(group)};
        Members all{0};
        for (nb::handle name : nb::borrow<nb::tuple>(group)) all.push_back(number(name));
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    void forget(std::size_t names_before) {
        while (names.size() > names_before) names.drop_last();
        for (Chain& chain : desk.book.chains) chain.accounts.resize(first + names.size());
    }
};

const Members alone{0};

// A group as it is looked up: None, a str or an int, or a tuple of these.
nb::object group_of(nb::handle group) {
    const bool plain = PyUnicode_CheckExact(group.ptr()) && PyUnicode_IS_ASCII(group.ptr());
    if (group.is_none() || plain) return nb::borrow(group);
    return nb::module_::import_("truecast._check").attr("group")(group);
}

void update(Watch& watch, nb::handle p, nb::handle y, nb::handle group) {
    const double said = probability("p", p);
    const bool one = outcome(y) != 0;
    const nb::object name = group_of(group);
    at_rest(watch);
    if (name.is_none())
        watch.desk.at_once(said, alone, one);
    else
        watch.desk.at_once(said, watch.members(name), one);
}

std::int64_t issue(Watch& watch, nb::handle p, nb::handle group, nb::handle event) {
    const double said = probability("p", p);
    const nb::object name = group_of(group);
    const nb::object check = nb::module_::import_("truecast._check");
    const std::int64_t about =
        event.is_none() ? 0 : nb::cast<std::int64_t>(check.attr("event")(event));
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

// The groups of each round of a batch; none if there are no groups.
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

void run(Watch& watch, Array<const double, 1> p, Array<const std::uint8_t, 1> y, nb::handle groups,
         Array<double, 1> evidence) {
    const std::size_t rounds = y.shape(0);
    require(p.shape(0) == rounds, "there must be a forecast for each outcome");
    require(evidence.shape(0) == rounds || evidence.shape(0) == 0,
            "there must be a place for the evidence of each round");
    const Busy working(watch);
    const std::size_t names_before = watch.names.size();
    const Book before = watch.desk.book;
    const Late late_before = watch.desk.late;
    try {
        const std::vector<Members> of = members_of(watch, groups, rounds);
        in_blocks(rounds, 4096, [&](std::size_t t, std::size_t end) {
            for (; t < end; ++t) {
                const Members& members = of.empty() ? alone : of[t];
                watch.desk.at_once(checked(p.data()[t]), members, (y.data()[t] & 1) != 0);
                if (evidence.shape(0) != 0) evidence.data()[t] = watch.desk.book.evidence_of(0);
            }
        });
    } catch (...) {
        watch.desk.book = before;
        watch.desk.late = late_before;
        watch.forget(names_before);
        throw;
    }
}

// What a batch of steps changes, to go back to.
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
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() { watch.desk.late.changed = nullptr; }

    void restore() {
        Late& late = watch.desk.late;
        late.tickets.erase(late.tickets.lower_bound(book.clock), late.tickets.end());
        for (auto& [number, ticket] : tickets)
            if (number < book.clock) late.tickets[number] = ticket;
        late.events.clear();
        for (const auto& [number, ticket] : late.tickets)
            if (ticket.open && ticket.event != 0) ++late.events[ticket.event];
        late.taken = taken;
        late.awaited = awaited;
        late.passed_over = passed_over;
        late.given_up = given_up;
        late.lags = lags;
        watch.desk.book = book;
        watch.forget(names);
    }
};

// A step of a batch that resolves what is not awaited.
struct NotAwaited {
    std::size_t place;  // among the tickets
};

// Issue and resolve, in the order of the steps: 0 is the next forecast, 1 the next ticket. Returns
// the number of the first ticket that was issued.
std::int64_t steps(Watch& watch, Array<const double, 1> p, nb::handle groups,
           Array<const std::int64_t, 1> events, Array<const std::int64_t, 1> tickets,
           Array<const std::uint8_t, 1> y, Array<const std::uint8_t, 1> order) {
    const std::size_t rounds = p.shape(0);
    require((events.shape(0) == rounds || events.shape(0) == 0) && tickets.shape(0) == y.shape(0) &&
                order.shape(0) == rounds + y.shape(0),
            "there must be a step for each forecast and ticket");
    const Busy working(watch);
    Undo before(watch);
    // Invariant: of the steps before t, `issued` were forecasts and `resolved` tickets.
    std::size_t issued = 0, resolved = 0;
    try {
        const std::vector<Members> of = members_of(watch, groups, rounds);
        in_blocks(order.shape(0), 4096, [&](std::size_t t, std::size_t end) {
            for (; t < end; ++t) {
                if (order.data()[t] == 0) {
                    require(issued < rounds, "each must have a step");
                    const std::int64_t event = events.shape(0) == 0 ? 0 : events.data()[issued];
                    watch.desk.issue(checked(p.data()[issued]), of.empty() ? alone : of[issued],
                                     event);
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
        });
        return watch.desk.book.clock - static_cast<std::int64_t>(rounds);
    } catch (const NotAwaited& step) {
        before.restore();
        refuse_row(tickets.data()[step.place], watch.desk.book.clock, step.place);
    } catch (...) {
        before.restore();
        throw;
    }
}

nb::tuple as_tuple(const Finding& found) {
    return nb::make_tuple(found.round, found.evidence, found.since, found.earliest, found.latest,
                          found.bet, found.share, found.miss, found.count, found.said);
}

// Evidence, peak, alarms, refuted forecasts and rounds; what there is to say now, and what the last
// alarm said, or None. Of all chains: evidence of the one that has most, alarms of all.
nb::tuple look(Watch& watch, std::size_t group) {
    const Book& book = at_rest(watch).desk.book;
    require(group < book.chains[0].accounts.size(), "there is no such group");
    std::int64_t alarms = 0, refuted = 0, rounds = 0;
    double peak = 0.0;
    nb::object last = nb::none();
    std::int64_t latest = -1;
    for (const Chain& chain : book.chains) {
        const Account& account = chain.accounts[group];
        alarms += account.alarms;
        refuted += account.refuted;
        rounds += account.rounds;
        peak = std::max(peak, account.peak);
        const bool first = latest < 0 || (book.level && account.last.round < latest) ||
                           (!book.level && account.last.round > latest);
        if (account.alarms > 0 && first) {
            latest = account.last.round;
            last = as_tuple(account.last);
        }
    }
    const std::size_t at = book.leading(group);
    const double evidence = book.evidence(at, group);
    return nb::make_tuple(evidence, peak, alarms, refuted, rounds,
                          as_tuple(book.chains[at].accounts[group].look(evidence)), last);
}

nb::list names_of(Watch& watch) {
    nb::list all;
    for (std::size_t k = 0; k < at_rest(watch).names.size(); ++k) all.append(watch.names[k]);
    return all;
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

// The columns of a table of tickets.
struct Tickets {
    std::vector<std::int64_t> number, event, members;
    std::vector<std::uint8_t> bet, open, came;
    std::vector<std::int64_t> chain, group;
    std::vector<double> p;

    Entries entries() {
        return {{"number", number, 0, most_rounds, "of the forecast, increasing"},
                {"p", p, 0, 1, "the forecast"},
                {"event", event, 0, 0x1p63, "a hash of its event; 0 if it has none"},
                {"bet", bet, 0, 1, "1 if it is bet on"},
                {"open", open, 0, 1, "1 if its outcome is awaited"},
                {"came", came, 0, 2, "its outcome; 2 if that is not known"},
                {"chain", chain, 0, 0x1p20, "the chain that it is bet on in"},
                {"members", members, 1, 0x1p20, "how many accounts it is of"},
                {"group", group, 0, 0x1p20, "these accounts, one ticket after the other"}};
    }
};

nb::dict saved_late(Watch& watch) {
    Late& late = watch.desk.late;
    Tickets all;
    for (const auto& [number, ticket] : late.tickets) {
        all.number.push_back(number);
        all.p.push_back(ticket.p);
        all.event.push_back(ticket.event);
        all.bet.push_back(ticket.bet ? 1 : 0);
        all.open.push_back(ticket.open ? 1 : 0);
        all.came.push_back(static_cast<std::uint8_t>(ticket.came));
        all.chain.push_back(ticket.chain);
        all.members.push_back(static_cast<std::int64_t>(ticket.of.size()));
        all.group.insert(all.group.end(), ticket.of.begin(), ticket.of.end());
    }
    nb::dict state;
    state["passed_over"] = late.passed_over;
    state["given_up"] = late.given_up;
    state["lags"] = copy(late.lags.data(), late.lags.size()).attr("tolist")();
    state["table"] = saved(all.entries());
    return state;
}

nb::dict saved_watch(Watch& watch) {
    Book& book = at_rest(watch).desk.book;
    nb::list chains;
    for (Chain& chain : book.chains) {
        nb::list accounts;
        for (Account& account : chain.accounts) accounts.append(saved(account.entries()));
        nb::dict one;
        one["rounds"] = chain.rounds;
        one["accounts"] = accounts;
        chains.append(one);
    }
    nb::dict state;
    state["book"] = saved(book.entries());
    state["chains"] = chains;
    state["late"] = saved_late(watch);
    state["groups"] = names_of(watch);
    return state;
}

void load_late(monitor::Desk& desk, const nb::dict& state, std::size_t accounts) {
    Tickets all;
    load(all.entries(), nb::cast<nb::dict>(state["table"]));
    Late& late = desk.late;
    late.passed_over = nb::cast<std::int64_t>(state["passed_over"]);
    late.given_up = nb::cast<std::int64_t>(state["given_up"]);
    const auto lags = nb::cast<std::vector<double>>(state["lags"]);
    require(lags.size() == late.lags.size(), "there must be three numbers of lags each");
    std::copy(lags.begin(), lags.end(), late.lags.begin());
    const std::size_t count = all.number.size();
    require(all.p.size() == count && all.event.size() == count && all.bet.size() == count &&
                all.open.size() == count && all.came.size() == count && all.chain.size() == count &&
                all.members.size() == count,
            "columns must be of one length");
    std::size_t at = 0;
    std::int64_t before = -1;
    for (std::size_t k = 0; k < count; ++k) {
        const std::int64_t members = all.members[k];
        require(all.number[k] > before && all.number[k] < desk.book.clock,
                "tickets must be in order");
        require(all.p[k] >= 0.0 && all.p[k] <= 1.0 && all.came[k] <= 2 && all.event[k] >= 0,
                "a ticket must have a forecast");
        require(
            all.chain[k] >= 0 && static_cast<std::size_t>(all.chain[k]) < desk.book.chains.size(),
            "there is no such chain");
        require(members >= 1 && static_cast<std::size_t>(members) <= all.group.size() - at,
                "members must fit the groups");
        before = all.number[k];
        Pending ticket;
        ticket.p = all.p[k];
        ticket.event = all.event[k];
        ticket.bet = all.bet[k] != 0;
        ticket.open = all.open[k] != 0;
        ticket.came = static_cast<Came>(all.came[k]);
        ticket.chain = static_cast<std::uint32_t>(all.chain[k]);
        for (std::int64_t g = 0; g < members; ++g, ++at) {
            require(all.group[at] >= 0 && static_cast<std::size_t>(all.group[at]) < accounts &&
                        (g == 0 ? all.group[at] == 0 : all.group[at] > all.group[at - 1]),
                    "there is no such group");
            ticket.of.push_back(static_cast<std::uint32_t>(all.group[at]));
        }
        if (ticket.open) {
            ++late.awaited;
            if (ticket.event != 0) ++late.events[ticket.event];
        }
        if (desk.order == Order::chains && ticket.bet && ticket.open) {
            require(!late.taken[ticket.chain], "a chain awaits one outcome");
            late.taken[ticket.chain] = true;
        }
        const bool first = k == 0;
        require(ticket.open || (desk.order == Order::issue && !first),
                "a resolved forecast waits only behind one that is not");
        late.tickets.emplace(before, std::move(ticket));
    }
    require(at == all.group.size() && static_cast<std::size_t>(late.awaited) <= desk.most_awaited,
            "tickets must be at most as many as are awaited");
}

void load_watch(Watch& watch, const nb::list& names, const nb::dict& state) {
    at_rest(watch);
    const monitor::Desk& now = watch.desk;
    Watch read(now.book.level, now.book.limit, static_cast<int>(now.order), now.book.chains.size(),
               watch.most_groups, now.most_awaited);
    for (nb::handle name : names) read.number(name);
    require(read.names.size() == nb::len(names), "groups must be distinct, and not too many");
    Book& book = read.desk.book;
    load(book.entries(), nb::cast<nb::dict>(state["book"]));
    require(in_range(book.entries()), "numbers must be in their ranges");
    const auto chains = nb::cast<nb::list>(state["chains"]);
    require(nb::len(chains) == book.chains.size(), "there must be as many chains");
    std::int64_t rounds = 0;
    for (std::size_t k = 0; k < book.chains.size(); ++k) {
        const auto one = nb::cast<nb::dict>(chains[k]);
        Chain& chain = book.chains[k];
        chain.rounds = nb::cast<std::int64_t>(one["rounds"]);
        require(chain.rounds >= 0 && static_cast<double>(chain.rounds) <= most_rounds,
                "rounds must be in their range");
        const auto accounts = nb::cast<nb::list>(one["accounts"]);
        require(nb::len(accounts) == chain.accounts.size(), "each group needs an account");
        for (std::size_t g = 0; g < chain.accounts.size(); ++g) {
            Account& account = chain.accounts[g];
            load(account.entries(), nb::cast<nb::dict>(accounts[g]));
            require(in_range(account.entries()), "numbers must be in their ranges");
            account.settle();
            require(account.rounds <= chain.rounds && account.clock <= book.clock,
                    "an account must have no more rounds than everyone");
        }
        require(chain.accounts[0].rounds == chain.rounds, "everyone must have all rounds");
        rounds += chain.rounds;
    }
    require(rounds == book.rounds && book.known <= book.rounds && book.rounds <= book.clock,
            "rounds must add up");
    load_late(read.desk, nb::cast<nb::dict>(state["late"]), book.chains[0].accounts.size());
    watch.desk = std::move(read.desk);
    watch.names = std::move(read.names);
}

nb::dict described_watch() {
    Book book(true, 1.0, 1);
    Account account;
    Tickets tickets;
    nb::dict all;
    all["book"] = described(book.entries());
    all["accounts"] = described(account.entries());
    all["tickets"] = described(tickets.entries());
    return all;
}

}  // namespace

void bind_monitor(nb::module_& m) {
    m.attr("WATCH") = described_watch();
    m.attr("FOR_CERTAIN") = for_certain;
    m.attr("PLACES") = places;
    nb::class_<Watch>(m, "Watch")
        .def(nb::init<bool, double, int, std::size_t, std::size_t, std::size_t>(), "level"_a,
             "limit"_a, "order"_a, "chains"_a, "most_groups"_a, "most_awaited"_a)
        .def("update", &update, "p"_a.none(), "y"_a.none(), "group"_a = nb::none(),
             "Learn the outcome of a forecast that is known before the next one is made.")
        .def("_issue", &issue, "p"_a.none(), "group"_a.none(), "event"_a.none())
        .def("resolve", &resolve, "ticket"_a.none(), "y"_a.none(),
             "Learn the outcome, 0 or 1, of an issued forecast.")
        .def("_give_up", &give_up, "ticket"_a.none(), "at_random"_a)
        .def("_run", &run, "p"_a, "y"_a, "groups"_a.none(), "evidence"_a)
        .def("_steps", &steps, "p"_a, "groups"_a.none(), "events"_a, "tickets"_a, "y"_a, "order"_a)
        .def("_look", &look, "group"_a)
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

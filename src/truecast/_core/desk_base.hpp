// What the desks of both recalibrators have in common: tickets in their order, events, bursts and
// the names of groups. A desk adds a hint, a guard and its Tickets, a map from numbers to forecasts
// that await their outcomes.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bursts.hpp"
#include "desk.hpp"
#include "events.hpp"
#include "seating.hpp"

namespace truecast {

struct DeskBase : Shared {
    nb::object ticket_type;
    std::size_t most_tickets;

    Seats seats;
    std::int64_t issued = 0;
    Events events;
    hints::Bursts bursts;
    std::vector<double> asked;  // the scores that `observe` is about, if an outcome is awaited

    DeskBase(nb::object tickets, std::size_t most_groups, std::size_t most)
        : ticket_type(std::move(tickets)), most_tickets(most), seats(most_groups) {
        require(
            PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(ticket_type.ptr()), &PyLong_Type) != 0,
            "tickets must be ints");
        require(most_tickets > 0, "a desk needs room for a ticket");
    }
};

// The outcome of a forecast is awaited no longer. The ticket stays.
template <typename AnyDesk, typename Awaited>
void lose(AnyDesk& desk, const Awaited& forecast) {
    desk.give_up(forecast);
    desk.bursts.given_up();
    desk.events.closed(forecast.event);
}

template <typename AnyDesk>
void give_up(AnyDesk& desk, nb::handle given) {
    const auto found = Handed(desk.ticket_type, given).find(desk, given);
    const Busy working(desk);
    lose(desk, found->second);
    desk.tickets.erase(found);
}

// If there is no room for one more ticket, the oldest is given up: it goes to `given_up`.
template <typename AnyDesk, typename Tickets>
void make_room(AnyDesk& desk, Tickets& given_up) {
    if (desk.tickets.size() < desk.most_tickets) return;
    lose(desk, desk.tickets.begin()->second);
    given_up.insert(desk.tickets.extract(desk.tickets.begin()));
}

// Keeps the only ticket of `room`. Cannot fail.
template <typename AnyDesk, typename Tickets>
void keep_ticket(AnyDesk& desk, Tickets& room) {
    desk.bursts.issued();
    desk.events.issued(room.begin()->second.event, desk.issued);
    desk.tickets.insert(desk.tickets.end(), room.extract(room.begin()));
    ++desk.issued;
}

// What a batch changes of the tickets, to go back to.
template <typename AnyDesk>
class TicketsBefore {
    const hints::Bursts bursts;
    Events::Undo events;

  protected:
    AnyDesk& desk;

  public:
    const std::int64_t issued;
    decltype(AnyDesk::tickets) given_up;  // or resolved, since

    explicit TicketsBefore(AnyDesk& of)
        : bursts(of.bursts), events(of.events, of.issued), desk(of), issued(of.issued) {}

    // Tickets that the batch itself issued and gave up need not come back.
    void forget_own() {
        while (!given_up.empty() && given_up.rbegin()->first >= issued)
            given_up.erase(std::prev(given_up.end()));
    }

    void restore_tickets() {
        desk.bursts = bursts;
        events.restore();
        desk.tickets.erase(desk.tickets.lower_bound(issued), desk.tickets.end());
        forget_own();
        desk.tickets.merge(given_up);
        desk.issued = issued;
    }
};

// What a ticket says, of one outcome or of each class.
inline nb::object as_object(double p) { return nb::float_(p); }
inline nb::object as_object(const std::vector<double>& row) {
    nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(row.size())));
    if (!all.is_valid()) throw nb::python_error();
    for (std::size_t k = 0; k < row.size(); ++k) {
        PyObject* const p = PyFloat_FromDouble(row[k]);
        if (p == nullptr) throw nb::python_error();
        PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(k), p);
    }
    return all;
}

template <typename AnyDesk>
nb::list awaited(AnyDesk& desk) {
    using Said = decltype(desk.tickets.begin()->second.p());
    // first: a finaliser can run while tickets are made
    std::vector<std::pair<std::int64_t, Said>> all;
    for (const auto& [number, forecast] : unread(desk).tickets)
        all.emplace_back(number, forecast.p());
    nb::list tickets;
    for (const auto& [number, p] : all)
        tickets.append(ticket(desk.ticket_type, number, as_object(p)));
    return tickets;
}

// All that rounds change becomes that of the other, at once.
template <typename AnyDesk>
void take(AnyDesk& desk, AnyDesk& other) {
    unread(other);
    unread(desk);
    std::swap(desk.hint, other.hint);
    std::swap(desk.guard, other.guard);
    std::swap(desk.seats, other.seats);
    std::swap(desk.tickets, other.tickets);
    std::swap(desk.issued, other.issued);
    std::swap(desk.events, other.events);
    std::swap(desk.bursts, other.bursts);
    std::swap(desk.asked, other.asked);
}

}  // namespace truecast

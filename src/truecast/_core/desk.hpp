// What the desks of recalibrators share at their edge with Python: who may use them now, tickets as
// they are handed out and in, and which rounds of a log become known when.
#pragma once

#include <nanobind/nanobind.h>
#ifndef _WIN32
#include <unistd.h>
#endif

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "edge.hpp"

namespace truecast {

namespace nb = nanobind;

// Who uses a desk.
struct Shared {
    bool busy = false;         // a call is under way, such as a batch without the interpreter lock
    unsigned long reader = 0;  // the thread that reads the whole, in several calls: others wait
    int reader_process = 0;    // a fork has no such thread
};

inline int process() {
#ifdef _WIN32
    return 0;  // there is no fork
#else
    return static_cast<int>(getpid());
#endif
}

[[noreturn]] inline void refuse_ticket(const char* kind, const nb::object& rule, nb::handle value) {
    const nb::object type = nb::module_::import_("truecast.errors").attr(kind);
    const nb::object error = type("ticket", rule, value);
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
}

// Of a batch: the ticket at this place is not awaited.
[[noreturn]] inline void refuse_row(std::int64_t number, std::int64_t issued, std::size_t place) {
    const bool was = number >= 0 && number < issued;
    const nb::object type =
        nb::module_::import_("truecast.errors").attr(was ? "TicketError" : "InputError");
    const nb::object rule =
        was ? nb::object(nb::str("must be ones whose outcomes are awaited: this was resolved or "
                                 "given up before"))
            : nb::object(nb::str("must be ones that were issued, below {}").format(issued));
    const nb::object error = type("tickets", rule, number, place);
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
}

// The desk when no other call is under way: while another thread reads the whole, wait for it, and
// let signals in; while a batch runs, refuse.
template <typename AnyDesk>
AnyDesk& unread(AnyDesk& desk) {
    if (desk.reader != 0 && desk.reader_process != process()) desk.reader = 0;
    while (desk.reader != 0 && desk.reader != PyThread_get_thread_ident()) {
        {
            const nb::gil_scoped_release unlocked;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    if (desk.reader != 0)
        refuse("in use: it is being saved or certified by the call that this one interrupts");
    return at_rest(desk);
}

// Calls `read` while all other calls wait.
template <typename AnyDesk>
nb::object alone(AnyDesk& desk, const nb::callable& read) {
    struct Reading {
        AnyDesk& desk;
        explicit Reading(AnyDesk& of) : desk(of) {
            desk.reader = PyThread_get_thread_ident();
            desk.reader_process = process();
        }
        ~Reading() { desk.reader = 0; }
    };
    const Reading reading(unread(desk));
    return read();
}

// A group as a desk takes it: None, a str or an int, or a tuple of these; none of them runs code
// when it is looked up.
inline nb::object group_of(nb::handle group) {
    const bool plain = PyUnicode_CheckExact(group.ptr()) && PyUnicode_IS_ASCII(group.ptr());
    if (group.is_none() || plain) return nb::borrow(group);
    return nb::module_::import_("truecast._check").attr("group")(group);
}

// The number of an event, which has a name or none; and that of a round of a log.
inline std::int64_t event_of(nb::handle event) {
    if (event.is_none()) return 0;
    return nb::cast<std::int64_t>(nb::module_::import_("truecast._check").attr("event")(event));
}
inline std::int64_t event_at(const Array<const std::int64_t, 1>& events, std::size_t t) {
    return events.shape(0) == 0 ? 0 : events.data()[t];
}

// A step of a batch that resolves what is not awaited.
struct NotAwaited {
    std::size_t place;  // among the tickets
};

// A ticket, made without byte code.
inline nb::object ticket(const nb::object& ticket_type, std::int64_t number, const nb::object& p) {
    static PyObject* const name_of_p = PyUnicode_InternFromString("p");
    const nb::tuple arguments = nb::make_tuple(number);
    auto* type = reinterpret_cast<PyTypeObject*>(ticket_type.ptr());
    nb::object made = nb::steal(PyLong_Type.tp_new(type, arguments.ptr(), nullptr));
    if (!made.is_valid() || PyObject_SetAttr(made.ptr(), name_of_p, p.ptr()) != 0)
        throw nb::python_error();
    return made;
}

// A ticket as it was handed in: its number, and what it says was said, if it is not the plain
// number.
class Handed {
    std::int64_t number = -1;
    bool has_p;
    nb::object p;

  public:
    Handed(const nb::object& ticket_type, nb::handle given) {
        has_p = PyObject_TypeCheck(given.ptr(), reinterpret_cast<PyTypeObject*>(ticket_type.ptr()));
        if (PyLong_CheckExact(given.ptr()) || has_p) {
            int over = 0;
            number = PyLong_AsLongLongAndOverflow(given.ptr(), &over);
            if (over != 0 || number > std::int64_t{1} << 62) number = -1;
        }
        if (number < 0) {
            const nb::object check = nb::module_::import_("truecast._check").attr("whole_number");
            number =
                nb::cast<std::int64_t>(check("ticket", given, nb::arg("least") = 0,
                                             nb::arg("most") = nb::int_(std::int64_t{1} << 62)));
        }
        if (has_p) p = nb::getattr(given, "p", nb::none());
    }

    // Among the tickets of a desk: those have a method said(p), whether p is their forecast.
    template <typename AnyDesk>
    auto find(AnyDesk& desk, nb::handle given) const {
        const auto found = unread(desk).tickets.find(number);
        if (found == desk.tickets.end()) {
            if (number < desk.issued)
                refuse_ticket("TicketError",
                              nb::str("must be one whose outcome is awaited: this was resolved or "
                                      "given up before"),
                              nb::int_(number));
            refuse_ticket("InputError",
                          nb::str("must be one of the {} issued so far: a state saved before a "
                                  "ticket was issued does not know it")
                              .format(desk.issued),
                          nb::int_(number));
        }
        if (has_p && !found->second.said(p))
            refuse_ticket("InputError", nb::str("must be one of this recalibrator, not of another"),
                          given);
        return found;
    }
};

// Which rounds become known after which: a ring of rounds for each, in their order. It grows as
// rounds are played, and memory that is zero at first is there at once: a long log does not keep an
// interrupt waiting.
class Known {
    struct Release {
        void operator()(std::size_t* memory) const { std::free(memory); }
    };
    using Numbers = std::unique_ptr<std::size_t[], Release>;

    static Numbers zeros(std::size_t count) {
        Numbers made(static_cast<std::size_t*>(std::calloc(count, sizeof(std::size_t))));
        if (made == nullptr && count > 0) throw std::bad_alloc();
        return made;
    }

    const std::size_t rounds;
    Numbers last, next;  // one more than the last round of a ring, 0 if there is none; and which
                         // comes after each

  public:
    explicit Known(std::size_t rounds_)
        : rounds(rounds_), last(zeros(rounds)), next(zeros(rounds)) {}

    void add(std::size_t t, std::int64_t known_at) {
        const auto at = static_cast<std::size_t>(known_at);
        if (at >= rounds) return;  // not in this batch
        const std::size_t before = last[at] == 0 ? t : last[at] - 1;
        next[t] = before == t ? t : next[before];
        next[before] = t;
        last[at] = t + 1;
    }

    template <typename Use>
    void after(std::size_t t, Use use) const {
        if (last[t] == 0) return;
        const std::size_t end = last[t] - 1;
        for (std::size_t s = next[end];; s = next[s]) {
            use(s);
            if (s == end) return;
        }
    }
};

}  // namespace truecast

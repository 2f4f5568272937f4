// The desk of a recalibrator for K classes, and how it is saved.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "class_guard.hpp"
#include "class_hints.hpp"
#include "desk_base.hpp"

namespace truecast::classes {

using hints::ClassMix;
using hints::ClassRow;
using hints::Numbers;

// A forecast until its outcome comes.
struct Awaited {
    ClassPlaced made;
    std::int64_t event = Events::none;
    Numbers kept;  // the scores, then the notes of the hints

    const Members& groups() const { return made.of; }
    Numbers p() const {
        Numbers all;
        for (const Share& each : made.shares) all.push_back(each.said);
        return all;
    }
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

struct ClassDesk : DeskBase {
    bool logit;
    ClassMix hint;
    ClassGuard guard;
    Tickets tickets;

    ClassDesk(ClassMix hint_, double budget, bool nudges, bool logit_, nb::object ticket_type_,
              std::size_t groups, std::size_t tickets_)
        : DeskBase(std::move(ticket_type_), groups, tickets_),
          logit(logit_),
          hint(std::move(hint_)),
          guard(hint.classes(), budget, nudges) {
        while (guard.group_count() < Seats::first) guard.add_group();
    }

    std::size_t classes() const { return hint.classes(); }
    ClassRow row(const double* from) const {
        ClassRow made;
        made.read(from, classes(), logit);
        return made;
    }
    void give_up(const Awaited& forecast) { guard.give_up(forecast.made); }
};

// How it is saved: class_state.cpp.

// The tickets, column by column, and back.
nb::dict table(ClassDesk& desk);
void restore_tickets(ClassDesk& desk, std::int64_t issued, const nb::dict& columns);
nb::list described_tickets();

// The forecast that `observe` is about, if there is one: its row of the table, whose number is what
// the budget did not allow for.
nb::dict saved_asked(ClassDesk& desk);
void ask(ClassDesk& desk, const nb::dict& columns);

nb::dict saved_guard(ClassDesk& desk);
// With the names of its groups. A guard that was saved before there were groups has none of them.
bool load_guard(ClassDesk& desk, const nb::list& names, const nb::dict& all);

nb::list hint_entries(ClassDesk& desk);
nb::dict saved_hint(ClassDesk& desk);
// Numbers that Python has checked one by one: whether they fit together.
bool load_hint(ClassDesk& desk, const nb::dict& state);

}  // namespace truecast::classes

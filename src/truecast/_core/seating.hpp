// Groups that rounds belong to, by their names, as desks take them from Python and keep them.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "edge.hpp"
#include "events.hpp"
#include "fetch.hpp"
#include "guard.hpp"
#include "names.hpp"

namespace truecast {

namespace nb = nanobind;

// The names of a desk's groups.
struct Seats {
    static constexpr std::uint32_t others = 1, first = 2;

    std::size_t most;
    Names names;            // of the groups from `first` on; 0 is everyone, 1 all beyond `most`
    std::size_t named = 0;  // of these, without those of a call that is under way

    explicit Seats(std::size_t most_) : most(most_) {}

    nb::list listed() const {
        nb::list all;
        for (std::size_t k = 0; k < named; ++k) all.append(names[k]);
        return all;
    }

    // As they were saved, in the order of their numbers; there are none yet.
    void load(const nb::list& all) {
        for (nb::handle name : all) names.add(name, Names::Mark(name));
        named = names.size();
    }

    std::size_t number_of(nb::handle group) const;
};

// A str or an int as the desk knows it, of whatever class; a null object for all else.
inline nb::object name_of(nb::handle group) {
    nb::object name = nb::borrow(group);
    if (PyUnicode_Check(group.ptr()))
        name = nb::steal(PyUnicode_FromObject(group.ptr()));
    else if (PyIndex_Check(group.ptr()))
        name = nb::steal(PyNumber_Index(group.ptr()));
    if (!name.is_valid()) throw nb::python_error();
    return PyUnicode_CheckExact(name.ptr()) || PyLong_CheckExact(name.ptr()) ? name : nb::object();
}

inline std::size_t Seats::number_of(nb::handle group) const {
    const nb::object name = name_of(group);
    std::uint32_t place = Names::unknown;
    if (name.is_valid()) place = names.find(name, Names::Mark(name));
    if (place < named) return first + place;
    PyErr_SetObject(PyExc_KeyError, group.ptr());
    throw nb::python_error();
}

// Finds groups, and makes those that are new; they are the desk's once they are kept.
// A guard counts its groups, adds one and drops the last: `group_count`, `add_group`, `drop_group`.
template <typename AnyGuard>
class Seating {
    Seats& seats;
    AnyGuard& guard;

  public:
    Seating(Seats& seats_, AnyGuard& guard_) : seats(seats_), guard(guard_) {}
    Seating(const Seating&) = delete;
    Seating& operator=(const Seating&) = delete;
    ~Seating() {
        forget();
        while (guard.group_count() > Seats::first + seats.named) guard.drop_group();
    }

    std::uint32_t number(nb::handle name, const Names::Mark& mark) {
        const std::uint32_t found = seats.names.find(name, mark);
        if (found != Names::unknown) return Seats::first + found;
        if (seats.names.size() >= seats.most) return Seats::others;
        const std::size_t made = Seats::first + seats.names.size();
        if (guard.group_count() == made) guard.add_group();
        seats.names.add(name, mark);
        return static_cast<std::uint32_t>(made);
    }

    // Everyone and the groups that a round belongs to, each once.
    Members of(nb::handle group) {
        if (group.is_none()) return {0};
        if (!PyTuple_CheckExact(group.ptr())) return {0, number(group, Names::Mark(group))};
        Members members{0};
        for (nb::handle name : nb::borrow<nb::tuple>(group))
            members.push_back(number(name, Names::Mark(name)));
        std::sort(members.begin(),
                  members.end());  // so that sums over them do not depend on how they were named
        members.erase(std::unique(members.begin(), members.end()), members.end());
        return members;
    }

    const Names& names() const { return seats.names; }

    void keep() { seats.named = seats.names.size(); }

    // Give the numbers of those that are new to others, while nothing is known of any of them.
    void forget() {
        while (seats.names.size() > seats.named) seats.names.drop_last();
    }
};

// The groups of a batch.
class Plan {
    // The group of each round, 0 if it has none; or the complement of a place among `several`.
    std::vector<std::uint32_t> rows;
    std::vector<Members> several;
    Members one{0}, two{0, 0};  // of a round that has no group, or a single one
    std::vector<bool> seen;

  public:
    std::vector<std::uint32_t> used;  // every group of some round, once, and everyone first
    std::size_t additions = 0;        // of residuals to groups, in all

    // `apart`: as if each round came next.
    template <typename AnyGuard>
    Plan(Seating<AnyGuard>& seating, nb::handle groups, std::size_t rounds, bool apart = false) {
        use(0);
        if (groups.is_none()) {
            additions = rounds;
            return;
        }
        require(PyList_CheckExact(groups.ptr()) && nb::len(groups) == rounds,
                "each round needs a group");
        rows.reserve(rounds);
        nb::dict known;
        for (std::size_t from = 0, to; from < rounds; from = to) {
            if (from % 1024 == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
            to = std::min(rounds, from + at_once);
            const auto at = static_cast<Py_ssize_t>(from);
            read(seating, &PyList_GET_ITEM(groups.ptr(), at), to - from, known, apart);
        }
    }

    // Until the next call.
    const Members& of(std::size_t t) {
        if (rows.empty() || rows[t] == 0) return one;
        if (is_several(rows[t])) return several[~rows[t]];
        two[1] = rows[t];
        return two;
    }

    // Whether there are rounds of several groups, which can be very many.
    bool has_several() const { return !several.empty(); }

    // Have what the rounds after t need fetched from memory: of many groups, few are in the cache.
    void look_ahead(const Guard& guard, std::size_t t) const {
        const auto single = [&](std::size_t s) { return s < rows.size() && !is_several(rows[s]); };
        if (single(t + 1)) guard.groups[rows[t + 1]].field.fetch();
        if (single(t + 2)) fetch(&guard.groups[rows[t + 2]], sizeof(Group));
    }

    // Number the groups anew, by their places among `used`.
    void renumber() {
        std::unordered_map<std::uint32_t, std::uint32_t> places;
        for (const std::uint32_t g : used)
            places.emplace(g, static_cast<std::uint32_t>(places.size()));
        for (std::uint32_t& row : rows)
            if (!is_several(row)) row = places.at(row);
        for (Members& members : several)
            for (std::uint32_t& g : members) g = places.at(g);
    }

  private:
    static constexpr std::size_t at_once = 16;  // rounds that wait for memory together

    static bool is_several(std::uint32_t row) { return row >> 31 != 0; }

    // The next rounds.
    template <typename AnyGuard>
    void read(Seating<AnyGuard>& seating, PyObject* const* groups, std::size_t count,
              const nb::dict& known, bool apart) {
        const Names& names = seating.names();
        std::array<Names::Mark, at_once> marks;
        const auto each_name = [&](auto use) {
            for (std::size_t k = 0; k < count; ++k)
                if (groups[k] != Py_None && !PyTuple_CheckExact(groups[k])) use(k);
        };
        each_name([&](std::size_t k) { names.fetch_entry(marks[k] = Names::Mark(groups[k])); });
        each_name([&](std::size_t k) { names.fetch_name(marks[k]); });
        for (std::size_t k = 0; k < count; ++k) {
            if (groups[k] == Py_None)
                add_single(0);
            else if (PyTuple_CheckExact(groups[k]))
                add_several(seating, groups[k], known);
            else
                add_single(seating.number(groups[k], marks[k]));
            if (apart) seating.forget();
        }
    }

    void add_single(std::uint32_t group) {
        use(group);
        rows.push_back(group);
        additions += group == 0 ? 1 : 2;
    }

    template <typename AnyGuard>
    void add_several(Seating<AnyGuard>& seating, nb::handle group, const nb::dict& known) {
        PyObject* number = PyDict_GetItemWithError(known.ptr(), group.ptr());
        if (number == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
        std::size_t place = several.size();
        if (number != nullptr) {
            place = PyLong_AsSize_t(number);
        } else {
            several.push_back(seating.of(group));
            for (const std::uint32_t g : several.back()) use(g);
            const nb::int_ value(place);
            const int failed = PyDict_SetItem(known.ptr(), group.ptr(), value.ptr());
            if (failed != 0) throw nb::python_error();
        }
        rows.push_back(~static_cast<std::uint32_t>(place));
        additions += several[place].size();
    }

    void use(std::uint32_t group) {
        if (group >= seen.size()) seen.resize(std::max<std::size_t>(group + 1, 2 * seen.size()));
        if (seen[group]) return;
        seen[group] = true;
        used.push_back(group);
    }
};

// The groups that a batch may change: its own, those of the tickets that it resolves and, if
// outcomes come `late`, those of the oldest tickets that there will be no room for.
template <typename AnyDesk>
std::vector<std::uint32_t> changed_by(const AnyDesk& desk, const Plan& plan, std::size_t rounds,
                                      bool late, const std::vector<std::uint32_t>& resolved = {}) {
    std::vector<std::uint32_t> all = plan.used;
    all.insert(all.end(), resolved.begin(), resolved.end());
    if (late && desk.tickets.size() + rounds > desk.most_tickets) {
        std::size_t over =
            std::min(desk.tickets.size() + rounds - desk.most_tickets, desk.tickets.size());
        for (auto oldest = desk.tickets.begin(); over-- > 0; ++oldest) {
            const Members& of = oldest->second.groups();
            all.insert(all.end(), of.begin(), of.end());
        }
    }
    if (all.size() == plan.used.size()) return all;
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

// The groups of a saved ticket, of which there are `count` besides everyone: the next of a column.
inline Members members_from(const std::vector<std::int64_t>& column, std::size_t& at,
                            std::int64_t count, std::size_t groups) {
    Members of{0};
    for (std::int64_t k = 0; k < count; ++k) {
        require(at < column.size(), "tickets must have as many groups and notes as they say");
        const std::int64_t g = column[at++];
        require(g > 0 && static_cast<std::size_t>(g) < groups, "no such group");
        of.push_back(static_cast<std::uint32_t>(g));
    }
    return of;
}

}  // namespace truecast

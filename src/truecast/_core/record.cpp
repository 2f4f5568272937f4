// The record of a service, as Python sees it.
#include "record.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "edge.hpp"
#include "saving.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using record::GroupSums;
using record::Open;
using record::Record;
using record::Side;

// Issue and resolve, in the order of the steps: 0 is the next forecast, 1 the next ticket. If a
// ticket is not awaited, it stops there: then throw the record away.
void steps(Record& record, Array<const std::int64_t, 1> at, Array<const double, 2> before,
           Array<const double, 2> after, Array<const std::int64_t, 1> counts,
           Array<const std::uint32_t, 1> members, Array<const std::int64_t, 1> tickets,
           Array<const std::int32_t, 1> outcomes, Array<const std::uint8_t, 1> order) {
    const std::size_t rounds = at.shape(0), K = record.classes;
    require(before.shape(0) == rounds && after.shape(0) == rounds && before.shape(1) == K &&
                after.shape(1) == K && tickets.shape(0) == outcomes.shape(0) &&
                order.shape(0) == rounds + tickets.shape(0) &&
                (counts.shape(0) == rounds || counts.shape(0) == 0),
            "there must be a step for each forecast and ticket");
    const nb::gil_scoped_release unlocked;
    std::size_t issued = 0, resolved = 0, member = 0;
    for (std::size_t t = 0; t < order.shape(0); ++t) {
        if (order.data()[t] == 0) {
            require(issued < rounds, "each must have a step");
            std::vector<std::uint32_t> of;
            if (counts.shape(0) != 0)
                for (std::int64_t g = 0; g < counts.data()[issued]; ++g) {
                    require(member < members.shape(0), "there must be as many groups");
                    of.push_back(members.data()[member++]);
                }
            record.issue(at.data()[issued], before.data() + issued * K, after.data() + issued * K,
                         std::move(of));
            ++issued;
        } else {
            require(resolved < tickets.shape(0), "each must have a step");
            require(record.resolve(tickets.data()[resolved], outcomes.data()[resolved]),
                    "a ticket must be awaited");
            ++resolved;
        }
    }
}

nb::dict saved_open(const Record& record) {
    std::vector<std::int64_t> ticket, at, counts, group;
    std::vector<double> numbers;
    for (const auto& [number, forecast] : record.open) {
        ticket.push_back(number);
        at.push_back(forecast.at);
        numbers.insert(numbers.end(), forecast.numbers.begin(), forecast.numbers.end());
        counts.push_back(static_cast<std::int64_t>(forecast.groups.size()));
        group.insert(group.end(), forecast.groups.begin(), forecast.groups.end());
    }
    nb::dict columns;
    columns["ticket"] = copy(ticket);
    columns["at"] = copy(at);
    columns["numbers"] = copy(numbers);
    columns["counts"] = copy(counts);
    columns["group"] = copy(group);
    return columns;
}

void load_open(Record& record, Array<const std::int64_t, 1> ticket, Array<const std::int64_t, 1> at,
               Array<const double, 1> numbers, Array<const std::int64_t, 1> counts,
               Array<const std::int64_t, 1> group) {
    const std::size_t each = 3 * record.classes, count = ticket.shape(0);
    require(at.shape(0) == count && counts.shape(0) == count && numbers.shape(0) == each * count,
            "columns must be of one length");
    std::map<std::int64_t, Open> open;
    std::size_t member = 0;
    for (std::size_t k = 0; k < count; ++k) {
        const double* row = numbers.data() + k * each;
        Open made{at.data()[k], std::vector<double>(row, row + each), {}};
        for (std::int64_t g = 0; g < counts.data()[k]; ++g) {
            require(member < group.shape(0), "there must be as many groups");
            const std::int64_t number = group.data()[member++];
            require(number >= 0 && number < (1 << 21), "there is no such group");
            made.groups.push_back(static_cast<std::uint32_t>(number));
        }
        open.emplace_hint(open.end(), ticket.data()[k], std::move(made));
    }
    require(open.size() == count && count <= record.most, "tickets must be distinct");
    record.open = std::move(open);
}

nb::dict saved_side(Side& side) {
    nb::dict all = saved(side.entries());
    all["before"] = saved(side.before.entries());
    all["after"] = saved(side.after.entries());
    return all;
}

void load_side(Record& record, std::size_t k, const nb::dict& state) {
    require(k < record.sides.size(), "there is no such side");
    Side read(record.cells);
    load(read.entries(), state);
    load(read.before.entries(), nb::cast<nb::dict>(state["before"]));
    load(read.after.entries(), nb::cast<nb::dict>(state["after"]));
    for (const record::Half* half : {&read.before, &read.after})
        require(half->zeros.size() == record.cells && half->ones.size() == record.cells &&
                    half->said.size() == record.cells,
                "there must be a number for each cell");
    require(read.recent.size() <= record::window && read.oldest >= 0 &&
                read.oldest < static_cast<std::int64_t>(record::window),
            "there must be at most as many recent outcomes");
    record.sides[k] = std::move(read);
}

nb::tuple as_tuple(const GroupSums& sums) {
    return nb::make_tuple(sums.rounds, sums.right, sums.before, sums.after);
}

GroupSums from_tuple(const nb::tuple& numbers) {
    require(nb::len(numbers) == 4, "a group has four sums");
    return {nb::cast<std::int64_t>(numbers[0]), nb::cast<std::int64_t>(numbers[1]),
            nb::cast<double>(numbers[2]), nb::cast<double>(numbers[3])};
}

// The single numbers: forecasts, those given up, noise, and sums of all and of each group.
nb::tuple sums_of(const Record& record) {
    nb::list groups;
    for (const GroupSums& each : record.groups) groups.append(as_tuple(each));
    return nb::make_tuple(record.issued, record.given_up, record.noise, as_tuple(record.all),
                          groups);
}

void load_sums(Record& record, std::int64_t issued, std::int64_t given_up, double noise,
               const nb::tuple& all, const nb::list& groups) {
    std::vector<GroupSums> read;
    for (nb::handle each : groups) read.push_back(from_tuple(nb::cast<nb::tuple>(each)));
    record.all = from_tuple(all);
    record.groups = std::move(read);
    record.issued = issued;
    record.given_up = given_up;
    record.noise = noise;
}

}  // namespace

void bind_record(nb::module_& m) {
    nb::class_<Record>(m, "Record")
        .def(nb::init<std::size_t, std::size_t, std::size_t>(), "classes"_a, "cells"_a, "most"_a)
        .def("steps", &steps, "at"_a, "before"_a, "after"_a, "counts"_a, "members"_a, "tickets"_a,
             "outcomes"_a, "order"_a,
             "Issue and resolve, in the order of the steps: 0 is the next forecast, 1 the next "
             "ticket.")
        .def(
            "issue",
            [](Record& r, std::int64_t at, double before, double after,
               std::vector<std::uint32_t> of) {
                require(r.classes == 1, "several classes need steps()");
                r.issue(at, &before, &after, std::move(of));
            },
            "at"_a, "before"_a, "after"_a, "groups"_a, "Remember a forecast, of one outcome.")
        .def(
            "resolve",
            [](Record& r, std::int64_t ticket, std::int64_t outcome) {
                require(r.resolve(ticket, outcome), "a ticket must be awaited");
            },
            "ticket"_a, "outcome"_a, "Add a forecast and its outcome.")
        .def(
            "give_up",
            [](Record& r, std::int64_t ticket) {
                require(r.give_up(ticket), "a ticket must be awaited");
            },
            "ticket"_a, "Remember a forecast no longer.")
        .def(
            "awaits", [](const Record& r, std::int64_t ticket) { return r.open.count(ticket) > 0; },
            "ticket"_a, "Whether the outcome of a forecast is awaited.")
        .def(
            "older_than",
            [](const Record& r, std::int64_t at) {
                std::vector<std::int64_t> tickets;
                for (const auto& [number, forecast] : r.open)
                    if (forecast.at < at) tickets.push_back(number);
                return tickets;
            },
            "at"_a, "The awaited forecasts that were made before this time.")
        .def("sums", &sums_of,
             "Forecasts, those given up, noise; rounds, right ones and sums of forecasts: of all, "
             "and of each group.")
        .def("load_sums", &load_sums, "issued"_a, "given_up"_a, "noise"_a, "everyone"_a, "groups"_a,
             "Take over what `sums` gave.")
        .def("saved_open", &saved_open, "The awaited forecasts, column by column.")
        .def("load_open", &load_open, "ticket"_a, "at"_a, "numbers"_a, "counts"_a, "group"_a,
             "Take over what `saved_open` gave.")
        .def(
            "side",
            [](Record& r, std::size_t k) {
                require(k < r.sides.size(), "there is no such side");
                return saved_side(r.sides[k]);
            },
            "number"_a, "The sums of one outcome, or of one class, before and after.")
        .def("load_side", &load_side, "number"_a, "state"_a, "Take over what `side` gave.")
        .def_ro("issued", &Record::issued, "Forecasts so far.")
        .def_ro("given_up", &Record::given_up, "Forecasts whose outcomes are awaited no longer.")
        .def_prop_ro(
            "rounds", [](const Record& r) { return r.all.rounds; }, "Outcomes so far.")
        .def_prop_ro(
            "unresolved", [](const Record& r) { return r.open.size(); },
            "Forecasts whose outcomes are awaited.")
        .def_prop_ro(
            "oldest",
            [](const Record& r) -> nb::object {
                if (r.open.empty()) return nb::none();
                return nb::int_(r.open.begin()->second.at);
            },
            "When the oldest of them was made, or None.");
}

}  // namespace truecast

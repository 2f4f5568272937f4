// The ladder that splits, as Python sees it: the walk without a horizon.
#include "split_ladder.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "arrays.hpp"
#include "edge.hpp"
#include "saving.hpp"
#include "sums.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {

namespace {

void require_points(const std::int64_t* points, std::size_t count) {
    require(count >= 2 && count <= most_cells + 1,
            "a ladder has 2 points or more, and not too many");
    for (std::size_t j = 1; j < count; ++j)
        require(points[j - 1] < points[j], "points must increase");
    require(points[0] == 0 && points[count - 1] == split_denominator, "points must go from 0 to 1");
}

void observe(Walk& walk, nb::handle y) { walk.step(awaited_outcome(walk, y)); }

void restore(Walk& walk, const nb::dict& numbers) {
    Walk read = at_rest(walk);
    load(read.entries(), numbers);
    const std::size_t count = read.points.size();
    require_points(read.points.data(), count);
    require(read.biases.size() == count && read.spent.size() == count - 1,
            "biases and spent must fit the points");
    require(read.biases.front() == 0 && read.biases.back() == 0, "the biases of 0 and 1 are 0");
    require(read.cell + 1 < count, "there is no such cell");
    walk = std::move(read);
}

}  // namespace

void bind_split_ladder(nb::module_& m) {
    m.attr("SPLIT_DENOMINATOR") = split_denominator;
    m.attr("MOST_CELLS") = most_cells;

    nb::class_<Walk>(m, "Walk")
        .def(
            "__init__",
            [](Walk* self, Array<const std::int64_t, 1> points, std::uint64_t threshold,
               bool middle) {
                require_points(points.data(), points.shape(0));
                require(threshold > 0, "the threshold must be positive");
                new (self) Walk(points.data(), points.shape(0), threshold, middle);
            },
            "points"_a, "threshold"_a, "middle"_a)
        .def(
            "predict", [](Walk& w) { return at_rest(w).predict(); },
            "The probability that the next outcome is 1; the same until that outcome is observed.")
        .def("observe", &observe, "outcome"_a.none(),
             "Learn the outcome, 0 or 1, that the last forecast was about. Refused, with nothing "
             "changed, if there was none.")
        .def("_run", &run_steps<Walk>, "outcomes"_a, "said"_a,
             "Play a round for every outcome; write what was said.")
        .def(
            "_entries", [](Walk& w) { return described(w.entries()); },
            "What a saved state has (saving.hpp).")
        .def(
            "_saved", [](Walk& w) { return saved(at_rest(w).entries()); },
            "All that rounds change.")
        .def("_restore", &restore, "numbers"_a, "Take over what `_saved` gave.")
        .def(
            "_sums",
            [](Walk& w) {
                return as_tuple(sums(at_rest(w).points.data(), w.biases.data(), w.biases.size(),
                                     split_denominator));
            },
            "A and B as integers: A = s[0] / N, B = (s[1] + s[2] / s[3]) / N.")
        .def_prop_ro(
            "points", [](Walk& w) { return copy(at_rest(w).points); },
            "Numerators of the points, over `denominator`.")
        .def_prop_ro(
            "biases", [](Walk& w) { return copy(at_rest(w).biases); },
            "Numerators of the biases, over `denominator`.")
        .def_prop_ro(
            "spent", [](Walk& w) { return copy(at_rest(w).spent); },
            "What the forecasts in each cell have deviated since it came to be, over twice "
            "`denominator`.")
        .def_prop_ro(
            "cells", [](Walk& w) { return at_rest(w).cells(); }, "The number of cells, m.")
        .def_prop_ro(
            "rounds", [](Walk& w) { return at_rest(w).rounds; }, "Outcomes observed so far.")
        .def_prop_ro(
            "squared_error", [](Walk& w) { return at_rest(w).squared_error; },
            "Sum of (forecast - outcome)**2.")
        .def_prop_ro(
            "_deviation", [](Walk& w) { return as_int(at_rest(w).deviation); },
            "The deviation over twice `denominator`.")
        .def_prop_ro(
            "open_cell", [](Walk& w) { return at_rest(w).cell; },
            "The open cell: the next forecast lies between the points of this number and the next.")
        .def_prop_ro(
            "issued", [](Walk& w) { return at_rest(w).issued; },
            "Whether a forecast is out and its outcome awaited.");
}

}  // namespace truecast

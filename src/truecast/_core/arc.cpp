// The forecaster on the arc, as Python sees it. Names and checks as in module.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <vector>

#include "arc_tree.hpp"
#include "arrays.hpp"
#include "edge.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using Counts = Array<const std::int64_t, 1>;

void observe(ArcTree& tree, nb::handle y) {
    const std::uint8_t bit = outcome(y);
    if (!at_rest(tree).issued) refuse("observe() needs a forecast to judge: call predict() before each observe()");
    tree.observe(bit);
}

void run(ArcTree& tree, Array<const std::uint8_t, 1> y, Array<double, 1> said) {
    require(y.shape(0) == said.shape(0), "said must have an entry for each outcome");
    whole_batch(tree, y.shape(0), 4096, [&](std::size_t t, std::size_t end) {
        for (; t < end; ++t) said.data()[t] = tree.step(y.data()[t] & 1);
    });
}

void restore(ArcTree& tree, Array<const double, 1> p, Counts zeros, Counts ones, bool issued) {
    require(zeros.shape(0) == p.shape(0) && ones.shape(0) == p.shape(0), "there must be counts for each forecast");
    ArcTree restored;
    for (std::size_t i = 0; i < p.shape(0); ++i) {
        const double place = std::ldexp(p.data()[i], 52);
        require(place >= 1.0 && place < 0x1p52 && place == std::floor(place), "forecasts must be dyadic");
        restored.add(p.data()[i], zeros.data()[i], ones.data()[i]);
    }
    if (issued) restored.predict();
    at_rest(tree) = std::move(restored);
}

// The forecasts that were said and their counts, from the lowest to the highest.
nb::tuple said(ArcTree& tree) {
    std::vector<double> p;
    std::vector<std::int64_t> zeros, ones;
    at_rest(tree).each([&](const Knot& knot) {
        p.push_back(knot.p);
        zeros.push_back(knot.zeros);
        ones.push_back(knot.ones);
    });
    return nb::make_tuple(copy(p), copy(zeros), copy(ones));
}

}  // namespace

void bind_arc(nb::module_& m) {
    nb::class_<ArcTree>(m, "ArcTree")
        .def(nb::init<>())
        .def(
            "predict", [](ArcTree& t) { return at_rest(t).predict(); },
            "The probability that the next outcome is 1; the same until that outcome is observed.")
        .def("observe", &observe, "outcome"_a.none(),
             "Learn the outcome, 0 or 1, that the last forecast was about. Refused, with nothing changed, if there was "
             "none.")
        .def("_run", &run, "outcomes"_a, "said"_a, "Play a round for every outcome; write what was said.")
        .def(
            "_take", [](ArcTree& t, ArcTree& from) { at_rest(t) = at_rest(from); }, "other"_a,
            "Become a copy of another forecaster.")
        .def("_restore", &restore, "p"_a, "zeros"_a, "ones"_a, "issued"_a)
        .def("_said", &said, "Distinct forecasts, increasing, with their zeros and ones.")
        .def_prop_ro(
            "knots", [](ArcTree& t) { return at_rest(t).knots(); }, "Forecasts that the tree holds sums for.")
        .def_prop_ro(
            "rounds", [](ArcTree& t) { return at_rest(t).rounds; }, "Outcomes observed so far.")
        .def_prop_ro(
            "issued", [](ArcTree& t) { return at_rest(t).issued; },
            "Whether a forecast is out and its outcome awaited.");
}

}  // namespace truecast

// The forecaster on the arc, as Python sees it. Names and checks as in module.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <vector>

#include "arc_tree.hpp"
#include "arrays.hpp"
#include "edge.hpp"
#include "saving.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

void observe(ArcTree& tree, nb::handle y) { tree.observe(awaited_outcome(tree, y)); }

// The forecasts that were said and their counts, from the lowest to the highest.
struct Said {
    std::vector<double> forecasts;
    std::vector<std::int64_t> zeros, ones;
    bool issued = false;

    Said() = default;
    explicit Said(const ArcTree& tree) : issued(tree.issued) {
        tree.each([&](const Knot& knot) {
            forecasts.push_back(knot.p);
            zeros.push_back(knot.zeros);
            ones.push_back(knot.ones);
        });
    }

    Entries entries() {
        return {{"forecasts", forecasts, 0, 1, "those that were made, each once, increasing"},
                {"zeros", zeros, 0, most_rounds / 2, "outcomes 0 of each"},
                {"ones", ones, 0, most_rounds / 2, "outcomes 1 of each"},
                {"issued", issued, 0, 1, "whether a forecast is out and its outcome awaited"}};
    }
};

void restore(ArcTree& tree, const nb::dict& numbers) {
    Said said;
    load(said.entries(), numbers);
    const std::size_t count = said.forecasts.size();
    require(said.zeros.size() == count && said.ones.size() == count,
            "there must be counts for each forecast");
    ArcTree restored;
    for (std::size_t i = 0; i < count; ++i) {
        const double place = std::ldexp(said.forecasts[i], 52);
        require(place >= 1.0 && place < 0x1p52 && place == std::floor(place),
                "forecasts must be dyadic");
        restored.add(said.forecasts[i], said.zeros[i], said.ones[i]);
    }
    if (said.issued) restored.predict();
    at_rest(tree) = std::move(restored);
}

}  // namespace

void bind_arc(nb::module_& m) {
    nb::class_<ArcTree>(m, "ArcTree")
        .def(nb::init<>())
        .def(
            "predict", [](ArcTree& t) { return at_rest(t).predict(); },
            "The probability that the next outcome is 1; the same until that outcome is observed.")
        .def("observe", &observe, "outcome"_a.none(),
             "Learn the outcome, 0 or 1, that the last forecast was about. Refused, with nothing "
             "changed, if there was none.")
        .def("_run", &run_steps<ArcTree>, "outcomes"_a, "said"_a,
             "Play a round for every outcome; write what was said.")
        .def(
            "_take", [](ArcTree& t, ArcTree& from) { at_rest(t) = at_rest(from); }, "other"_a,
            "Become a copy of another forecaster.")
        .def(
            "_entries", [](ArcTree& t) { return described(Said(t).entries()); },
            "What a saved state has (saving.hpp).")
        .def(
            "_saved", [](ArcTree& t) { return saved(Said(at_rest(t)).entries()); },
            "All that rounds change.")
        .def("_restore", &restore, "numbers"_a, "Take over what `_saved` gave.")
        .def_prop_ro(
            "knots", [](ArcTree& t) { return at_rest(t).knots(); },
            "Forecasts that the tree holds sums for.")
        .def_prop_ro(
            "rounds", [](ArcTree& t) { return at_rest(t).rounds; }, "Outcomes observed so far.")
        .def_prop_ro(
            "issued", [](ArcTree& t) { return at_rest(t).issued; },
            "Whether a forecast is out and its outcome awaited.");
}

}  // namespace truecast

// The compiled core as Python sees it (stub: kernels.pyi): the ladder; measures.cpp adds tally and
// measures. The Python edge checks what users pass; here are checked the outcome of a single round,
// the order of calls, and, in O(1), all that memory safety rests on. Names with an underscore are
// for this package alone.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "arrays.hpp"
#include "edge.hpp"
#include "ladder.hpp"
#include "saving.hpp"
#include "streams.hpp"
#include "sums.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

// With these the ends' biases stay 0 and the cell stays in range, whatever the outcomes.
void require_ladder(const Array<const std::int64_t, 1>& points, std::int64_t denominator,
                    const Array<const std::int64_t, 2>& says,
                    const Array<const std::int64_t, 2>& limits, std::int64_t cell) {
    require(points.shape(0) >= 2, "a ladder has two points or more");
    const std::size_t cells = points.shape(0) - 1;
    require(says.shape(0) == 2 && says.shape(1) == cells, "says must have shape (2, cells)");
    require(limits.shape(0) == 2 && limits.shape(1) == cells, "limits must have shape (2, cells)");
    require(denominator > 0 && points.data()[0] == 0 && points.data()[cells] == denominator,
            "points must go from 0 to 1");
    require(limits.data()[0] >= 1 && limits.data()[2 * cells - 1] <= 0,
            "the outermost cells must not be left outwards");
    require(cell >= 0 && static_cast<std::size_t>(cell) < cells, "there is no such cell");
}

void observe(Ladder& ladder, nb::handle y) { ladder.settle(awaited_outcome(ladder, y)); }

void run(Ladder& ladder, Array<const std::uint8_t, 1> y, Array<double, 1> said) {
    require(y.shape(0) == said.shape(0), "said must have an entry for each outcome");
    const Busy working(ladder);
    const LadderState before = ladder;
    try {
        in_blocks(y.shape(0), 64 * block, [&](std::size_t from, std::size_t to) {
            ladder.run(y.data() + from, to - from, said.data() + from);
        });
    } catch (...) {
        static_cast<LadderState&>(ladder) = before;
        throw;
    }
}

void restore(Ladder& ladder, const nb::dict& numbers) {
    LadderState read = at_rest(ladder);
    load(read.entries(), numbers);
    require(read.biases.front() == 0 && read.biases.back() == 0, "these biases do not fit");
    require(read.at.cell >= 0 && static_cast<std::size_t>(read.at.cell) < ladder.cells(),
            "there is no such cell");
    static_cast<LadderState&>(ladder) = std::move(read);
}

void run_streams(Ladder& start, Array<const std::uint8_t, 2> y, Array<double, 2> said,
                 Array<std::int64_t, 2> biases, Array<std::int64_t, 1> cells,
                 Array<std::uint64_t, 2> deviations, Array<double, 1> squared_errors,
                 Array<std::int64_t, 2> sums, std::size_t threads) {
    at_rest(start);
    const std::size_t streams = y.shape(0), points = start.biases.size();
    require(said.shape(0) == streams && said.shape(1) == y.shape(1),
            "said must have the shape of outcomes");
    require(biases.shape(0) == streams && biases.shape(1) == points,
            "biases must have shape (streams, points)");
    require(cells.shape(0) == streams && squared_errors.shape(0) == streams,
            "there must be an entry for each stream");
    require(deviations.shape(0) == streams && deviations.shape(1) == 2,
            "deviations must have shape (streams, 2)");
    require(sums.shape(0) == streams && sums.shape(1) == 4, "sums must have shape (streams, 4)");
    nb::gil_scoped_release unlocked;
    Streams{start,        streams,           y.shape(1),
            y.data(),     said.data(),       biases.data(),
            cells.data(), deviations.data(), squared_errors.data(),
            sums.data()}
        .run_on(threads);
}

void sums_of_streams(const Ladder& ladder, Array<const std::int64_t, 2> biases,
                     Array<std::int64_t, 2> out) {
    const std::size_t points = ladder.points.size();
    require(biases.shape(1) == points, "biases must have shape (streams, points)");
    require(out.shape(0) == biases.shape(0) && out.shape(1) == 4,
            "out must have shape (streams, 4)");
    for (std::size_t s = 0; s < biases.shape(0); ++s)
        write_sums(ladder, biases.data() + s * points, out.data() + 4 * s);
}

}  // namespace
}  // namespace truecast

NB_MODULE(kernels, m) {
    using namespace truecast;
#ifdef NDEBUG
    nb::set_leak_warnings(
        false);  // who holds a forecaster until the interpreter ends should not read of it
#endif

    nb::class_<Ladder>(m, "Ladder")
        .def(
            "__init__",
            [](Ladder* self, Array<const std::int64_t, 1> points, std::int64_t denominator,
               Array<const std::int64_t, 2> says, Array<const std::int64_t, 2> limits,
               std::int64_t cell) {
                require_ladder(points, denominator, says, limits, cell);
                new (self) Ladder(points.data(), points.shape(0), denominator, says.data(),
                                  limits.data(), cell);
            },
            "points"_a, "denominator"_a, "says"_a, "limits"_a, "cell"_a)
        .def(
            "predict", [](Ladder& l) { return at_rest(l).predict(); },
            "The probability that the next outcome is 1; the same until that outcome is observed.")
        .def("observe", &observe, "outcome"_a.none(),
             "Learn the outcome, 0 or 1, that the last forecast was about. Refused, with nothing "
             "changed, if there was none.")
        .def(
            "_settle",
            [](Ladder& l, nb::handle y) {
                const auto bit = outcome(y);
                return at_rest(l).settle(bit);
            },
            "outcome"_a.none(), "Play one round at once and return what was said in it.")
        .def("_run", &run, "outcomes"_a, "said"_a,
             "Play a round for every outcome; write what was said.")
        .def(
            "_entries", [](Ladder& l) { return described(l.entries()); },
            "What a saved state has (saving.hpp).")
        .def(
            "_saved", [](Ladder& l) { return saved(at_rest(l).entries()); },
            "All that rounds change.")
        .def("_restore", &restore, "numbers"_a, "Take over what `_saved` gave.")
        .def(
            "_sums",
            [](Ladder& l) {
                return as_tuple(sums(at_rest(l).points.data(), l.biases.data(), l.biases.size(),
                                     l.denominator));
            },
            "A and B as integers: A = s[0] / N, B = (s[1] + s[2] / s[3]) / N.")
        .def_prop_ro(
            "points", [](Ladder& l) { return copy(l.points); },
            "Numerators of the points, over `denominator`.")
        .def_prop_ro(
            "biases", [](Ladder& l) { return copy(at_rest(l).biases); },
            "Numerators of the biases, over `denominator`.")
        .def_ro("denominator", &Ladder::denominator,
                "What the points and biases are numerators over.")
        .def_prop_ro("cells", &Ladder::cells, "The number of cells, m.")
        .def_prop_ro(
            "open_cell", [](Ladder& l) { return at_rest(l).at.cell; },
            "The open cell: the next forecast lies between the points of this number and the next.")
        .def_prop_ro(
            "rounds", [](Ladder& l) { return at_rest(l).rounds; }, "Outcomes observed so far.")
        .def_prop_ro(
            "issued", [](Ladder& l) { return at_rest(l).issued; },
            "Whether a forecast is out and its outcome awaited.")
        .def_prop_ro(
            "squared_error", [](Ladder& l) { return at_rest(l).at.squared_error; },
            "Sum of (forecast - outcome)**2.")
        .def_prop_ro(
            "_deviation", [](Ladder& l) { return as_int(at_rest(l).at.deviation); },
            "The deviation over twice `denominator`.");

    m.def("run_streams", &run_streams, "start"_a, "outcomes"_a, "said"_a, "biases"_a, "cells"_a,
          "deviations"_a, "squared_errors"_a, "sums"_a, "threads"_a);
    m.def("sums_of_streams", &sums_of_streams, "ladder"_a, "biases"_a, "out"_a);
    bind_arc(m);
    bind_delimited(m);
    bind_distance(m);
    bind_draws(m);
    bind_recalibrate(m);
    bind_classes(m);
    bind_split_ladder(m);
    bind_guard(m);
    bind_hints(m);
    bind_measures(m);
    bind_monitor(m);
    bind_record(m);
}

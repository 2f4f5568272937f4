// The search for the nearest calibrated forecasts as Python sees it. Names and checks as in
// module.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "chains.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using Doubles = Array<const double, 1>;
using Integers = Array<const std::int64_t, 1>;
using BoundsColumns = std::pair<Doubles, Doubles>;  // values, lengths
using TubeColumns =
    std::tuple<Doubles, Doubles, double, Integers, Integers>;  // values, zeros, reach, low, high

// A problem, and the arrays that it looks at.
class ChainProblem {
  public:
    ChainProblem(Integers zeros, Integers zero_prices, Integers ones, Integers one_prices,
                 int shift, Doubles nodes, Array<const double, 2> prices, bool mirrored)
        : zeros_(std::move(zeros)),
          ones_(std::move(ones)),
          nodes_(std::move(nodes)),
          prices_(std::move(prices)) {
        const std::size_t n = nodes_.shape(0);
        require(zeros_.shape(0) == zero_prices.shape(0) && ones_.shape(0) == one_prices.shape(0),
                "a price for each forecast");
        require(zeros_.shape(0) + ones_.shape(0) < (std::size_t{1} << 31),
                "fewer than 2^31 rounds");
        require(shift >= 2 && shift <= 60, "shift must be between 2 and 60");
        require(n >= 2 && prices_.shape(0) == 2 && prices_.shape(1) == n,
                "prices at two nodes at least");
        const nb::gil_scoped_release unlocked;
        problem_ = std::make_unique<chains::Problem>(
            chains::Problem{chains::Side(zeros_.data(), zero_prices.data(), zeros_.shape(0), shift),
                            chains::Side(ones_.data(), one_prices.data(), ones_.shape(0), shift),
                            {nodes_.data(), prices_.data(), prices_.data() + n, n, mirrored},
                            shift});
    }

    chains::Found search(chains::Limits& limits, double budget, double cut, double steepest,
                         bool bridges, bool profile, double slop, std::int64_t heavy,
                         const std::optional<BoundsColumns>& bounds,
                         const std::optional<TubeColumns>& tube, const chains::Found* other) const {
        require(heavy >= 1, "heavy must be positive");
        chains::Request request{budget, cut, steepest, bridges, profile, slop, heavy, {}, {}, {}};
        if (bounds) request.bounds = bounds_of(*bounds);
        if (tube) request.tube = tube_of(*tube);
        if (other) request.snapshots = {other->snapshots, other->excess};
        const nb::gil_scoped_release unlocked;
        return chains::Search(*problem_, request, limits).run();
    }

  private:
    Integers zeros_, ones_;
    Doubles nodes_;
    Array<const double, 2> prices_;
    std::unique_ptr<const chains::Problem> problem_;

    static chains::Bounds bounds_of(const BoundsColumns& columns) {
        const auto& [values, lengths] = columns;
        require(values.shape(0) == lengths.shape(0), "a bound for each value");
        return {values.data(), lengths.data(), values.shape(0)};
    }

    chains::Tube tube_of(const TubeColumns& columns) const {
        const auto& [values, zeros, reach, low, high] = columns;
        require(values.shape(0) + 1 == zeros.shape(0),
                "a place before and after each value of the tube");
        require(low.shape(0) > zeros_.shape(0) && high.shape(0) > zeros_.shape(0),
                "a range for each row of the tube");
        return {values.data(), zeros.data(), values.shape(0), reach, low.data(), high.data()};
    }
};

// A list of what was found, without copying it.
template <typename T>
auto column(std::vector<T> chains::Found::* list) {
    return [list](chains::Found& found) {
        std::vector<T>& values = found.*list;
        return nb::ndarray<nb::numpy, T, nb::ndim<1>>(values.data(), {values.size()},
                                                      nb::find(found));
    };
}

}  // namespace

void bind_distance(nb::module_& m) {
    using chains::Found;
    using chains::Limits;
    nb::class_<Limits>(m, "SearchLimits")
        .def(nb::init<std::int64_t, double>(), "memory"_a, "seconds"_a)
        .def("stop", &Limits::stop, "Make the search end soon.")
        .def_prop_ro(
            "progress",
            [](const Limits& limits) {
                const auto [value, least] = limits.progress();
                return std::make_tuple(value, least.paid, least.between, least.whole);
            },
            "A value, and what chains cost at least: up to there, with what they owe there, in "
            "all.");
    nb::class_<Found>(m, "FoundChain")
        .def_prop_ro(
            "outcome", [](const Found& found) { return static_cast<int>(found.outcome); },
            "0 if the search is complete; else 1 for time, 2 for memory, 3 for a stop.")
        .def_ro("length", &Found::length, "Of the shortest chain; infinite if there is none.")
        .def_ro("loss", &Found::loss, "What leaving out values costs at most.")
        .def_ro("excess", &Found::excess, "How much lengths exceed those of chains at most.")
        .def_ro("peak", &Found::peak, "The most bytes in use.")
        .def_prop_ro("zeros", column(&Found::zeros), "The zeros of each step.")
        .def_prop_ro("ones", column(&Found::ones), "The ones of each step.")
        .def_prop_ro("values", column(&Found::values), "Where lengths were bounded on the way.")
        .def_prop_ro("lengths", column(&Found::lengths), "What chains cost at least up to there.");
    nb::class_<ChainProblem>(m, "ChainProblem")
        .def(nb::init<Integers, Integers, Integers, Integers, int, Doubles, Array<const double, 2>,
                      bool>(),
             "zeros"_a, "zero_prices"_a, "ones"_a, "one_prices"_a, "shift"_a, "nodes"_a, "prices"_a,
             "mirrored"_a)
        .def("search", &ChainProblem::search, "limits"_a, "budget"_a, "cut"_a, "steepest"_a,
             "bridges"_a, "profile"_a, "slop"_a, "heavy"_a, "bounds"_a.none(), "tube"_a.none(),
             "other"_a.none(), "Find the shortest chain within the budget.");
}

}  // namespace truecast

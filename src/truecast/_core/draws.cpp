// The resamples of a tally as Python sees them. Names and checks as in module.cpp.
#include "draws.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <new>

#include "arrays.hpp"
#include "smooth.hpp"
#include "totals.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using Integers = Array<const std::int64_t, 1>;

// Tables are as long as the roots of the counts, and a count becomes an integer on its way from a
// double.
constexpr std::int64_t most_rounds = std::int64_t{1} << 24;

void require_counts(const Integers& counts) {
    std::int64_t total = 0;
    for (std::size_t k = 0; k < counts.shape(0); ++k) {
        require(counts.data()[k] >= 0 && counts.data()[k] <= most_rounds - total,
                "counts must not be negative, nor add to more than DRAWN_BY_TABLES");
        total += counts.data()[k];
    }
}

void new_calibrated(CalibratedOnes* self, Integers weights, Array<const double, 1> p) {
    require(p.shape(0) == weights.shape(0), "a weight for each forecast");
    require_counts(weights);
    for (std::size_t k = 0; k < p.shape(0); ++k)
        require(p.data()[k] >= 0.0 && p.data()[k] <= 1.0, "forecasts must be from 0 to 1");
    const nb::gil_scoped_release unlocked;
    new (self) CalibratedOnes(weights.data(), p.data(), p.shape(0));
}

void new_bootstrap(Bootstrap* self, Integers counts) {
    require_counts(counts);
    const nb::gil_scoped_release unlocked;
    new (self) Bootstrap(counts.data(), counts.shape(0));
}

template <typename Draws>
void draw(const Draws& draws, Array<const std::uint64_t, 1> keys, Array<std::int64_t, 2> out) {
    require(out.shape(0) == keys.shape(0) && out.shape(1) == draws.size(),
            "out must have a row for each key, and a column for each cell");
    const nb::gil_scoped_release unlocked;
    draws.draw(keys.data(), keys.shape(0), out.data());
}

using Rows = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::device::cpu>;

// The smooth calibration error of each resample, at the forecasts that it has any rounds of.
void smooth_errors(Array<const double, 1> p, Rows zeros, Rows ones, double total,
                   Array<double, 1> out) {
    const std::size_t n = p.shape(0), rows = out.shape(0);
    require(zeros.shape(0) == rows && ones.shape(0) == rows && zeros.shape(1) == n &&
                ones.shape(1) == n && n < 0xffffffff && zeros.stride(1) == 1 && ones.stride(1) == 1,
            "there must be a row for each resample, and a column for each forecast");
    const nb::gil_scoped_release unlocked;
    std::vector<double> places(n), residuals(n);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto at = static_cast<std::int64_t>(row);
        const std::int64_t* const of_zero = zeros.data() + at * zeros.stride(0);
        const std::int64_t* const of_one = ones.data() + at * ones.stride(0);
        std::size_t seen = 0;
        for (std::size_t k = 0; k < n; ++k) {
            places[seen] = p.data()[k];
            residuals[seen] = residual(p.data()[k], of_zero[k], of_one[k]) / total;
            seen += of_zero[k] + of_one[k] > 0;
        }
        const auto c = [&](std::size_t i) { return residuals[i]; };
        out.data()[row] = SmoothError(places.data(), c, seen, false).value();
    }
}

void farthest_off_of_rows(Array<const double, 2> surplus, Array<const double, 1> variance,
                          Array<double, 1> out) {
    const std::size_t marks = variance.shape(0), rows = out.shape(0);
    require(surplus.shape(0) == rows && surplus.shape(1) == marks,
            "there must be a row for each resample, and a column for each mark");
    const nb::gil_scoped_release unlocked;
    for (std::size_t row = 0; row < rows; ++row)
        out.data()[row] = farthest_off(surplus.data() + row * marks, variance.data(), marks);
}

}  // namespace

void bind_draws(nb::module_& m) {
    m.attr("DRAWN_BY_TABLES") = most_rounds;
    nb::class_<CalibratedOnes>(m, "CalibratedOnes")
        .def("__init__", &new_calibrated, "weights"_a, "p"_a)
        .def("draw", &draw<CalibratedOnes>, "keys"_a, "out"_a,
             "Ones of each forecast, if it came true as often as it says: a row for each key.");
    nb::class_<Bootstrap>(m, "Bootstrap")
        .def("__init__", &new_bootstrap, "counts"_a)
        .def("draw", &draw<Bootstrap>, "keys"_a, "out"_a,
             "How often each kind of round is drawn, with replacement: a row for each key.");
    m.def("smooth_errors", &smooth_errors, "p"_a, "zeros"_a, "ones"_a, "total"_a, "out"_a,
          "The smooth calibration error of each row of counts.");
    m.def("farthest_off", &farthest_off_of_rows, "surplus"_a, "variance"_a, "out"_a,
          "The largest squared deviation of any stretch, in each row of sums up to marks.");
}

}  // namespace truecast

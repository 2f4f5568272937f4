// The search for the nearest calibrated forecasts as Python sees it. Names and checks as in module.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <new>

#include "arrays.hpp"
#include "chains.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using Doubles = Array<const double, 1>;
using Integers = Array<const std::int64_t, 1>;

template <typename T>
nb::object column(const std::vector<T>& values) {
    auto* kept = new std::vector<T>(values);
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

nb::dict search_chains(const Integers& zeros, const Integers& zero_prices, const Integers& ones,
                       const Integers& one_prices, int shift, const Doubles& nodes, const Doubles& prices_zero,
                       const Doubles& prices_one, bool mirrored, double budget, double cut, bool profile, double slop,
                       const Doubles& bound_values, const Doubles& bound_lengths, const Doubles& guide_values,
                       const Doubles& guide_zeros, double reach, const Integers& tube_low, const Integers& tube_high,
                       std::int64_t memory, double seconds, const Array<const std::uint8_t, 1>& stop,
                       const Array<double, 1>& state, std::int64_t heavy) {
    require(zeros.shape(0) == zero_prices.shape(0) && ones.shape(0) == one_prices.shape(0),
            "a price for each forecast");
    require(zeros.shape(0) + ones.shape(0) < (std::size_t(1) << 31), "fewer than 2^31 rounds");
    require(shift >= 2 && shift <= 60, "shift must be between 2 and 60");
    require(heavy >= 1, "heavy must be positive");
    require(nodes.shape(0) >= 2 && nodes.shape(0) == prices_zero.shape(0) && nodes.shape(0) == prices_one.shape(0),
            "prices at two nodes at least");
    require(bound_values.shape(0) == bound_lengths.shape(0), "a bound for each value");
    require(guide_values.shape(0) + 1 == guide_zeros.shape(0), "a place before and after each value of the guide");
    require(!guide_values.shape(0) || (tube_low.shape(0) > zeros.shape(0) && tube_high.shape(0) > zeros.shape(0)),
            "a range for each row of the tube");
    require(stop.shape(0) == 1 && state.shape(0) == 2, "stop must have one element, state two");
    const Request ask{budget,
                      cut,
                      profile,
                      slop,
                      std::int64_t(bound_values.shape(0)),
                      bound_values.data(),
                      bound_lengths.data(),
                      std::int64_t(guide_values.shape(0)),
                      guide_values.data(),
                      guide_zeros.data(),
                      reach,
                      tube_low.data(),
                      tube_high.data(),
                      memory,
                      seconds,
                      stop.data(),
                      state.data(),
                      heavy};
    std::unique_ptr<Search> search;
    {
        nb::gil_scoped_release unlocked;
        search = std::make_unique<Search>(
            Side(std::int64_t(zeros.shape(0)), zeros.data(), zero_prices.data(), shift),
            Side(std::int64_t(ones.shape(0)), ones.data(), one_prices.data(), shift),
            PriceCurve{std::int64_t(nodes.shape(0)), nodes.data(), prices_zero.data(), prices_one.data(), mirrored},
            shift, ask);
        try {
            search->run();
        } catch (const std::bad_alloc&) {
            search->outcome = Search::kOutOfMemory;
        }
    }
    std::vector<std::int64_t> group_zeros, group_ones;
    for (const auto& [r, s] : search->chain) {
        group_zeros.push_back(r - s);
        group_ones.push_back(s);
    }
    std::vector<double> sample_values, sample_lengths;
    for (const auto& sample : search->samples) {
        sample_values.push_back(sample.value);
        sample_lengths.push_back(sample.length);
    }
    nb::dict found;
    found["outcome"] = int(search->outcome);
    found["length"] = search->length;
    found["loss"] = search->loss;
    found["zeros"] = column(group_zeros);
    found["ones"] = column(group_ones);
    found["values"] = column(sample_values);
    found["lengths"] = column(sample_lengths);
    found["peak"] = search->peak;
    return found;
}

}  // namespace

void bind_distance(nb::module_& m) {
    m.def("search_chains", &search_chains, "zeros"_a, "zero_prices"_a, "ones"_a, "one_prices"_a, "shift"_a, "nodes"_a,
          "prices_zero"_a, "prices_one"_a, "mirrored"_a, "budget"_a, "cut"_a, "profile"_a, "slop"_a, "bound_values"_a,
          "bound_lengths"_a, "guide_values"_a, "guide_zeros"_a, "reach"_a, "tube_low"_a, "tube_high"_a, "memory"_a,
          "seconds"_a, "stop"_a, "state"_a, "heavy"_a);
}

}  // namespace truecast

// A batch of rounds through a hint and the guards over it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "arrays.hpp"
#include "edge.hpp"
#include "hints.hpp"
#include "split_ladder.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using hints::Held;

// Which guard each round belongs to. No entries: all to the first.
using Codes = Array<const std::int64_t, 1>;

void require_codes(const std::vector<Guarded*>& guards, const Codes& codes, std::size_t rounds) {
    require(!guards.empty() && (codes.shape(0) == rounds || codes.shape(0) == 0), "each round needs a guard");
    for (std::size_t t = 0; t < codes.shape(0); ++t)
        require(codes.data()[t] >= 0 && static_cast<std::size_t>(codes.data()[t]) < guards.size(), "no such guard");
}

void recalibrate(Held& held, const std::vector<Guarded*>& guards, Codes codes, Array<const double, 1> scores,
                 Array<const std::uint8_t, 1> y, Array<double, 1> said) {
    require(scores.shape(0) == y.shape(0) && said.shape(0) == y.shape(0), "there must be an entry for each outcome");
    require_codes(guards, codes, y.shape(0));
    const Busy working(held);
    std::vector<Busy<Guarded>> guarding;
    guarding.reserve(guards.size());
    for (Guarded* guard : guards) guarding.emplace_back(*guard);
    nb::gil_scoped_release unlocked;
    const bool grouped = codes.shape(0) != 0;
    for (std::size_t t = 0; t < y.shape(0); ++t) {
        const hints::Score score(checked(scores.data()[t]));
        const bool one = (y.data()[t] & 1) != 0;
        said.data()[t] = guards[grouped ? codes.data()[t] : 0]->round(held.hint->predict(score), one);
        held.hint->learn(score, one);
    }
}

void place_many(Held& held, const std::vector<Guarded*>& guards, Codes codes, Array<const double, 1> scores,
                Array<double, 1> said) {
    require(scores.shape(0) == said.shape(0), "there must be an entry for each score");
    require_codes(guards, codes, scores.shape(0));
    at_rest(held);
    for (Guarded* guard : guards) at_rest(*guard);
    for (std::size_t t = 0; t < scores.shape(0); ++t)
        said.data()[t] = guards[codes.shape(0) ? codes.data()[t] : 0]->place(held.hint->predict(scores.data()[t])).said;
}

}  // namespace

void bind_recalibrate(nb::module_& m) {
    m.def("recalibrate", &recalibrate, "hint"_a, "guards"_a, "codes"_a, "scores"_a, "outcomes"_a, "said"_a,
          "Play a round for every outcome; write what was said.");
    m.def("place_many", &place_many, "hint"_a, "guards"_a, "codes"_a, "scores"_a, "said"_a,
          "Write what would be said of each score if it came next.");
}

}  // namespace truecast

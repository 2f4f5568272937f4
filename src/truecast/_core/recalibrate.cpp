// Rounds through a hint and the guards over it: hint and guard learn together or not at all, for once both are found at
// rest no Python runs, and so no batch of another thread can begin, before both have learned.
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

Placed placed(const Guarded& guard, std::int64_t low, std::int64_t high, double said);  // of split_ladder.cpp
std::vector<double> notes_of(nb::handle notes, std::size_t count);                      // of hints.cpp

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

void settle(Held& held, Guarded& guard, double score, bool y) {
    at_rest(held);
    if (!at_rest(guard).issued) refuse("observe() needs a forecast to judge: call predict() before each observe()");
    guard.observe(y);
    held.hint->learn(score, y);
}

void settle_late(Held& held, Guarded& guard, double score, bool y, nb::handle notes, std::int64_t low,
                 std::int64_t high, double said) {
    const std::vector<double> kept = notes_of(notes, at_rest(held).hint->notes());
    at_rest(held);
    const Placed made = placed(at_rest(guard), low, high, said);
    guard.settle_late(made, y);
    held.hint->learn(score, y, kept.data());
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
    m.def("settle", &settle, "hint"_a, "guard"_a, "score"_a, "outcome"_a,
          "Have guard and hint learn the outcome of the forecast just made.");
    m.def("settle_late", &settle_late, "hint"_a, "guard"_a, "score"_a, "outcome"_a, "notes"_a, "low"_a, "high"_a,
          "said"_a, "Have guard and hint learn the outcome of a forecast issued earlier.");
    m.def("place_many", &place_many, "hint"_a, "guards"_a, "codes"_a, "scores"_a, "said"_a,
          "Write what would be said of each score if it came next.");
}

}  // namespace truecast

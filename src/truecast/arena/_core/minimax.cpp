// The game of docs/minimax.md, as Python sees it.
#include "minimax.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using Numbers = Array<const std::int64_t, 1>;

Board board(const Numbers& points, std::int64_t denominator, std::size_t rounds) {
    require(rounds >= 1 && rounds <= most_game_rounds, "there are too many rounds, or none");
    require(points.shape(0) >= 1 && points.shape(0) <= 1024, "there are too many points, or none");
    require(denominator >= 1 && denominator <= std::int64_t{1} << 40,
            "the denominator is too large");
    for (std::size_t r = 1; r <= rounds; ++r)
        require(denominator % static_cast<std::int64_t>(r) == 0,
                "the denominator must be one of all means");
    for (std::size_t i = 0; i < points.shape(0); ++i)
        require(points.data()[i] >= 0 && points.data()[i] <= denominator, "points are from 0 to 1");
    for (std::size_t i = 1; i < points.shape(0); ++i)
        require(points.data()[i - 1] < points.data()[i], "points must increase");
    return {{points.data(), points.data() + points.shape(0)}, denominator, rounds};
}

// Ends long work at Ctrl-C.
void look_for_interrupts() {
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void solve_game(Numbers points, std::int64_t denominator, std::size_t rounds, bool determined,
                Array<double, 1> values) {
    const Board game = board(points, denominator, rounds);
    require(values.shape(0) == game.states.before(rounds + 1),
            "values must have an entry for each state");
    nb::gil_scoped_release unlocked;
    game.solve(determined, values.data(), look_for_interrupts);
}

double bound_game(Numbers points, std::int64_t denominator, std::size_t rounds, bool determined,
                  Array<const double, 1> values, Numbers first, Numbers said,
                  Array<double, 1> chances) {
    const Board game = board(points, denominator, rounds);
    require(values.shape(0) == game.states.before(rounds + 1),
            "values must have an entry for each state");
    const std::size_t moves = said.shape(0), cells = first.shape(0) - 1;
    require(first.shape(0) >= 2 && moves <= 2048 && first.data()[0] == 0,
            "there must be cells, and not too many");
    require(first.data()[cells] == static_cast<std::int64_t>(moves),
            "first must end with the number of moves");
    for (std::size_t c = 0; c < cells; ++c)
        require(first.data()[c] < first.data()[c + 1], "every cell has a move");
    for (std::size_t i = 0; i < moves; ++i)
        require(said.data()[i] >= 0 && said.data()[i] < static_cast<std::int64_t>(points.shape(0)),
                "there is no such point");
    Hidden hidden(game, determined, values.data(), {first.data(), first.data() + cells + 1},
                  {said.data(), said.data() + moves}, look_for_interrupts);
    require(chances.shape(0) == hidden.sights(), "chances must have an entry for all that is seen");
    nb::gil_scoped_release unlocked;
    return hidden.bound(chances.data());
}

}  // namespace
}  // namespace truecast

NB_MODULE(kernels, m) {
    m.def("solve_game", &truecast::solve_game, "points"_a, "denominator"_a, "rounds"_a,
          "determined"_a, "values"_a);
    m.def("bound_game", &truecast::bound_game, "points"_a, "denominator"_a, "rounds"_a,
          "determined"_a, "values"_a, "first"_a, "said"_a, "chances"_a);
}

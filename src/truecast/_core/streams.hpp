// Many independent streams: a thread a core, two streams interleaved in each, since one alone waits
// on its own chain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ladder.hpp"
#include "sums.hpp"
#include "threads.hpp"

namespace truecast {

// The four numbers of the certificate that biases give: A and B as in sums.hpp, B in three.
inline void write_sums(const Ladder& ladder, const std::int64_t* biases, std::int64_t* to) {
    const Sums found = sums(ladder.points.data(), biases, ladder.points.size(), ladder.denominator);
    to[0] = static_cast<std::int64_t>(found.bias.low);
    to[1] = static_cast<std::int64_t>(found.left.low) + found.moved;
    to[2] = found.rest;
    to[3] = found.count;
}

// Copies of one ladder, each with a row of outcomes. All that comes out has a row a stream, too.
struct Streams {
    const Ladder& start;
    std::size_t streams, rounds;
    const std::uint8_t* outcomes;
    double* said;
    std::int64_t *biases, *cells;
    std::uint64_t* deviations;  // high word, low word
    double* squared_errors;
    std::int64_t* sums;  // four numbers each

    void run_on(std::size_t threads) const {
        const std::size_t workers = std::max<std::size_t>(1, std::min(threads, streams));
        in_threads(workers,
                   [=](std::size_t w) { run(streams * w / workers, streams * (w + 1) / workers); });
    }

  private:
    void run(std::size_t first, std::size_t last) const {
        std::size_t s = first;
        for (; s + 1 < last; s += 2) {
            const ByOutcome sides_a = begin(s), sides_b = begin(s + 1);
            const std::uint8_t *ya = outcomes + s * rounds, *yb = ya + rounds;
            double *pa = said + s * rounds, *pb = pa + rounds;
            Position at_a = start.at, at_b = start.at;
            for (std::size_t t = 0; t < rounds;) {
                const std::size_t end = std::min(rounds, t + block);
                Running a = at_a.start(), b = at_b.start();
                for (; t < end; ++t) {
                    pa[t] = step(sides_a, a, ya[t]);
                    pb[t] = step(sides_b, b, yb[t]);
                }
                at_a.stop(a);
                at_b.stop(b);
            }
            finish(s, at_a);
            finish(s + 1, at_b);
        }
        if (s == last) return;
        Position at = start.at;
        play(begin(s), at, outcomes + s * rounds, rounds, said + s * rounds);
        finish(s, at);
    }

    std::int64_t* biases_of(std::size_t s) const { return biases + s * start.points.size(); }

    ByOutcome begin(std::size_t s) const {
        std::copy(start.biases.begin(), start.biases.end(), biases_of(s));
        return start.sides(biases_of(s));
    }

    void finish(std::size_t s, const Position& at) const {
        cells[s] = at.cell;
        deviations[2 * s] = at.deviation.high;
        deviations[2 * s + 1] = at.deviation.low;
        squared_errors[s] = at.squared_error;
        write_sums(start, biases_of(s), sums + 4 * s);
    }
};

}  // namespace truecast

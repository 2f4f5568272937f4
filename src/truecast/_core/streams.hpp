// Many independent streams: a thread a core, two streams interleaved in each, since one alone waits
// on its own chain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ladder.hpp"
#include "threads.hpp"

namespace truecast {

// Row-major blocks of `streams` rows. Each row of biases and each position holds its stream's
// state, in and out.
struct Streams {
    const Ladder& ladder;
    std::size_t streams, rounds;
    const std::uint8_t* outcomes;
    double* said;
    std::int64_t* biases;
    Position* positions;

    ByOutcome sides(std::size_t s) const { return ladder.sides(biases + s * ladder.points.size()); }

    void run(std::size_t first, std::size_t last) const {
        std::size_t s = first;
        for (; s + 1 < last; s += 2) {
            const ByOutcome sides_a = sides(s), sides_b = sides(s + 1);
            const std::uint8_t *ya = outcomes + s * rounds, *yb = ya + rounds;
            double *pa = said + s * rounds, *pb = pa + rounds;
            for (std::size_t t = 0; t < rounds;) {
                const std::size_t end = std::min(rounds, t + block);
                Running a = positions[s].start(), b = positions[s + 1].start();
                for (; t < end; ++t) {
                    pa[t] = step(sides_a, a, ya[t]);
                    pb[t] = step(sides_b, b, yb[t]);
                }
                positions[s].stop(a);
                positions[s + 1].stop(b);
            }
        }
        if (s < last)
            play(sides(s), positions[s], outcomes + s * rounds, rounds, said + s * rounds);
    }

    void run_on(std::size_t threads) const {
        const std::size_t workers = std::max<std::size_t>(1, std::min(threads, streams));
        in_threads(workers, [=](std::size_t w) {
            run(streams * w / workers, streams * (w + 1) / workers);
        });
    }
};

}  // namespace truecast

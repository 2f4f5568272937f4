// Many independent streams: a thread a core, four streams interleaved in each, since one alone
// waits on its own chain.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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

// Four streams of one ladder, a round of each in turn. What they do is what `play` does, with fewer
// instructions: a round adds to one word, which holds the bias of a point in its upper half and,
// below, how often the point was credited with each outcome. Deviations follow from these counts.
//
// Cells are counted in fours, by which entries of the four streams stand apart in `words`, and
// turns in bytes: then all addresses are sums.
class Four {
  public:
    static constexpr std::size_t streams = 4;

    struct Lane {
        const std::uint8_t* outcomes;
        double* said;
        Position at;
        std::int64_t* biases;  // here they begin, and end
    };

    explicit Four(const Ladder& start) : ladder(start), words(streams * start.points.size()) {
        turns.reserve(2 * ladder.cells());
        for (std::size_t cell = 0; cell < ladder.cells(); ++cell) {
            for (std::size_t y = 0; y < 2; ++y) {
                const std::size_t k = y * ladder.cells() + cell;
                const Move& move = ladder.moves[k];
                turns.push_back({ladder.gaps[k] * upper, move.credit * upper + (y ? second : first),
                                 move.says, move.squared});
            }
        }
    }

    // Whether biases have room in half a word, and packing them takes no longer than the rounds.
    static bool fits(const Ladder& ladder) {
        return ladder.denominator <= (std::int64_t{1} << 30) && ladder.points.size() <= most_rounds;
    }

    void play(std::array<Lane, streams>& lanes, std::size_t rounds) {
        for (std::size_t t = 0; t < rounds; t += most_rounds) {
            const std::size_t count = std::min(most_rounds, rounds - t);
            for (std::size_t k = 0; k < streams; ++k) pack(lanes[k], k);
            play_some(lanes, t, count, std::make_index_sequence<streams>());
            for (std::size_t k = 0; k < streams; ++k) unpack(lanes[k], k);
        }
    }

  private:
    static constexpr std::size_t most_rounds = (1 << 16) - 1;  // for the counts
    static constexpr std::int64_t upper = std::int64_t{1} << 32, first = 1, second = 1 << 16;

    // What an outcome does in a cell, as in ladder.hpp.
    struct Turn {
        std::int64_t gap, credit;
        double says, squared;
    };

    struct Running {
        const std::uint8_t* outcomes;
        double* said;
        std::int64_t at;  // four times the cell
        double squared_error;
    };

    const Ladder& ladder;
    std::vector<Turn> turns;          // of both outcomes in a cell, then those of the next
    std::vector<std::int64_t> words;  // of a point in the four streams, then those of the next

    void pack(const Lane& lane, std::size_t k) {
        for (std::size_t j = 0; j < ladder.points.size(); ++j)
            words[streams * j + k] = lane.biases[j] * upper;
    }

    void unpack(Lane& lane, std::size_t k) const {
        for (std::size_t j = 0; j < ladder.points.size(); ++j) {
            const std::int64_t word = words[streams * j + k];
            lane.biases[j] = (word - counts(word)) / upper;
        }
        const std::size_t cells = ladder.cells();
        std::uint64_t paid = 0;
        for (std::size_t i = 0; i < cells; ++i) {
            paid += ladder.moves[i].pay * firsts(words[streams * i + k]);
            paid += ladder.moves[cells + i].pay * seconds(words[streams * (i + 1) + k]);
        }
        lane.at.deviation.add(paid);
    }

    // How often a point was credited: with both outcomes, with the first, with the second.
    static std::uint32_t counts(std::int64_t word) { return static_cast<std::uint32_t>(word); }
    static std::uint64_t firsts(std::int64_t word) { return counts(word) & 0xFFFFU; }
    static std::uint64_t seconds(std::int64_t word) { return counts(word) >> 16; }

    template <std::size_t... k>
    void play_some(std::array<Lane, streams>& lanes, std::size_t from, std::size_t count,
                   std::index_sequence<k...>) {
        Running now[] = {{lanes[k].outcomes + from, lanes[k].said + from,
                          static_cast<std::int64_t>(streams) * lanes[k].at.cell,
                          lanes[k].at.squared_error}...};
        std::int64_t* const of_points = words.data();
        const char* const first_turn = reinterpret_cast<const char*>(turns.data());
        for (std::size_t t = 0; t < count; ++t) (step(first_turn, now[k], t, of_points + k), ...);
        ((lanes[k].at.cell = now[k].at / static_cast<std::int64_t>(streams)), ...);
        ((lanes[k].at.squared_error = now[k].squared_error), ...);
    }

    static void step(const char* turns_at, Running& now, std::size_t t, std::int64_t* of_points) {
        const std::int64_t credited = now.at + 4 * (now.outcomes[t] & 1);
        const Turn& turn = *reinterpret_cast<const Turn*>(turns_at + 8 * (now.at + credited));
        const std::int64_t before = of_points[credited];
        const std::int64_t sign = before + turn.gap;
        of_points[credited] = before + turn.credit;
        now.at =
            credited - 4 + 4 * static_cast<std::int64_t>(static_cast<std::uint64_t>(sign) >> 63);
        now.squared_error += turn.squared;
        now.said[t] = turn.says;
    }
};

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
        std::vector<Four> fours;  // made here, as the threads must not throw
        if (Four::fits(start) && streams >= Four::streams) {
            fours.reserve(workers);
            while (fours.size() < workers) fours.emplace_back(start);
        }
        in_threads(workers, [&](std::size_t w) {
            run(streams * w / workers, streams * (w + 1) / workers,
                fours.empty() ? nullptr : &fours[w]);
        });
    }

  private:
    // Each of the four goes through a quarter of the rows, one after the other: memory is then read
    // and written in four runs, for which the processor is ready.
    void run(std::size_t first, std::size_t last, Four* four) const {
        const std::size_t quarter = four != nullptr ? (last - first) / Four::streams : 0;
        for (std::size_t s = first; s < first + quarter; ++s) {
            std::array<Four::Lane, Four::streams> lanes;
            for (std::size_t k = 0; k < Four::streams; ++k) lanes[k] = begin(s + k * quarter);
            four->play(lanes, rounds);
            for (std::size_t k = 0; k < Four::streams; ++k) finish(s + k * quarter, lanes[k].at);
        }
        for (std::size_t s = first + Four::streams * quarter; s < last; ++s) {
            Four::Lane lane = begin(s);
            play(start.sides(lane.biases), lane.at, lane.outcomes, rounds, lane.said);
            finish(s, lane.at);
        }
    }

    std::int64_t* biases_of(std::size_t s) const { return biases + s * start.points.size(); }

    Four::Lane begin(std::size_t s) const {
        std::copy(start.biases.begin(), start.biases.end(), biases_of(s));
        return {outcomes + s * rounds, said + s * rounds, start.at, biases_of(s)};
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

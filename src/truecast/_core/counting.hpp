// From many rounds to the tally, by several threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "sorting.hpp"
#include "tally.hpp"
#include "threads.hpp"
#include "weigh.hpp"

namespace truecast {

// The columns of a tally, one after the other in one piece of memory, with room for all rounds: the
// forecasts, as bits, and their counts or sums of weights.
template <typename Count>
struct TallyColumns {
    std::uint64_t* forecasts;
    Count *zeros, *ones;

    TallyColumns(void* memory, std::size_t n)
        : forecasts(static_cast<std::uint64_t*>(memory)),
          zeros(static_cast<Count*>(memory) + n),
          ones(static_cast<Count*>(memory) + 2 * n) {}
};

// Where each thread has begun to write, and how many distinct forecasts it has written.
using Stretch = std::pair<std::size_t, std::size_t>;
using Stretches = std::vector<Stretch>;

// Close the gaps behind all stretches of all columns; returns how many distinct forecasts there
// are.
template <typename Some, typename Count>
std::ptrdiff_t join(const Some& stretches, const TallyColumns<Count>& columns) {
    static_assert(sizeof(Count) == sizeof(std::uint64_t), "columns must be equally wide");
    std::size_t distinct = 0;
    for (const auto& [start, count] : stretches) distinct += count;
    std::uint64_t* to = columns.forecasts;
    // invariant: what has not moved yet begins at `to` or behind it
    const auto move = [&](const auto* column) {
        for (const auto& [start, count] : stretches) {
            const void* const from = column + start;
            if (from != to) std::memmove(to, from, count * sizeof *column);
            to += count;
        }
    };
    move(columns.forecasts);
    move(columns.zeros);
    move(columns.ones);
    return static_cast<std::ptrdiff_t>(distinct);
}

// Which keys share a cell: stretches of 2^shift keys, of which the first has all lower ones, too,
// and the last all higher ones. They begin at even keys: no forecast is in two of them.
struct KeyCells {
    static constexpr std::size_t few = 64;  // items that are quicker to sort by their own range
    std::uint64_t low = 0, last = 0;
    unsigned shift = 0;

    // About 2^width of them, by a sample of the forecasts. The lowest few do not count: one that is
    // very small would take most of the cells.
    KeyCells(const double* p, std::size_t n, unsigned width) {
        constexpr std::size_t size = 512;
        if (width == 0) return;
        std::vector<std::uint64_t> sample(size);
        for (std::size_t k = 0; k < size; ++k) sample[k] = bits_of(p[n / size * k]) << 1;
        std::sort(sample.begin(), sample.end());
        low = sample[size / 64];
        shift = std::max(bits_in(sample.back() - low), width + 1) - width;
        last = (sample.back() - low) >> shift;
    }

    std::size_t size() const { return static_cast<std::size_t>(last) + 1; }
    std::size_t of(std::uint64_t key) const {
        return static_cast<std::size_t>(std::min(key > low ? (key - low) >> shift : 0, last));
    }

    // Sort the items of a cell. Only the outermost have keys beyond 2^shift ones.
    template <typename Item>
    void sort(std::size_t cell, Item* items, std::size_t n, Item* spare) const {
        if (cell == 0 || cell == last || n < few)
            sort_items(items, n, spare);
        else
            sort_within(items, n, low + (std::uint64_t{cell} << shift), shift, spare);
    }
};

// Rounds, and how to sort them by several threads: each takes a share of the rounds and moves them
// to their cells, then a share of the cells and sorts those.
template <typename Y>
class Rounds {
  public:
    static constexpr std::size_t few = FewPlaces::most;  // that need but one cell

    Rounds(const double* p, const Y* y, std::size_t n, std::size_t threads, std::uint64_t* keys)
        : p_(p),
          y_(y),
          n_(n),
          threads_(threads),
          keys_(keys),
          cells_(p, n, n < few ? 0 : std::min(bits_in(n) - 8, 9U)),
          places_(threads, std::vector<std::size_t>(cells_.size())) {}

    // Write the keys, and count those of each cell. False if some round is invalid.
    bool pack_all() {
        std::vector<char> valid(threads_, 1);
        in_threads(threads_, [&](std::size_t k) {
            constexpr std::size_t block = 512;
            std::size_t* const counts = places_[k].data();
            const KeyCells cells = cells_;
            const std::uint64_t* const keys = keys_;
            for (std::size_t from = share(k), to; from < share(k + 1); from = to) {
                to = std::min(from + block, share(k + 1));
                if (!pack(p_ + from, y_ + from, to - from, keys_ + from)) valid[k] = 0;
                for (std::size_t i = from; i < to; ++i) ++counts[cells.of(keys[i])];
            }
        });
        return std::find(valid.begin(), valid.end(), 0) == valid.end();
    }

    // Sort items, make(i) for each key; then use(from, to) says how many distinct forecasts it has
    // written for sorted items, from the same place on, which only they share. Returns these
    // stretches.
    template <typename Item, typename Make, typename Use>
    Stretches sorted(Item* items, Make make, Use use) {
        // places_[k][c], now a count, will be where thread k puts its first item of cell c
        std::vector<std::size_t> starts(cells_.size() + 1, n_);
        for (std::size_t c = 0, before = 0; c < cells_.size(); ++c) {
            starts[c] = before;
            for (auto& places : places_) before += std::exchange(places[c], before);
        }
        in_threads(threads_, [&](std::size_t k) {
            std::size_t* const places = places_[k].data();
            const KeyCells cells = cells_;
            const std::uint64_t* const keys = keys_;
            const std::size_t to = share(k + 1);
            for (std::size_t i = share(k); i < to; ++i)
                items[places[cells.of(keys[i])]++] = make(keys[i], i);
        });

        std::vector<std::size_t> first(threads_ + 1, cells_.size());  // cell of each thread
        std::vector<std::unique_ptr<Item[]>> spare(threads_);
        for (std::size_t k = threads_; k-- > 0;) {
            const auto found = std::lower_bound(starts.begin(), starts.end() - 1, share(k));
            first[k] = static_cast<std::size_t>(found - starts.begin());
            std::size_t largest = 0;
            for (std::size_t c = first[k]; c < first[k + 1]; ++c)
                largest = std::max(largest, starts[c + 1] - starts[c]);
            spare[k].reset(new Item[largest]);
        }
        Stretches stretches(threads_);
        in_threads(threads_, [&](std::size_t k) {
            for (std::size_t c = first[k]; c < first[k + 1]; ++c)
                cells_.sort(c, items + starts[c], starts[c + 1] - starts[c], spare[k].get());
            const std::size_t from = starts[first[k]];
            stretches[k] = {from, use(from, starts[first[k + 1]])};
        });
        return stretches;
    }

  private:
    std::size_t share(std::size_t k) const {
        return n_ / threads_ * k + n_ % threads_ * k / threads_;
    }

    const double* p_;
    const Y* y_;
    std::size_t n_, threads_;
    std::uint64_t* keys_;
    KeyCells cells_;
    std::vector<std::vector<std::size_t>> places_;
};

// Rounds to distinct forecasts with their counts; returns how many, -1 if some round is invalid. Of
// the memory, three words for each of these are the result. What else it takes is that of a cell.
template <typename Y>
std::ptrdiff_t count(const double* p, const Y* y, std::size_t n, std::size_t threads,
                     void* memory) {
    const TallyColumns<std::int64_t> to(memory, n);
    std::uint64_t* const keys = reinterpret_cast<std::uint64_t*>(to.zeros);
    if (n < Rounds<Y>::few) {
        if (!pack(p, y, n, keys)) return -1;
        sort_few(keys, n, reinterpret_cast<std::uint64_t*>(to.ones));
        const Stretch all(0, unpack(keys, n, to.forecasts, to.zeros, to.ones));
        return join(std::array{all}, to);
    }
    Rounds rounds(p, y, n, threads, to.forecasts);
    if (!rounds.pack_all()) return -1;
    const Stretches stretches = rounds.sorted(
        keys, [](std::uint64_t key, std::size_t) { return key; },
        [&](std::size_t from, std::size_t end) {
            return unpack(keys + from, end - from, to.forecasts + from, to.zeros + from,
                          to.ones + from);
        });
    return join(stretches, to);
}

// The same with the sums of their weights. There is room for all rounds, to sort them.
template <typename W, typename Y>
std::ptrdiff_t weigh(const double* p, const Y* y, const W* weights, std::size_t n,
                     std::size_t threads, void* memory, Weighed<W>* items) {
    const TallyColumns<W> to(memory, n);
    Rounds rounds(p, y, n, threads, to.forecasts);
    if (!rounds.pack_all()) return -1;
    const Stretches stretches = rounds.sorted(
        items, [weights](std::uint64_t key, std::size_t i) { return Weighed<W>{key, weights[i]}; },
        [&](std::size_t from, std::size_t end) {
            return unpack(items + from, end - from, to.forecasts + from, to.zeros + from,
                          to.ones + from);
        });
    return join(stretches, to);
}

// Two tallies to one, by several threads. Each takes the forecasts of one range, of either tally,
// and writes them where they would be if no forecast was in both; then the gaps are closed.
template <typename Count>
std::size_t merge(const double* p1, const Count* zeros1, const Count* ones1, std::size_t n1,
                  const double* p2, const Count* zeros2, const Count* ones2, std::size_t n2,
                  double* p, Count* zeros, Count* ones, std::size_t threads) {
    if (n1 < n2) {
        std::swap(p1, p2), std::swap(n1, n2);
        std::swap(zeros1, zeros2), std::swap(ones1, ones2);
    }
    std::vector<std::size_t> from1(threads + 1, n1), from2(threads + 1, n2), written(threads);
    for (std::size_t k = 0; k < threads; ++k) {
        from1[k] = n1 * k / threads;
        from2[k] =
            k == 0 ? 0 : static_cast<std::size_t>(std::lower_bound(p2, p2 + n2, p1[from1[k]]) - p2);
    }
    in_threads(threads, [&](std::size_t k) {
        const std::size_t i = from1[k], j = from2[k], to = i + j;
        written[k] = merge(p1 + i, zeros1 + i, ones1 + i, from1[k + 1] - i, p2 + j, zeros2 + j,
                           ones2 + j, from2[k + 1] - j, p + to, zeros + to, ones + to);
    });
    std::size_t distinct = written[0];
    for (std::size_t k = 1; k < threads; distinct += written[k++]) {
        const std::size_t at = from1[k] + from2[k];
        if (at == distinct) continue;
        std::memmove(p + distinct, p + at, written[k] * sizeof *p);
        std::memmove(zeros + distinct, zeros + at, written[k] * sizeof *zeros);
        std::memmove(ones + distinct, ones + at, written[k] * sizeof *ones);
    }
    return distinct;
}

}  // namespace truecast

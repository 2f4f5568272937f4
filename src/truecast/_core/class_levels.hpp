// A height at which all classes have this tilt, and their probabilities sum to 1: found by counting
// mod 2 (docs/classes.md, section 2).
//
// Every class has a curve over the arc, its tilt. It comes from above at 0 and leaves downwards at
// 1, so it crosses every height an odd number of times. Of all ways to choose a crossing of each
// class, count those that sum to 1 or less. High above there is one, all at 0; far below none, as
// all are at 1. So the parity of their number changes somewhere between. There one class trades a
// crossing for the next one, and with some choice of the others that takes the sum past 1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "field.hpp"

namespace truecast {

// Crossing x of a class is between its samples x - 1 and x. Before the first sample and after the
// last there is one more: those at 0 and at 1.
class Levels {
  public:
    struct Found {
        std::size_t who = 0;  // the class that has its sample at the height: the end of its cell
        std::vector<std::size_t> crossings;  // one a class
    };

    // Tilts at even points of the arc, a power of two and one of them: class by class.
    Levels(const std::vector<double>& tilts, std::size_t classes)
        : count(classes), samples(tilts.size() / classes), order(tilts.size()), rank(tilts.size()) {
        const std::size_t cells = samples - 1;
        digits = bits_of(cells) - 1 + bits_of(classes - 1);
        for (std::size_t i = 0; i < samples; ++i) {
            const Key key = static_cast<Key>(i) * (arc_end / static_cast<Key>(cells));
            places.push_back(static_cast<Sum>(forecast_at(key) * static_cast<double>(whole)));
        }
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return tilts[a] > tilts[b]; });
        for (std::size_t r = 0; r < order.size(); ++r) rank[order[r]] = r;
    }

    // Heights are numbers of samples above. Invariant: odd at `from`, even at `to`.
    Found find() const {
        std::size_t from = 0, to = order.size();
        while (to - from > 1) {
            const std::size_t middle = from + (to - from) / 2;
            (is_odd(crossings_at(middle)) ? from : to) = middle;
        }
        Choices left = crossings_at(from);
        Found found;
        found.who = order[from] / samples;
        const std::size_t sample = order[from] % samples;
        left[found.who] = {sample, sample + 1};
        for (std::size_t k = 0; k < count; ++k)
            while (k != found.who && left[k].size() > 1) halve(left, k);
        for (const std::vector<std::size_t>& one : left) found.crossings.push_back(one[0]);
        return found;
    }

  private:
    using Sum = std::uint64_t;
    using Choices = std::vector<std::vector<std::size_t>>;
    static constexpr Sum whole = Sum{1} << 62;
    static constexpr std::size_t batch = 1 << 16;

    std::size_t count, samples;
    int digits;               // of a sum, in the middle
    std::vector<Sum> places;  // of the samples
    std::vector<std::size_t> order, rank;

    // Digits of a number in base two.
    static int bits_of(Sum number) {
        int bits = 0;
        for (int more = 32; more > 0; more /= 2)
            if (number >> more != 0) {
                number >>= more;
                bits += more;
            }
        return bits + static_cast<int>(number);
    }

    Sum place(std::size_t crossing) const { return places[crossing - (crossing > 0)]; }

    Choices crossings_at(std::size_t height) const {
        Choices all(count);
        for (std::size_t k = 0; k < count; ++k) {
            bool above = true;
            for (std::size_t i = 0; i < samples; ++i) {
                if ((rank[k * samples + i] < height) == above) continue;
                all[k].push_back(i);
                above = !above;
            }
            if (above) all[k].push_back(samples);
        }
        return all;
    }

    // Whether the ways to choose one crossing of each class, with a sum of at most 1, are odd in
    // number. A sum is kept once if there are oddly many ways to it, else not at all.
    bool is_odd(const Choices& from) const {
        std::vector<Sum> sums{0}, next;
        for (std::size_t k = 0; k + 1 < count; ++k) {
            next.clear();
            std::size_t full = batch;
            for (const std::size_t crossing : from[k]) {
                for (const Sum sum : sums) {
                    const Sum more = sum + place(crossing);
                    if (more > whole) break;
                    next.push_back(cut(more));
                }
                if (next.size() < full) continue;
                cancel(next);
                full = std::max(batch, 2 * next.size());
            }
            cancel(next);
            std::swap(sums, next);
        }
        std::size_t ways = 0;
        for (const std::size_t crossing : from.back()) {
            const Sum most = whole - place(crossing);
            ways += static_cast<std::size_t>(std::upper_bound(sums.begin(), sums.end(), most) -
                                             sums.begin());
        }
        return ways % 2 == 1;
    }

    // Down to a multiple of a power of two that is at most 2^-digits times the root of the sum, or
    // of what it lacks of 1. So sums are as exact on the arc near 0 and 1 as in the middle, and few
    // of them differ.
    Sum cut(Sum sum) const {
        const int bits = bits_of(std::min(sum, whole - sum));
        const int zeros = (bits - 1) / 2 + 31 - digits;
        return bits == 0 || zeros <= 0 ? sum : sum >> zeros << zeros;
    }

    // Sort, and leave one of each that is there an odd number of times.
    static void cancel(std::vector<Sum>& sums) {
        std::sort(sums.begin(), sums.end());
        std::size_t kept = 0;
        for (const Sum sum : sums) {
            if (kept > 0 && sums[kept - 1] == sum)
                --kept;
            else
                sums[kept++] = sum;
        }
        sums.resize(kept);
    }

    // Of two halves of these crossings, one has an odd number of ways: keep it.
    void halve(Choices& left, std::size_t k) const {
        std::vector<std::size_t>& all = left[k];
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
        std::vector<std::size_t> upper(middle, all.end());
        all.erase(middle, all.end());
        if (!is_odd(left)) all = std::move(upper);
    }
};

}  // namespace truecast

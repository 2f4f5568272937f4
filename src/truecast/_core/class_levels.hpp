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

// A set of numbers from 0 on, as bits. Those that a shift takes beyond either end are lost.
class Bits {
    std::vector<std::uint64_t> words;

  public:
    explicit Bits(std::size_t most) : words(most / 64 + 1) {}

    std::size_t size() const { return 64 * words.size(); }
    void set(std::size_t number) { words[number / 64] ^= std::uint64_t{1} << number % 64; }

    // Whether there is an odd number of them up to this one.
    bool is_odd(std::size_t most) const {
        std::uint64_t all = words[most / 64] << (63 - most % 64);
        for (std::size_t i = 0; i < most / 64; ++i) all ^= words[i];
        for (int half = 32; half > 0; half /= 2) all ^= all >> half;
        return all & 1;
    }

    // Take out what is in both, and add the others of `from`, each so much higher or lower.
    void add_up(const Bits& from, std::size_t by) {
        const std::size_t skip = by / 64, part = by % 64;
        for (std::size_t i = skip; i < words.size(); ++i) words[i] ^= from.words[i - skip] << part;
        if (part == 0) return;
        for (std::size_t i = skip + 1; i < words.size(); ++i)
            words[i] ^= from.words[i - skip - 1] >> (64 - part);
    }
    void add_down(const Bits& from, std::size_t by) {
        const std::size_t skip = by / 64, part = by % 64;
        for (std::size_t i = skip; i < words.size(); ++i) words[i - skip] ^= from.words[i] >> part;
        if (part == 0) return;
        for (std::size_t i = skip + 1; i < words.size(); ++i)
            words[i - skip - 1] ^= from.words[i] << (64 - part);
    }

    Bits mirrored() const {
        Bits to(*this);
        std::reverse(to.words.begin(), to.words.end());
        for (std::uint64_t& word : to.words) {
            std::uint64_t mask = ~std::uint64_t{0};
            for (int half = 32; half > 0; half /= 2) {
                mask ^= mask << half;
                word = (word >> half & mask) | (word << half & ~mask);
            }
        }
        return to;
    }
};

// Crossing x of a class is between its samples x - 1 and x, and counts for the lower one. Before
// the first sample and after the last there is one more: those at 0 and at 1.
class Levels {
  public:
    static constexpr std::size_t most_cells = std::size_t{1} << 24;

    struct Found {
        std::size_t who = 0;  // the class that has a sample at the height, where its cell ends
        std::vector<std::size_t> crossings;  // one a class
    };

    // Tilts at even points of the arc, a power of two and one of them: class by class.
    Levels(const std::vector<double>& tilts, std::size_t classes)
        : count(classes), samples(tilts.size() / classes), order(tilts.size()), rank(tilts.size()) {
        const std::size_t cells = samples - 1;
        for (std::size_t i = 0; i < samples; ++i) {
            const Key key = static_cast<Key>(i) * (arc_end / static_cast<Key>(cells));
            places.push_back(static_cast<Place>(forecast_at(key) * static_cast<double>(whole)));
        }
        digits = bits_of(cells) + bits_of(classes - 2);
        finest = (bits_of(whole) - 1 - bits_of(places[1] - 1)) / 2;
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
        const std::size_t who = order[from] / samples, sample = order[from] % samples;
        Choices left = crossings_at(from);
        left[who] = {sample, sample + 1};
        for (std::size_t k = count; k-- > 0;)
            if (k != who) choose(left, k);
        Found found{who, {}};
        for (const Crossings& one : left) found.crossings.push_back(one[0]);
        return found;
    }

  private:
    using Place = std::uint64_t;
    using Crossings = std::vector<std::size_t>;
    using Choices = std::vector<Crossings>;
    static constexpr Place whole = Place{1} << 62;

    std::size_t count, samples;
    int digits, finest;
    std::vector<Place> places;  // of the samples
    std::vector<std::size_t> order, rank;

    // Ways to choose crossings of some classes, with their sums in units of one scale. Each scale
    // has half the unit and a quarter of the range of the one before, for the ways with one class
    // above 1/2 that leaves as much, so that units are as short on the arc near 0 and 1 as
    // elsewhere. A number is here if there are oddly many ways to it.
    struct Ways {
        int scale;
        Bits sums;  // if no class is above 1/2,
        Bits left;  // else what it leaves, less the others

        Ways(int scale_, std::size_t most) : scale(scale_), sums(most), left(most) { sums.set(0); }
    };

    static int bits_of(Place number) {
        int bits = 0;
        for (; number > 0; number /= 2) ++bits;
        return bits;
    }

    std::size_t most(int scale) const { return std::size_t{1} << (digits - scale); }
    Place place(std::size_t crossing) const { return places[crossing - (crossing > 0)]; }
    bool is_high(std::size_t crossing) const { return place(crossing) > whole / 2; }
    int scale_of(std::size_t high) const {
        const Place left = whole - place(high);
        return left == 0 ? finest : std::min((62 - bits_of(left - 1)) / 2, finest);
    }
    std::size_t units(Place length, int scale) const { return length >> (62 - digits - scale); }

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

    void add(Ways& ways, const Crossings& crossings) const {
        Bits sums(most(ways.scale)), left = sums;
        bool any = false;
        for (const std::size_t crossing : crossings) {
            if (is_high(crossing)) {
                any = any || scale_of(crossing) == ways.scale;
                continue;
            }
            const std::size_t by = units(place(crossing), ways.scale);
            sums.add_up(ways.sums, by);
            left.add_down(ways.left, by);
        }
        if (any) {
            const Bits mirror = ways.sums.mirrored();
            for (const std::size_t crossing : crossings)
                if (is_high(crossing) && scale_of(crossing) == ways.scale)
                    left.add_down(mirror,
                                  mirror.size() - 1 - units(whole - place(crossing), ways.scale));
        }
        ways.sums = std::move(sums);
        ways.left = std::move(left);
    }

    bool is_odd(const Ways& ways) const {
        const bool without = ways.scale == 0 && ways.sums.is_odd(most(0));
        return ways.left.is_odd(ways.left.size() - 1) != without;
    }

    // Whether the ways to choose one crossing of each class, with a sum of at most 1, are odd in
    // number.
    bool is_odd(const Choices& from) const {
        bool odd = false;
        for (const int scale : scales(from)) {
            Ways ways(scale, most(scale));
            for (const Crossings& each : from) add(ways, each);
            odd = odd != is_odd(ways);
        }
        return odd;
    }

    // Those that these crossings need.
    std::vector<int> scales(const Choices& from) const {
        std::vector<int> all{0};
        for (const Crossings& each : from)
            for (const std::size_t crossing : each)
                if (is_high(crossing)) all.push_back(scale_of(crossing));
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    // Leave one crossing of this class, all later ones having one. Of two halves, one has an odd
    // number of ways.
    void choose(Choices& left, std::size_t k) const {
        if (left[k].size() == 1) return;
        std::vector<Ways> before;
        for (const int scale : scales(left)) {
            before.emplace_back(scale, most(scale));
            for (std::size_t i = 0; i < k; ++i) add(before.back(), left[i]);
        }
        while (left[k].size() > 1) {
            Crossings& all = left[k];
            const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
            Crossings upper(middle, all.end());
            all.erase(middle, all.end());
            bool odd = false;
            for (Ways ways : before) {
                for (std::size_t i = k; i < count; ++i) add(ways, left[i]);
                odd = odd != is_odd(ways);
            }
            if (!odd) all = std::move(upper);
        }
    }
};

}  // namespace truecast

// Resamples of a tally (measures/uncertainty.py): counts drawn from exact laws, by their tables.
//
// A table costs as much as a few draws, and a resampler draws from it a thousand times.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

namespace truecast {

// Random bits at a place of the sequence that starts at a key: SplitMix64 (Steele, Lea and Flood,
// 2014) without its state: the same bits in whatever order, by whatever thread.
inline std::uint64_t bits_at(std::uint64_t key, std::uint64_t place) {
    std::uint64_t z = key + (place + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

// Laws of whole numbers, each a table of its distribution function in units of 2^-63.
//
// A table is within n 2^-50 of its law in total variation, n its number of entries: the weights are
// off by at most 4 roundings for each step from the mode, their sums by one for each entry, and
// what is cut off has less than 2^-60 (the weights fall at least geometrically).
class Laws {
  public:
    // Make room for laws whose deviations sum to this: tables that grow step by step would
    // take twice as long. A law ends about ten deviations from its mode, where it falls below
    // `nothing`; it has at most twice as many guides as entries. Room that is not used is not
    // touched.
    void reserve(double deviations, std::size_t laws) {
        const auto entries = static_cast<std::size_t>(21.0 * deviations) + 64 * laws;
        laws_.reserve(laws);
        upto_.reserve(entries);
        guides_.reserve(2 * entries);
    }

    // Each returns the number of the new law.
    std::size_t binomial(std::int64_t n, double p) {
        const auto size = static_cast<double>(n);
        const auto mode = std::min(n, static_cast<std::int64_t>((size + 1.0) * p));
        const double odds = p / (1.0 - p);  // infinite at p = 1, where nothing is above the mode
        return around(
            mode, [=](double k) { return std::max(size - k, 0.0) / (k + 1.0) * odds; },
            [=](double k) { return k / (size - k + 1.0) / odds; });
    }

    std::size_t poisson(double mean) {
        return around(
            static_cast<std::int64_t>(mean), [=](double k) { return mean / (k + 1.0); },
            [=](double k) { return k / mean; });
    }

    // first + k with a probability in proportion to weights[k], which become their sums. There are
    // 2^spare guides for every two entries, if that many are allowed: a law that is drawn from
    // often is worth more of them. Entries that no bits lead to are left out, at either end.
    std::size_t weighed(std::int64_t first, std::vector<double>& weights, int spare = 0) {
        double total = 0.0;
        for (double& weight : weights) weight = total += weight;
        const auto units = [&](std::size_t k) {
            return static_cast<std::uint64_t>(std::min(weights[k] / total, 1.0) * 0x1p63);
        };
        std::size_t from = 0;
        while (from + 1 < weights.size() && units(from) == 0) ++from;
        ends_.clear();
        for (std::size_t k = from; k + 1 < weights.size(); ++k) {
            const std::uint64_t end = units(k);
            if (end >= all) break;
            ends_.push_back(end);
        }
        ends_.push_back(all);  // above all 63 bits: every search ends
        laws_.push_back({first + static_cast<std::int64_t>(from), upto_.size(), guides_.size(),
                         63 - guides_for(ends_.size() << spare >> 1)});
        upto_.insert(upto_.end(), ends_.begin(), ends_.end());
        add_guides(laws_.back().shift);
        return laws_.size() - 1;
    }

    // The least value whose distribution function exceeds the bits.
    std::int64_t draw(std::size_t law, std::uint64_t bits) const {
        const Law& of = laws_[law];
        const std::uint64_t u = bits >> 1;
        const std::uint64_t* upto = upto_.data() + of.start;
        std::size_t k = guides_[of.guides + (u >> of.shift)];
        k += upto[k] <= u;  // without a branch, which would be guessed wrong too often
        while (upto[k] <= u) ++k;
        return of.first + static_cast<std::int64_t>(k);
    }

  private:
    static constexpr int most_guides = 14;      // their logarithm
    static constexpr double nothing = 0x1p-75;  // of the mode's weight
    static constexpr std::uint64_t all = std::uint64_t{1} << 63;

    struct Law {
        std::int64_t first;
        std::size_t start, guides;  // where its entries and its guides begin
        int shift;                  // guide u >> shift: where the search for u begins
    };
    std::vector<Law> laws_;
    std::vector<std::uint64_t> upto_;
    std::vector<std::uint32_t> guides_;
    // of a law while it is made: weights, entries, and how many of those end at each guide
    std::vector<double> held_;
    std::vector<std::uint64_t> ends_;
    std::vector<std::uint32_t> counts_;

    // The logarithm of how many guides there are, if this many are wanted.
    static int guides_for(std::size_t wanted) {
        int bits = 0;
        while (bits < most_guides && (std::size_t{1} << bits) < wanted) ++bits;
        return bits;
    }

    // How many entries end at each guide or before: counted at the first such guide, then summed.
    void add_guides(int shift) {
        const std::size_t more = std::size_t{1} << (63 - shift);
        counts_.assign(more + 1, 0);
        for (const std::uint64_t end : ends_)
            ++counts_[(end + (std::uint64_t{1} << shift) - 1) >> shift];
        std::uint32_t sum = 0;
        for (std::uint32_t& count : counts_) count = sum += count;
        guides_.insert(guides_.end(), counts_.begin(), counts_.end() - 1);
    }

    // The law with weight 1 at its mode, and ratios of the next weight to that of k, up and down.
    template <typename Up, typename Down>
    std::size_t around(std::int64_t mode, Up up, Down down) {
        const auto middle = static_cast<double>(mode);
        held_.assign(1, 1.0);
        follow(mode, [=](double steps) { return down(middle - steps); });
        const auto first = mode + 1 - static_cast<std::int64_t>(held_.size());
        std::reverse(held_.begin(), held_.end());
        follow(std::numeric_limits<std::int64_t>::max(),
               [=](double steps) { return up(middle + steps); });
        return weighed(first, held_);
    }

    // Adds the weights after one of 1, of which each is the one before times a ratio, until one is
    // nothing. Ratios do not wait for each other: many are made at once.
    template <typename Ratio>
    void follow(std::int64_t most, Ratio ratio) {
        constexpr int block = 32;
        double ratios[block], weights[block], weight = 1.0;
        for (std::int64_t done = 0; done < most; done += block) {
            const auto before = static_cast<double>(done);
            for (int k = 0; k < block; ++k) ratios[k] = ratio(before + static_cast<double>(k));
            const int steps = static_cast<int>(std::min<std::int64_t>(block, most - done));
            int k = 0;
            for (; k < steps && (weight *= ratios[k]) > nothing; ++k) weights[k] = weight;
            held_.insert(held_.end(), weights, weights + k);
            if (k < block) return;
        }
    }
};

// Counts of cells, independent of each other, each from a law of its own; a row for each key.
class DrawnCells {
  public:
    Laws laws;
    std::vector<std::uint32_t> law_of;

    std::size_t size() const { return law_of.size(); }

    // Cell by cell, so that a table is read for many rows at once; tiles keep the rows apart, which
    // are often a power of two long and would fight for one set of the cache.
    void draw(const std::uint64_t* keys, std::size_t rows, std::int64_t* out) const {
        std::vector<std::int64_t> held(tile_rows * tile_cells);
        for (std::size_t row = 0; row < rows; row += tile_rows)
            for (std::size_t cell = 0; cell < size(); cell += tile_cells)
                draw_tile(keys + row, std::min(tile_rows, rows - row), cell,
                          std::min(tile_cells, size() - cell), held.data(),
                          out + row * size() + cell);
    }

    // One row at places from `place` on.
    void draw_row(std::uint64_t key, std::uint64_t place, std::int64_t* out) const {
        for (std::size_t cell = 0; cell < size(); ++cell)
            out[cell] = laws.draw(law_of[cell], bits_at(key, place + cell));
    }

  private:
    static constexpr std::size_t tile_rows = 512, tile_cells = 8;

    void draw_tile(const std::uint64_t* keys, std::size_t rows, std::size_t first,
                   std::size_t cells, std::int64_t* held, std::int64_t* out) const {
        for (std::size_t cell = 0; cell < cells; ++cell) {
            const std::size_t law = law_of[first + cell];
            for (std::size_t row = 0; row < rows; ++row)
                held[row * tile_cells + cell] = laws.draw(law, bits_at(keys[row], first + cell));
        }
        for (std::size_t row = 0; row < rows; ++row)
            std::copy_n(held + row * tile_cells, cells, out + row * size());
    }
};

// The ones of each cell if its forecast is the probability of a one.
class CalibratedOnes {
  public:
    CalibratedOnes(const std::int64_t* weights, const double* p, std::size_t n) {
        double deviations = 0.0;
        for (std::size_t k = 0; k < n; ++k)
            deviations += std::sqrt(static_cast<double>(weights[k]) * p[k] * (1.0 - p[k]));
        cells_.laws.reserve(deviations, n);
        cells_.law_of.reserve(n);
        for (std::size_t k = 0; k < n; ++k)
            cells_.law_of.push_back(
                static_cast<std::uint32_t>(cells_.laws.binomial(weights[k], p[k])));
    }

    std::size_t size() const { return cells_.size(); }

    void draw(const std::uint64_t* keys, std::size_t rows, std::int64_t* out) const {
        cells_.draw(keys, rows, out);
    }

  private:
    DrawnCells cells_;
};

// As many rounds as were counted, drawn from them with replacement: a multinomial.
//
// Counts that are Poisson with means in proportion to a multinomial's probabilities are, given
// their sum, that multinomial of as many rounds. A sum above `total` is drawn again, which depends
// on the sum alone; the rounds that are still missing are drawn one by one. Cells with equal counts
// share a table. With means of 1 - 3/sqrt(total) of the counts, one row in 700 is drawn again, and
// 3 sqrt(total) rounds are missing.
class Bootstrap {
  public:
    Bootstrap(const std::int64_t* counts, std::size_t n) {
        std::vector<double> weights(n);
        for (std::size_t k = 0; k < n; ++k) {
            total_ += counts[k];
            weights[k] = static_cast<double>(counts[k]);
        }
        if (total_ == 0) weights.assign(1, 1.0);  // never drawn from
        double deviations = 0.0;
        for (const double weight : weights) deviations += std::sqrt(weight);
        cells_.laws.reserve(deviations, n);
        one_ = cells_.laws.weighed(0, weights, 3);
        const double part = std::max(0.0, 1.0 - 3.0 / std::sqrt(static_cast<double>(total_)));
        std::unordered_map<std::int64_t, std::uint32_t> known;
        cells_.law_of.reserve(n);
        for (std::size_t k = 0; k < n; ++k) {
            const auto [found, is_new] = known.try_emplace(counts[k], 0);
            if (is_new)
                found->second = static_cast<std::uint32_t>(
                    cells_.laws.poisson(static_cast<double>(counts[k]) * part));
            cells_.law_of.push_back(found->second);
        }
    }

    std::size_t size() const { return cells_.size(); }

    void draw(const std::uint64_t* keys, std::size_t rows, std::int64_t* out) const {
        cells_.draw(keys, rows, out);
        for (std::size_t row = 0; row < rows; ++row) complete(keys[row], out + row * size());
    }

  private:
    DrawnCells cells_;
    std::int64_t total_ = 0;
    std::size_t one_;  // the law of one round's cell

    void complete(std::uint64_t key, std::int64_t* row) const {
        std::uint64_t place = size();
        std::int64_t sum = sum_of(row);
        for (; sum > total_; sum = sum_of(row), place += size()) cells_.draw_row(key, place, row);
        for (; sum < total_; ++sum) ++row[cells_.laws.draw(one_, bits_at(key, place++))];
    }

    std::int64_t sum_of(const std::int64_t* row) const {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < size(); ++k) sum += row[k];
        return sum;
    }
};

// The largest squared deviation of any stretch between two marks, from the sums up to each of them:
// z^2 for which the surplus s and the variance v of the stretch are s^2 / (v + s / 3).
inline double farthest_off(const double* surplus, const double* variance, std::size_t marks) {
    constexpr double third = 1.0 / 3.0, surely = 1.0 - 1e-12;  // less, however products are rounded
    double most = 0.0;
    for (std::size_t last = 1; last < marks; ++last)
        for (std::size_t first = 0; first < last; ++first) {
            const double s = std::fabs(surplus[last] - surplus[first]);
            const double v = std::max(variance[last] - variance[first], 0.0);
            if (s * s < most * surely * (v + s * third)) continue;  // as most are: without dividing
            most = std::max(most, s * s / (v + s / 3.0 + 1e-300));
        }
    return most;
}

}  // namespace truecast

// From weighted rounds to the tally. Sums of weights are exact until they are rounded, once, to a
// double, so the order of the rounds changes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tally.hpp"
#include "wide.hpp"

namespace truecast {

template <typename W>
struct Sum;

// Of integers. Wraps like all unsigned ones; the caller refuses weights whose sum is too large.
template <>
struct Sum<std::int64_t> {
    std::uint64_t value = 0;

    void add(std::int64_t weight) { value += static_cast<std::uint64_t>(weight); }
    void carry() {}
    std::int64_t rounded() { return static_cast<std::int64_t>(value); }
};

// Of doubles from 1e-100 to 1e100: digits of 32 bits in words of 64, so that carries can wait for
// 2^32 additions.
template <>
struct Sum<double> {
    static constexpr int lowest = 690;        // the exponent field of 1e-100
    static constexpr unsigned highest = 665;  // that of 1e100, less the lowest
    static constexpr std::size_t size = highest / 32 + 4;
    std::array<std::uint64_t, size> digits{};

    // A mantissa of 53 bits, shifted by up to 31, covers three digits.
    void add(double weight) {
        const std::uint64_t bits = bits_of(weight), low = 0xffffffff;
        const std::uint64_t mantissa = (bits & 0xfffffffffffff) | std::uint64_t{1} << 52;
        const unsigned place =
            std::min(static_cast<unsigned>(bits >> 52) - unsigned{lowest}, highest);
        const unsigned shift = place & 31;
        std::uint64_t* digit = &digits[place >> 5];
        digit[0] += mantissa << shift & low;
        digit[1] += mantissa >> (32 - shift) & low;
        digit[2] += mantissa >> 32 >> (32 - shift);
    }

    void carry() {
        for (std::size_t i = 0; i + 1 < size; ++i) {
            digits[i + 1] += digits[i] >> 32;
            digits[i] &= 0xffffffff;
        }
    }

    double rounded() {
        carry();
        return nearest(digits.data(), size, lowest - 1075);
    }
};

// Weighted rounds with few distinct forecasts, summed without sorting them.
template <typename W>
struct FewWeighed {
    FewForecasts table;
    std::vector<std::uint32_t> places =
        std::vector<std::uint32_t>(FewForecasts::slots);  // of the slots' sums
    std::vector<double> forecasts;
    std::vector<Sum<W>> sums;  // two for each forecast, in order of appearance: of zeros, of ones

    // 1 if all rounds are summed, 0 if there are too many forecasts, -1 if some round is invalid.
    template <typename Y>
    int add(const double* p, const Y* y, const W* weights, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            const Round round(p[i], y[i]);
            if (round.invalid()) return -1;
            if (weights[i] == 0) continue;
            const std::size_t slot = table.slot_of(round.forecast);
            if (slot == FewForecasts::slots) return 0;
            if (table.forecasts[slot] == FewForecasts::none) {
                if (forecasts.size() == FewForecasts::most) return 0;
                table.forecasts[slot] = round.forecast;
                places[slot] = static_cast<std::uint32_t>(sums.size());
                forecasts.push_back(forecast_of(round.forecast));
                sums.resize(sums.size() + 2);
            }
            sums[places[slot] + round.outcome].add(weights[i]);
            if ((i & 0x7fffffff) == 0x7fffffff)
                for (Sum<W>& sum : sums) sum.carry();
        }
        return 1;
    }
};

template <typename W>
struct Weighed {
    std::uint64_t key;  // the forecast's bits and the outcome
    W weight;
};

// Sort by key: three passes by its leading bits, after which rounds of other keys are rarely in
// between.
template <typename W>
void sort_by_key(std::vector<Weighed<W>>& items) {
    constexpr std::size_t width = 11, lowest = 63 - 3 * width;
    constexpr std::size_t buckets = std::size_t{1} << width;
    const std::size_t n = items.size();
    std::vector<Weighed<W>> sorted(n);
    std::vector<std::size_t> counts(3 * buckets, 0);
    const auto digit = [](const Weighed<W>& item, std::size_t d) {
        return item.key >> (lowest + d * width) & (buckets - 1);
    };
    for (const Weighed<W>& item : items)
        for (std::size_t d = 0; d < 3; ++d) ++counts[d * buckets + digit(item, d)];
    for (std::size_t d = 0; d < 3; ++d) {
        std::size_t *const count = &counts[d * buckets], before = 0;
        if (n == 0 || count[digit(items[0], d)] == n) continue;
        for (std::size_t b = 0; b < buckets; ++b) before += std::exchange(count[b], before);
        for (const Weighed<W>& item : items) sorted[count[digit(item, d)]++] = item;
        items.swap(sorted);
    }
    const auto by_key = [](const Weighed<W>& a, const Weighed<W>& b) { return a.key < b.key; };
    for (std::size_t start = 0, end = 0; start < n;
         start = end) {  // items before start are in their places
        const std::uint64_t leading = items[start].key >> lowest;
        bool ordered = true;
        for (end = start + 1; end < n && items[end].key >> lowest == leading; ++end)
            ordered &= items[end - 1].key <= items[end].key;
        if (!ordered) std::sort(items.data() + start, items.data() + end, by_key);
    }
}

// Rounds with forecasts on one side of the pivot to distinct forecasts with their sums of weights,
// written from the front, or so that with one entry a round they would reach the back: two threads
// can do a side each. Returns where they begin and how many there are; {0, -1} if some round, on
// either side, is invalid.
template <typename W, typename Y>
std::pair<std::size_t, std::ptrdiff_t> weigh(const double* p, const Y* y, const W* weights,
                                             std::size_t n, double pivot, bool below,
                                             double* forecasts, W* zeros, W* ones) {
    std::vector<Weighed<W>> items;
    items.reserve(n);
    bool bad = false;
    const std::uint64_t limit = bits_of(pivot);
    for (std::size_t i = 0; i < n; ++i) {
        const Round round(p[i], y[i]);
        bad |= round.invalid();
        if ((round.forecast < limit) == below && weights[i] != 0)
            items.push_back({round.forecast << 1 | (round.outcome & 1), weights[i]});
    }
    if (bad) return {0, -1};
    sort_by_key(items);
    const std::size_t start = below ? 0 : n - items.size();
    std::size_t distinct = start;
    const auto sum_of = [&](std::size_t from, std::size_t to) -> W {
        if (from == to) return 0;
        if (to - from == 1) return items[from].weight;
        Sum<W> sum;
        for (std::size_t i = from; i < to; ++i) sum.add(items[i].weight);
        return sum.rounded();
    };
    // invariant: items before i are in the tally
    for (std::size_t i = 0; i < items.size(); ++distinct) {
        const std::uint64_t forecast = items[i].key >> 1;
        std::size_t middle = i, end;
        while (middle < items.size() && items[middle].key == forecast << 1) ++middle;
        for (end = middle; end < items.size() && items[end].key >> 1 == forecast;) ++end;
        forecasts[distinct] = forecast_of(forecast);
        zeros[distinct] = sum_of(i, middle);
        ones[distinct] = sum_of(middle, end);
        i = end;
    }
    return {start, static_cast<std::ptrdiff_t>(distinct - start)};
}

}  // namespace truecast

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
        if (seem_many(p, n)) return 0;
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

template <typename W>
std::uint64_t key_of(const Weighed<W>& item) {
    return item.key;
}

template <typename W>
W sum_of(const Weighed<W>* items, std::size_t n) {
    if (n == 0) return 0;
    if (n == 1) return items[0].weight + W{0};  // -0.0 is 0.0
    Sum<W> sum;
    for (std::size_t i = 0; i < n; ++i)
        if (items[i].weight != 0) sum.add(items[i].weight);
    return sum.rounded();
}

// Sorted items to distinct forecasts, as bits, with their sums of weights, without those that have
// none; returns how many.
template <typename W>
std::size_t unpack(const Weighed<W>* items, std::size_t n, std::uint64_t* forecasts, W* zeros,
                   W* ones) {
    std::size_t distinct = 0;
    // invariant: items before i are in the tally
    for (std::size_t i = 0, end; i < n; i = end) {
        const std::uint64_t forecast = items[i].key >> 1;
        for (end = i + 1; end < n && items[end].key >> 1 == forecast;) ++end;
        W sums[2] = {0, 0};
        if (end == i + 1) {  // the rule, and then without a branch by the outcome
            sums[items[i].key & 1] = items[i].weight;
        } else {
            std::size_t middle = i;
            while (middle < end && (items[middle].key & 1) == 0) ++middle;
            sums[0] = sum_of(items + i, middle - i);
            sums[1] = sum_of(items + middle, end - middle);
        }
        forecasts[distinct] = forecast;
        zeros[distinct] = sums[0];
        ones[distinct] = sums[1];
        distinct += (sums[0] != 0) | (sums[1] != 0);
    }
    return distinct;
}

}  // namespace truecast

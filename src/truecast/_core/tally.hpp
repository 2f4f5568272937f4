// From rounds to the tally: the distinct forecasts in increasing order, each with its zeros and
// ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "sorting.hpp"
#include "vectors.hpp"

namespace truecast {

// Forecasts in [0, 1] are ordered like their bits, so that forecast and outcome fit in one integer
// that sorts by both. Adding 0.0 makes 0.0 of -0.0.
TRUECAST_INLINE std::uint64_t bits_of(double p) {
    std::uint64_t bits;
    p += 0.0;
    std::memcpy(&bits, &p, sizeof bits);
    return bits;
}

TRUECAST_INLINE double forecast_of(std::uint64_t bits) {
    double p;
    std::memcpy(&p, &bits, sizeof p);
    return p;
}

constexpr std::uint64_t bits_of_one = 0x3ff0000000000000;  // of the double 1.0

// An outcome as 0 or 1; more than 1 if it is neither.
TRUECAST_INLINE std::uint64_t outcome_of(double y) {
    const std::uint64_t bits = bits_of(y), neither = (bits != 0) & (bits != bits_of_one);
    return (bits >> 52 & 1) | neither << 1;
}
TRUECAST_INLINE std::uint64_t outcome_of(std::int64_t y) { return static_cast<std::uint64_t>(y); }
TRUECAST_INLINE std::uint64_t outcome_of(std::uint8_t y) { return y; }

// A round in integers: all comparisons are of bits, which negative forecasts, NaN and those above 1
// exceed.
struct Round {
    std::uint64_t forecast, outcome;

    template <typename Y>
    TRUECAST_INLINE Round(double p, Y y) : forecast(bits_of(p)), outcome(outcome_of(y)) {}
    TRUECAST_INLINE bool invalid() const { return (forecast > bits_of_one) | (outcome > 1); }
};

// Whether all rounds are valid.
template <typename Y>
TRUECAST_INLINE bool valid_each(const double* p, const Y* y, std::size_t n) {
    std::uint64_t bad = 0;
    for (std::size_t i = 0; i < n; ++i) bad |= Round(p[i], y[i]).invalid();
    return bad == 0;
}
template <typename Y>
TRUECAST_FOUR_AT_A_TIME bool valid_fours(const double* p, const Y* y, std::size_t n) {
    return valid_each(p, y, n);
}
template <typename Y>
bool valid(const double* p, const Y* y, std::size_t n) {
    return TRUECAST_HAS_FOUR ? valid_fours(p, y, n) : valid_each(p, y, n);
}

// Write rounds as keys, which sort by forecast and then by outcome. False if some round is invalid.
template <typename Y>
TRUECAST_INLINE bool pack_each(const double* p, const Y* y, std::size_t n, std::uint64_t* keys) {
    std::uint64_t bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const Round round(p[i], y[i]);
        bad |= round.invalid();
        keys[i] = round.forecast << 1 | (round.outcome & 1);
    }
    return bad == 0;
}
template <typename Y>
TRUECAST_FOUR_AT_A_TIME bool pack_fours(const double* p, const Y* y, std::size_t n,
                                        std::uint64_t* keys) {
    return pack_each(p, y, n, keys);
}
template <typename Y>
bool pack(const double* p, const Y* y, std::size_t n, std::uint64_t* keys) {
    return TRUECAST_HAS_FOUR ? pack_fours(p, y, n, keys) : pack_each(p, y, n, keys);
}

// Where a few keys go: their forecasts parted at equal distances, as the leading bits of doubles,
// which are those of their exponents, tell few of them apart.
struct FewPlaces {
    static constexpr std::size_t most = 1 << 11;
    std::uint16_t of[most];
    std::size_t number;  // of places

    // False if all forecasts are alike, or nearly so.
    TRUECAST_INLINE bool find(const std::uint64_t* keys, std::size_t n) {
        std::int64_t low = static_cast<std::int64_t>(keys[0]), high = low;  // as machines compare
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t key = static_cast<std::int64_t>(keys[i]);
            low = key < low ? key : low;
            high = key > high ? key : high;
        }
        number = std::size_t{1} << (bits_in(n) - 1);
        const double first = forecast_of(static_cast<std::uint64_t>(low) >> 1),
                     range = forecast_of(static_cast<std::uint64_t>(high) >> 1) - first,
                     scale = static_cast<double>(number - 1) / range;
        if (!(scale < 0x1p64)) return false;
        for (std::size_t i = 0; i < n; ++i)
            of[i] = static_cast<std::uint16_t>(
                static_cast<std::int32_t>((forecast_of(keys[i] >> 1) - first) * scale));
        return true;
    }
    TRUECAST_FOUR_AT_A_TIME bool find_by_fours(const std::uint64_t* keys, std::size_t n) {
        return find(keys, n);
    }
};

// Sort keys, fewer than there may be places; `spare` has room for as many. By places, then by
// insertion, if most have places of their own.
inline void sort_few(std::uint64_t* keys, std::size_t n, std::uint64_t* spare) {
    constexpr std::size_t very_few = 24;  // that are quicker to sort by insertion alone
    FewPlaces places;
    if (n <= very_few ||
        !(TRUECAST_HAS_FOUR ? places.find_by_fours(keys, n) : places.find(keys, n)))
        return sort_items(keys, n, spare);
    std::uint32_t counts[FewPlaces::most], before = 0;
    std::fill_n(counts, places.number, std::uint32_t{0});
    for (std::size_t i = 0; i < n; ++i) ++counts[places.of[i]];
    for (std::size_t d = 0; d < places.number; ++d) before += std::exchange(counts[d], before);
    for (std::size_t i = 0; i < n; ++i) spare[counts[places.of[i]]++] = keys[i];
    sweep(spare, n, keys);
    if (!insert_sorted(keys, n, 4 * n)) sort_items(keys, n, spare);
}

// Sorted keys, of which equal forecasts may be many, to these with their counts; returns how many.
inline std::size_t unpack_alike(const std::uint64_t* keys, std::size_t n, std::uint64_t* forecasts,
                                std::int64_t* zeros, std::int64_t* ones) {
    std::size_t distinct = 0;
    std::uint64_t present = keys[0] >> 1;
    std::int64_t start = 0, of_one = 0;
    // invariant: keys[start, i) are the rounds so far of the present forecast, of_one of them ones
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t key = keys[i];
        const bool next = key >> 1 != present;
        forecasts[distinct] = present;
        zeros[distinct] = static_cast<std::int64_t>(i) - start - of_one;
        ones[distinct] = of_one;
        distinct += next;
        start = next ? static_cast<std::int64_t>(i) : start;
        of_one = (next ? 0 : of_one) + static_cast<std::int64_t>(key & 1);
        present = key >> 1;
    }
    forecasts[distinct] = present;
    zeros[distinct] = static_cast<std::int64_t>(n) - start - of_one;
    ones[distinct] = of_one;
    return distinct + 1;
}

// The same if all neighbours among `compared` keys, which may be one more, are of different
// forecasts; else false, and nothing is written.
TRUECAST_INLINE bool unpack_each(const std::uint64_t* keys, std::size_t n, std::size_t compared,
                                 std::uint64_t* forecasts, std::int64_t* zeros,
                                 std::int64_t* ones) {
    std::uint64_t alike = 0;
    for (std::size_t i = 1; i < compared; ++i) alike |= (keys[i - 1] ^ keys[i]) >> 1 == 0;
    if (alike != 0) return false;
    for (std::size_t i = 0; i < n; ++i) ones[i] = static_cast<std::int64_t>(keys[i] & 1);
    for (std::size_t i = 0; i < n; ++i) forecasts[i] = keys[i] >> 1;
    for (std::size_t i = 0; i < n; ++i) zeros[i] = 1 - ones[i];
    return true;
}
TRUECAST_FOUR_AT_A_TIME inline bool unpack_fours(const std::uint64_t* keys, std::size_t n,
                                                 std::size_t compared, std::uint64_t* forecasts,
                                                 std::int64_t* zeros, std::int64_t* ones) {
    return unpack_each(keys, n, compared, forecasts, zeros, ones);
}

// Sorted keys to distinct forecasts, as bits, with their counts; returns how many. The keys may be
// where the forecasts or the zeros are: what is written is not read any more.
inline std::size_t unpack(const std::uint64_t* keys, std::size_t n, std::uint64_t* forecasts,
                          std::int64_t* zeros, std::int64_t* ones) {
    constexpr std::size_t block = 256;
    std::size_t distinct = 0;
    // invariant: the first keys are written, and none of them has the forecast of those that follow
    for (std::size_t from = 0, to; from < n; from = to) {
        to = std::min(from + block, n);
        const auto unpack_different = TRUECAST_HAS_FOUR ? unpack_fours : unpack_each;
        if (unpack_different(keys + from, to - from, std::min(to + 1, n) - from,
                             forecasts + distinct, zeros + distinct, ones + distinct)) {
            distinct += to - from;
            continue;
        }
        to = std::min(from + 8 * block, n);  // what follows is likely to have equal ones, too
        while (to < n && keys[to] >> 1 == keys[to - 1] >> 1) ++to;
        distinct += unpack_alike(keys + from, to - from, forecasts + distinct, zeros + distinct,
                                 ones + distinct);
    }
    return distinct;
}

// Whether the first rounds have more distinct forecasts than rounds with few of them would have, as
// a rule: a choice of speed alone.
inline bool seem_many(const double* p, std::size_t n) {
    constexpr std::size_t size = 1 << 10, likely = 940;  // of 2^12 forecasts, 906 at a time
    if (n < size) return false;
    std::uint64_t first[2 * size];
    for (std::size_t i = 0; i < size; ++i) first[i] = bits_of(p[i]);
    sort_items(first, size, first + size);
    return std::unique(first, first + size) - first > static_cast<std::ptrdiff_t>(likely);
}

// Counts rounds with few distinct forecasts without sorting them all: an open table that gives up
// when it is full.
struct FewForecasts {
    static constexpr std::size_t most = 1 << 12, slots = most << 2;
    static constexpr std::uint64_t none = ~std::uint64_t{0};  // no forecast has these bits
    std::vector<std::uint64_t> forecasts = std::vector<std::uint64_t>(slots, none);
    std::vector<std::int64_t> counts = std::vector<std::int64_t>(2 * slots, 0);
    std::size_t distinct = 0;

    // Where the forecast is, or would be; `slots` if that takes too long to find, as someone may
    // wish.
    std::size_t slot_of(std::uint64_t bits) const {
        std::size_t slot =
            static_cast<std::size_t>(bits * 0x9e3779b97f4a7c15ULL >> 50);  // 64 - 50 = log2(slots)
        if (forecasts[slot] == bits) return slot;
        for (int tries = 0; tries < 64; ++tries, slot = (slot + 1) % slots)
            if (forecasts[slot] == bits || forecasts[slot] == none) return slot;
        return slots;
    }

    // 1 if all rounds are counted, 0 if there are too many forecasts, -1 if some round is invalid.
    template <typename Y>
    int count(const double* p, const Y* y, std::size_t n) {
        if (seem_many(p, n)) return 0;
        for (std::size_t i = 0; i < n; ++i) {
            const Round round(p[i], y[i]);
            if (round.invalid()) return -1;
            const std::size_t slot = slot_of(round.forecast);
            if (slot == slots) return 0;
            if (forecasts[slot] == none) {
                if (distinct == most) return 0;
                forecasts[slot] = round.forecast;
                ++distinct;
            }
            ++counts[2 * slot + round.outcome];
        }
        return 1;
    }
};

// Two tallies to one; returns the number of distinct forecasts. The outputs have room for all.
template <typename Count>
std::size_t merge(const double* p1, const Count* zeros1, const Count* ones1, std::size_t n1,
                  const double* p2, const Count* zeros2, const Count* ones2, std::size_t n2,
                  double* p, Count* zeros, Count* ones) {
    std::size_t i = 0, j = 0, k = 0;
    while (i < n1 || j < n2) {
        const bool first = j == n2 || (i < n1 && p1[i] <= p2[j]);
        const bool second = i == n1 || (j < n2 && p2[j] <= p1[i]);
        p[k] = first ? p1[i] : p2[j];
        zeros[k] = (first ? zeros1[i] : 0) + (second ? zeros2[j] : 0);
        ones[k] = (first ? ones1[i] : 0) + (second ? ones2[j] : 0);
        i += first;
        j += second;
        ++k;
    }
    return k;
}

}  // namespace truecast

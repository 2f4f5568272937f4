// Items sorted by their keys of 64 bits, equal ones as they come: by as many leading bits as it
// takes to tell most of them apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace truecast {

inline std::uint64_t key_of(std::uint64_t key) { return key; }

// How many bits it takes to write a number.
inline unsigned bits_in(std::uint64_t x) {
    unsigned bits = 0;
    for (unsigned step = 32; step > 0; step /= 2) {
        if (x >> step == 0) continue;
        x >>= step;
        bits += step;
    }
    return bits + static_cast<unsigned>(x);
}

// Sort by insertion, which is fast for few items and for those that are nearly in order. False if
// it takes more than `most` moves; they are not in order then.
template <typename Item>
bool insert_sorted(Item* items, std::size_t n, std::size_t most) {
    std::size_t moves = 0;
    // invariant: items before i are in order
    for (std::size_t i = 1; i < n; ++i) {
        if (key_of(items[i - 1]) <= key_of(items[i])) continue;
        const Item item = items[i];
        std::size_t at = i;
        do {
            items[at] = items[at - 1];
            --at;
        } while (at > 0 && key_of(items[at - 1]) > key_of(item));
        items[at] = item;
        moves += i - at;
        if (moves > most) return false;
    }
    return true;
}

// Copy items, at least one, and bring the greatest so far along: this puts most in order that were
// nearly so, without a branch, which would be guessed wrong each time that two change places.
template <typename Item>
void sweep(const Item* from, std::size_t n, Item* items) {
    Item last = from[0];
    // invariant: `last` is the greatest before i, the others before i are written
    for (std::size_t i = 1; i < n; ++i) {
        const Item item = from[i];
        const bool lower = key_of(item) < key_of(last);
        items[i - 1] = lower ? item : last;
        last = lower ? last : item;
    }
    items[n - 1] = last;
}

// Copy items in the order of a digit, equal ones as they come; counts[d] is how many of `digits`
// have it.
template <typename Item, typename Digit, typename Count>
void scatter(const Item* items, std::size_t n, Digit digit, Count* counts, std::size_t digits,
             Item* out) {
    Count before = 0;
    for (std::size_t d = 0; d < digits; ++d)
        before = static_cast<Count>(before + std::exchange(counts[d], before));
    for (std::size_t i = 0; i < n; ++i) out[counts[digit(items[i])]++] = items[i];
}

template <typename Item>
void sort_within(Item* items, std::size_t n, std::uint64_t low, unsigned range, Item* spare);

// Sort the items; `spare` has room for as many.
template <typename Item>
void sort_items(Item* items, std::size_t n, Item* spare) {
    constexpr std::size_t few = 24;
    if (n <= few) {
        insert_sorted(items, n, few * few);
        return;
    }
    std::uint64_t low = key_of(items[0]), high = low;
    for (std::size_t i = 1; i < n; ++i) {
        low = std::min(low, key_of(items[i]));
        high = std::max(high, key_of(items[i]));
    }
    if (low != high) sort_within(items, n, low, bits_in(high - low), spare);
}

// Copy items to `spare` in the order of their places, below 2^bits.
template <typename Item, typename Place>
void sort_by_digit(const Item* items, std::size_t n, Place place, unsigned bits, Item* spare) {
    constexpr unsigned widest = 12;
    std::uint32_t counts[1 << widest];
    const std::size_t digits = std::size_t{1} << bits;
    std::fill_n(counts, digits, std::uint32_t{0});
    for (std::size_t i = 0; i < n; ++i) ++counts[place(items[i])];
    scatter(items, n, place, counts, digits, spare);
}

// Sort items by their places, below 2^bits, as two digits, the lower one first.
template <typename Item, typename Place>
void sort_by_two_digits(Item* items, std::size_t n, Place place, unsigned bits, Item* spare) {
    constexpr unsigned widest = 9;
    std::size_t lowers[1 << widest], uppers[1 << widest];
    const unsigned width = (bits + 1) / 2;
    const std::size_t digits = std::size_t{1} << width;
    const auto lower = [&](const Item& item) { return place(item) & (digits - 1); };
    const auto upper = [&](const Item& item) { return place(item) >> width; };
    std::fill_n(lowers, digits, std::size_t{0});
    std::fill_n(uppers, digits, std::size_t{0});
    for (std::size_t i = 0; i < n; ++i) {
        ++lowers[lower(items[i])];
        ++uppers[upper(items[i])];
    }
    scatter(items, n, lower, lowers, digits, spare);
    scatter(spare, n, upper, uppers, digits, items);
}

// How many bits of places make about as many of them as there are items.
inline unsigned bits_of_places(std::size_t n) {
    return n < 1 << 12 ? bits_in(n) : std::min(bits_in(n) + 1, 18U);
}

// Sort items by their places, below 2^bits, which must not fall where keys rise; then by insertion,
// which is quick if most have places of their own. False if they do not: all are in the order of
// their places then, but not of their keys.
template <typename Item, typename Place>
bool sort_by_places(Item* items, std::size_t n, Place place, unsigned bits, Item* spare) {
    if (n < 1 << 12) {
        sort_by_digit(items, n, place, bits, spare);
        sweep(spare, n, items);
    } else {
        sort_by_two_digits(items, n, place, bits, spare);
        sweep(items, n, items);
    }
    return insert_sorted(items, n, 4 * n);
}

// The same for keys in [low, low + 2^range): by leading bits that make about as many stretches as
// there are items. If most are in a few of them, those are sorted one by one, and have a smaller
// range: it shrinks to a power of two or less of what it was.
template <typename Item>
void sort_within(Item* items, std::size_t n, std::uint64_t low, unsigned range, Item* spare) {
    const unsigned bits = std::min(range, bits_of_places(n)), rest = range - bits;
    const auto leading = [low, rest](const Item& item) { return (key_of(item) - low) >> rest; };
    if (sort_by_places(items, n, leading, bits, spare)) return;
    // invariant: items before start are in order, and none after it is smaller
    for (std::size_t start = 0, end; start < n; start = end) {
        for (end = start + 1; end < n && leading(items[end]) == leading(items[start]);) ++end;
        sort_items(items + start, end - start, spare);
    }
}

// A double and where it came from, in twelve bytes.
class PlacedValue {
  public:
    PlacedValue() = default;
    PlacedValue(double value, std::size_t place) : place_(static_cast<std::uint32_t>(place)) {
        std::uint64_t bits;
        value += 0.0;  // -0.0 is 0.0
        std::memcpy(&bits, &value, sizeof bits);
        bits ^= bits >> 63 ? ~std::uint64_t{0} : top;  // now ordered like the values
        low_ = static_cast<std::uint32_t>(bits);
        high_ = static_cast<std::uint32_t>(bits >> 32);
    }

    std::uint64_t key() const { return std::uint64_t{high_} << 32 | low_; }
    std::size_t place() const { return place_; }
    double value() const {
        const std::uint64_t bits = key() ^ (key() & top ? top : ~std::uint64_t{0});
        double value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }

  private:
    static constexpr std::uint64_t top = std::uint64_t{1} << 63;
    std::uint32_t low_, high_, place_;
};

inline std::uint64_t key_of(const PlacedValue& item) { return item.key(); }

// Put values in increasing order: by places at equal distances, as the leading bits of doubles,
// which are those of their exponents, tell few of them apart.
inline void sort_values(std::vector<PlacedValue>& values) {
    const std::size_t n = values.size();
    std::vector<PlacedValue> spare(n);
    if (n < 2) return;
    const auto [low, high] = std::minmax_element(
        values.begin(), values.end(),
        [](const PlacedValue& a, const PlacedValue& b) { return a.key() < b.key(); });
    const unsigned bits = bits_of_places(n);
    const std::size_t last = (std::size_t{1} << bits) - 1;
    const double first = low->value(), scale = static_cast<double>(last) / (high->value() - first);
    const auto place = [=](const PlacedValue& item) {
        return std::min(static_cast<std::size_t>((item.value() - first) * scale), last);
    };
    const bool sorted =
        std::isnormal(scale) && sort_by_places(values.data(), n, place, bits, spare.data());
    if (!sorted) sort_items(values.data(), n, spare.data());
}

}  // namespace truecast

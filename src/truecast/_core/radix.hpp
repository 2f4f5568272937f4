// The order of doubles by a radix sort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace truecast {

// The order of some doubles, increasing, equal ones as they come: a radix sort with digits of 11
// bits, in which digits that all share cost nothing.
inline std::vector<std::uint32_t> order_of(const std::vector<double>& values) {
    constexpr std::size_t digits = 6, width = 11;
    constexpr std::size_t buckets = std::size_t{1} << width;
    struct Item {
        std::uint64_t key;
        std::uint32_t index;
    };
    const std::size_t n = values.size();
    std::vector<Item> items(n), sorted(n);
    std::vector<std::size_t> counts(digits * buckets, 0);
    for (std::size_t i = 0; i < n; ++i) {
        std::uint64_t bits;
        const double value = values[i] + 0.0;  // -0.0 is 0.0
        std::memcpy(&bits, &value, sizeof bits);
        bits ^=
            bits >> 63 ? ~std::uint64_t{0} : std::uint64_t{1} << 63;  // now ordered like the values
        items[i] = {bits, static_cast<std::uint32_t>(i)};
        for (std::size_t d = 0; d < digits; ++d)
            ++counts[d * buckets + (bits >> d * width & (buckets - 1))];
    }
    // invariant: items are in the order of their digits below d, equal ones as they came
    for (std::size_t d = 0; d < digits; ++d) {
        std::size_t* count = &counts[d * buckets];
        if (n == 0 || count[items[0].key >> d * width & (buckets - 1)] == n) continue;
        std::size_t before = 0;
        for (std::size_t b = 0; b < buckets; ++b) before += std::exchange(count[b], before);
        for (const Item& item : items)
            sorted[count[item.key >> d * width & (buckets - 1)]++] = item;
        items.swap(sorted);
    }
    std::vector<std::uint32_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = items[i].index;
    return order;
}

}  // namespace truecast

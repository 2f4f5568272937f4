// A set of cells, with the nearest member on either side of any cell in O(log m), whatever the set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace truecast {

inline std::size_t lowest_bit(std::uint64_t word) {
    std::size_t at = 0;
    for (std::size_t half = 32; half; half /= 2) {
        if (!(word & ((std::uint64_t{1} << half) - 1))) word >>= half, at += half;
    }
    return at;
}

inline std::size_t highest_bit(std::uint64_t word) {
    std::size_t at = 0;
    for (std::size_t half = 32; half; half /= 2) {
        if (word >> half) word >>= half, at += half;
    }
    return at;
}

// A tree of 64-bit words. Invariant: bit k of a level above the lowest is set just if word k of the level below is not
// 0.
class CellSet {
    std::vector<std::vector<std::uint64_t>> levels;

    static std::uint64_t bit(std::size_t k) { return std::uint64_t{1} << (k & 63); }

  public:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    // Numbers from 0 to size - 1 can be members; none is one yet.
    void clear(std::size_t size) {
        levels.clear();
        do {
            size = (size + 63) / 64;
            levels.emplace_back(size, 0);
        } while (size > 1);
    }

    bool has(std::size_t k) const { return levels[0][k >> 6] & bit(k); }

    void set(std::size_t k, bool member) {
        for (auto& level : levels) {
            std::uint64_t& word = level[k >> 6];
            const bool was_empty = word == 0;
            word = member ? word | bit(k) : word & ~bit(k);
            if (was_empty == (word == 0)) return;  // the levels above say so already
            k >>= 6;
        }
    }

    // The largest member below k, and the smallest above it.
    std::size_t below(std::size_t k) const {
        for (std::size_t up = 0; up < levels.size(); ++up, k >>= 6) {
            const std::uint64_t under = levels[up][k >> 6] & (bit(k) - 1);
            if (!under) continue;
            k = (k & ~std::size_t{63}) + highest_bit(under);
            while (up-- > 0) k = 64 * k + highest_bit(levels[up][k]);
            return k;
        }
        return none;
    }

    std::size_t above(std::size_t k) const {
        for (std::size_t up = 0; up < levels.size(); ++up, k >>= 6) {
            const std::uint64_t over = levels[up][k >> 6] & ~(bit(k) | (bit(k) - 1));
            if (!over) continue;
            k = (k & ~std::size_t{63}) + lowest_bit(over);
            while (up-- > 0) k = 64 * k + lowest_bit(levels[up][k]);
            return k;
        }
        return none;
    }
};

}  // namespace truecast

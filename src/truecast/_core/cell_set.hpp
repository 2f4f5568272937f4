// A set of cells, with the nearest member on either side of any cell in O(log m), whatever the set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
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
    std::size_t size = 0;

    static std::uint64_t bit(std::size_t k) { return std::uint64_t{1} << (k & 63); }

    // All levels above the lowest anew.
    void raise() {
        levels.resize(1);
        while (levels.back().size() > 1) {
            const std::vector<std::uint64_t>& under = levels.back();
            std::vector<std::uint64_t> level((under.size() + 63) / 64, 0);
            for (std::size_t k = 0; k < under.size(); ++k)
                if (under[k]) level[k >> 6] |= bit(k);
            levels.push_back(std::move(level));
        }
    }

  public:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    // Numbers from 0 to size - 1 can be members; none is one yet.
    void clear(std::size_t size_) {
        size = size_;
        levels.assign(1, std::vector<std::uint64_t>((size + 63) / 64, 0));
        raise();
    }

    // Every member from k on becomes the next number; k is none. O(m / 64).
    void make_room(std::size_t k) {
        std::vector<std::uint64_t>& words = levels[0];
        if (size++ == 64 * words.size()) words.push_back(0);
        std::size_t at = k >> 6;
        const std::uint64_t stay = words[at] & (bit(k) - 1);
        std::uint64_t carry = words[at] >> 63;
        words[at] = stay | ((words[at] ^ stay) << 1);
        while (++at < words.size()) {
            const std::uint64_t next = words[at] >> 63;
            words[at] = words[at] << 1 | carry;
            carry = next;
        }
        raise();
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

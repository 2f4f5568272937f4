// Sums and products that cannot overflow: 128 bits from two words, for compilers without __int128.
#pragma once

#include <cstdint>

namespace truecast {

struct Wide {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    void add(std::uint64_t x) {
        low += x;
        high += low < x;
    }

    void subtract(std::uint64_t x) {
        high -= low < x;
        low -= x;
    }

    void add(const Wide& x) {
        add(x.low);
        high += x.high;
    }
};

inline Wide product(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t mask = 0xffffffff, a0 = a & mask, a1 = a >> 32, b0 = b & mask, b1 = b >> 32;
    const std::uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32),
                        other = a0 * b1 + (cross & mask);
    return {(other << 32) | (low & mask), a1 * b1 + (cross >> 32) + (other >> 32)};
}

inline bool operator<=(const Wide& a, const Wide& b) {
    return a.high != b.high ? a.high < b.high : a.low <= b.low;
}

}  // namespace truecast

// Sums and products that cannot overflow: 128 bits from two words, for compilers without __int128.
#pragma once

#include <cmath>
#include <cstddef>
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
#ifdef __SIZEOF_INT128__
    __extension__ using Whole = unsigned __int128;
    const Whole whole = static_cast<Whole>(a) * b;
    return {static_cast<std::uint64_t>(whole), static_cast<std::uint64_t>(whole >> 64)};
#else
    const std::uint64_t mask = 0xffffffff, a0 = a & mask, a1 = a >> 32, b0 = b & mask, b1 = b >> 32;
    const std::uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32),
                        other = a0 * b1 + (cross & mask);
    return {(other << 32) | (low & mask), a1 * b1 + (cross >> 32) + (other >> 32)};
#endif
}

// The double nearest to sum_i digits[i] 2^(32 i + exponent), each digit below 2^32: the leading 64
// bits, the last of them set if anything is left below, are rounded once.
inline double nearest(const std::uint64_t* digits, std::size_t size, int exponent) {
    std::size_t top = size - 1;
    while (top > 0 && digits[top] == 0) --top;
    // the digits at a place and below it, of which there may be none
    const auto two = [&](std::size_t at) {
        const std::uint64_t first = at < size ? digits[at] : 0,
                            second = at - 1 < size ? digits[at - 1] : 0;
        return first << 32 | second;
    };
    const std::uint64_t high = two(top), low = two(top - 2);
    if (high == 0) return 0.0;
    int zeros = 0;
    while (high << zeros >> 63 == 0) ++zeros;
    std::uint64_t leading = zeros == 0 ? high : high << zeros | low >> (64 - zeros);
    bool left = low << zeros != 0;
    for (std::size_t i = 0; i + 4 <= top; ++i) left |= digits[i] != 0;
    leading |= left;
    return std::ldexp(static_cast<double>(leading),
                      32 * (static_cast<int>(top) - 1) - zeros + exponent);
}

inline bool operator<=(const Wide& a, const Wide& b) {
    return a.high != b.high ? a.high < b.high : a.low <= b.low;
}

}  // namespace truecast

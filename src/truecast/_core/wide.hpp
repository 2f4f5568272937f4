// A sum that cannot overflow: 128 bits from two words, for compilers without __int128.
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
};

}  // namespace truecast

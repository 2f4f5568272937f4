// How a monitor with `alpha` divides its stakes over time (docs/monitor.md, section 2).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace truecast::monitor {

// Stakes over time. Block b is rounds 2^b to 2^(b+1) - 1, which share evenly what the block has:
// 1/((b+1) h), where h is the sum of 1/(b+1) over all blocks. No monitor counts more rounds than
// they have, so all stakes sum to 1.
constexpr std::size_t blocks = 54;

struct Stakes {
    std::array<double, blocks> of{};        // a round of this block
    std::array<double, blocks + 1> left{};  // of all, when this block begins

    Stakes() {
        double h = 0.0;
        for (std::size_t b = blocks; b-- > 0;) h += 1.0 / static_cast<double>(b + 1);
        for (std::size_t b = blocks; b-- > 0;) {
            const double part = 1.0 / (static_cast<double>(b + 1) * h);
            of[b] = std::ldexp(part, -static_cast<int>(b));
            left[b] = left[b + 1] + part;
        }
    }
};

inline const Stakes& stakes() {
    static const Stakes made;
    return made;
}

// What part of all stakes is for round n = 1, 2, ...
inline double stake_of(std::int64_t n) {
    return stakes().of[static_cast<std::size_t>(std::ilogb(static_cast<double>(n)))];
}

// What is left of them after n rounds.
inline double rest_after(std::int64_t n) {
    const auto b = static_cast<std::size_t>(std::ilogb(static_cast<double>(n + 1)));
    const auto begun = static_cast<double>(n + 1 - (std::int64_t{1} << b));
    return stakes().left[b] - begun * stakes().of[b];
}

}  // namespace truecast::monitor

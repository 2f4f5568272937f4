// The two sums of the certificate, exactly (docs/theory.md, section 3).
#pragma once

#include <cstddef>
#include <cstdint>

#include "wide.hpp"

namespace truecast {

// A = bias / N and B = (left + moved + rest / count) / N with 0 <= rest < count. moved fits in 64
// bits while m * N <= 2^62, and so do bias and left if no bias is above 1, as on a ladder that was
// played.
struct Sums {
    Wide bias;  // of all points
    Wide left;  // of the groups left behind when one round of the majority error is taken out
    std::int64_t moved = 0;
    std::int64_t rest = 0;
    std::int64_t count = 1;
};

inline std::uint64_t magnitude(std::int64_t x) {
    return static_cast<std::uint64_t>(x < 0 ? -x : x);
}

inline Sums sums(const std::int64_t* points, const std::int64_t* biases, std::size_t size,
                 std::int64_t denominator) {
    Sums out;
    // signs come in no order that a processor could guess: no branches
    std::int64_t negative = 0, count = 0;
    for (std::size_t j = 0; j < size; ++j) {
        const std::int64_t a = biases[j], under = a < 0, any = a != 0;
        out.bias.add(magnitude(a));
        out.left.add(magnitude(any * (a + under * denominator - points[j])));
        negative += under;
        count += any;
    }
    if (count == 0) return out;

    // the pooled rounds meet at v = negative / count; N v = meeting + rest / count
    const std::int64_t meeting = negative * denominator / count,
                       rest = negative * denominator % count;
    std::int64_t below = 0;  // points at or below v, less those above
    for (std::size_t j = 0; j < size; ++j) {
        const std::int64_t side = (biases[j] != 0) * (points[j] <= meeting ? 1 : -1);
        below += side;
        out.moved -= side * points[j];
    }
    const std::int64_t part = rest * below;
    const std::int64_t floor = part / count - (part % count < 0);
    out.moved += meeting * below + floor;
    out.rest = part - floor * count;
    out.count = count;
    return out;
}

}  // namespace truecast

// Sums of proper scores. Over rounds or their tally, in any order, they are the same double
// (docs/measures.md, "How sums are rounded").
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "exact.hpp"
#include "tally.hpp"
#include "totals.hpp"
#include "vectors.hpp"

namespace truecast {

// What a round costs by two proper scores, if y is 0.0 or 1.0.
struct SquaredError {
    static TRUECAST_INLINE double of(double p, double y) {
        const double off = y - p;
        return off * off;
    }
};
// Infinite if what happened had the forecast 0. For an outcome 0 it is -log(1 - p): as 1 - p is
// u + c, where u is rounded, the logarithm is log(u) + c / u, within (c / u)^2.
struct LogLoss {
    static TRUECAST_INLINE double of(double p, double y) {
        const double u = y == 1.0 ? p : 1.0 - p, c = y == 1.0 ? 0.0 : (1.0 - u) - p;
        return u > 0.0 ? -(std::log(u) + c / u) + 0.0 : std::numeric_limits<double>::infinity();
    }
};

// The outcome itself, and the forecast: their sums are those that were observed and expected.
struct Observed {
    static TRUECAST_INLINE double of(double, double y) { return y; }
};
struct Expected {
    static TRUECAST_INLINE double of(double p, double) { return p; }
};

// Compensated, for real weights, and for sums so small that the unit of exact ones is too large.
template <typename Score, typename Count>
double compensated(const double* p, const Count* zeros, const Count* ones, std::size_t n) {
    Total sum;
    for (std::size_t i = 0; i < n; ++i) {
        if (zeros[i] > 0) sum.add(static_cast<double>(zeros[i]) * Score::of(p[i], 0.0));
        if (ones[i] > 0) sum.add(static_cast<double>(ones[i]) * Score::of(p[i], 1.0));
    }
    return sum.value();
}

// Whether the unit of exact sums, 2^-92 a round, is below their last place.
inline bool is_precise(const ExactSum& sum) {
    return sum.rounded() >= 0x1p-30 * static_cast<double>(sum.count());
}

// Whether all are from 0 to 1: bits of a double that is not exceed those of 1.0.
TRUECAST_INLINE bool are_forecasts(const double* p, std::size_t n) {
    std::uint64_t words[ExactSum::block], wrong = 0;
    double forecasts[ExactSum::block];
    for (std::size_t i = 0; i < n; ++i) forecasts[i] = p[i] + 0.0;  // -0.0 is 0.0
    std::memcpy(words, forecasts, n * sizeof *words);
    for (std::size_t i = 0; i < n; ++i) wrong |= words[i] | (bits_of_one - words[i]);
    return wrong >> 63 == 0;
}

// Outcomes as doubles 0.0 and 1.0. Returns bits that are 0 if all are valid.
TRUECAST_INLINE std::uint64_t take_outcomes(const double* y, std::size_t n, double* out) {
    std::uint64_t words[ExactSum::block], wrong = 0;
    for (std::size_t i = 0; i < n; ++i) out[i] = y[i] + 0.0;  // -0.0 is 0.0
    std::memcpy(words, out, n * sizeof *words);
    for (std::size_t i = 0; i < n; ++i) {  // all ten bits of the exponent of 1.0, or no bit at all
        const std::uint64_t high = words[i] >> 52;
        wrong |= words[i] << 12 | (high ^ ((0 - (high & 1)) & 0x3ff));
    }
    return wrong;
}
template <typename Y>
TRUECAST_INLINE std::uint64_t take_outcomes(const Y* y, std::size_t n, double* out) {
    std::uint64_t words[ExactSum::block];
    Y wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong = static_cast<Y>(wrong | (y[i] & ~Y{1}));
    for (std::size_t i = 0; i < n; ++i)
        words[i] = (0 - (static_cast<std::uint64_t>(y[i]) & 1)) & bits_of_one;
    std::memcpy(out, words, n * sizeof *out);
    return static_cast<std::uint64_t>(wrong);
}

// The same sum over rounds, in one pass, block by block. False if some round is invalid. Loops are
// short and do one thing each, so that compilers can do several rounds at once.
template <typename Score, typename Y>
TRUECAST_INLINE bool score_blocks(const double* p, const Y* y, std::size_t n, ExactSum& sum) {
    double outcomes[ExactSum::block], scores[ExactSum::block];
    for (std::size_t from = 0; from < n; from += ExactSum::block) {
        const std::size_t count = std::min(ExactSum::block, n - from);
        if (take_outcomes(y + from, count, outcomes) != 0) return false;
        if (!are_forecasts(p + from, count)) return false;
        for (std::size_t i = 0; i < count; ++i) scores[i] = Score::of(p[from + i], outcomes[i]);
        sum.add_block(scores, count);
    }
    return true;
}
template <typename Score, typename Y>
TRUECAST_FOUR_AT_A_TIME bool score_fours(const double* p, const Y* y, std::size_t n,
                                         ExactSum& sum) {
    return score_blocks<Score>(p, y, n, sum);
}
template <typename Score, typename Y>
bool score_rounds(const double* p, const Y* y, std::size_t n, ExactSum& sum) {
    return TRUECAST_HAS_FOUR ? score_fours<Score>(p, y, n, sum) : score_blocks<Score>(p, y, n, sum);
}

// The sum of scores over a tally.
template <typename Score>
double score_sum(const double* p, const double* zeros, const double* ones, std::size_t n) {
    return compensated<Score>(p, zeros, ones, n);
}

// Whether each forecast came once: the ones are its outcome, then.
inline bool came_once(const std::int64_t* zeros, const std::int64_t* ones, std::size_t n) {
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong |= (zeros[i] + ones[i]) ^ 1;
    return wrong == 0;
}

// Exact sums do not depend on their order: stretches of forecasts that came once are quicker to sum
// as rounds, four at a time.
template <typename Score>
double score_sum(const double* p, const std::int64_t* zeros, const std::int64_t* ones,
                 std::size_t n) {
    ExactSum sum;
    for (std::size_t from = 0; from < n; from += ExactSum::block) {
        const std::size_t to = std::min(from + ExactSum::block, n);
        if (TRUECAST_HAS_FOUR && came_once(zeros + from, ones + from, to - from)) {
            score_rounds<Score>(p + from, ones + from, to - from, sum);
            continue;
        }
        for (std::size_t i = from; i < to; ++i) {
            if (zeros[i] > 0) sum.add(Score::of(p[i], 0.0), static_cast<std::uint64_t>(zeros[i]));
            if (ones[i] > 0) sum.add(Score::of(p[i], 1.0), static_cast<std::uint64_t>(ones[i]));
        }
    }
    return is_precise(sum) ? sum.rounded() : compensated<Score>(p, zeros, ones, n);
}

}  // namespace truecast

// Temperature, vector and matrix scaling of log probabilities, learned online: three members of the
// hints for K classes (class_hints.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "hints.hpp"
#include "vectors.hpp"

namespace truecast::hints {

using Numbers = std::vector<double>;

inline void softmax(Numbers& z) {
    const double top = *std::max_element(z.begin(), z.end());
    double total = 0.0;
    for (double& each : z) total += each = each < top ? std::exp(each - top) : 1.0;
    for (double& each : z) each /= total;
}

// softmax(a x): Newton steps on the log loss of all rounds, pulled towards a = 1. One half of the
// curvature is what it would be if q was right, the other goes by the errors, as in Platt. The
// first alone is slow where a model is not sure enough, as forests are; the second where it is too
// sure.
struct Temperature {
    static constexpr double pull = 2.0;
    double slope = 1.0, curvature = pull;

    void say(const Numbers& x, Numbers& q) const {
        q.resize(x.size());
        for (std::size_t k = 0; k < x.size(); ++k) q[k] = slope * x[k];
        softmax(q);
    }
    void learn(const Numbers& x, const Numbers& q, std::size_t y, double weight) {
        double mean = 0.0, bend = 0.0;
        for (std::size_t k = 0; k < x.size(); ++k) mean += q[k] * x[k];
        for (std::size_t k = 0; k < x.size(); ++k) {
            const double error = std::fabs((k == y ? 1.0 : 0.0) - q[k]);
            bend += (0.5 * q[k] + 0.25 * error) * ((x[k] - mean) * (x[k] - mean));
        }
        curvature += weight * bend;
        slope = clip(slope + weight * (x[y] - mean) / curvature, -4.0, 16.0);
    }
    Entries entries() {
        return {{"slope", slope, -4.0, 16.0, "of the temperature: one over it"},
                {"curvature", curvature, pull, huge, "of its objective"}};
    }
};

// softmax(a x_k + (a_k - 1) x_k + b_k), for the slope a of the temperature: for each class the
// Newton steps of Platt. They learn only what one slope for all classes leaves to be learned.
struct VectorScaling {
    static constexpr double keep = 0.999, pull_slope = 8.0, pull_offset = 2.0;
    static constexpr double most = 64.0;
    Numbers slopes, offsets, a, b, c;  // and of each class the curvature (a, b; b, c)

    explicit VectorScaling(std::size_t classes)
        : slopes(classes, 1.0),
          offsets(classes, 0.0),
          a(classes, pull_offset),
          b(classes, 0.0),
          c(classes, pull_slope) {}

    // `more`: the temperature's slope, less 1.
    void say(const Numbers& x, double more, Numbers& q) const {
        q.resize(x.size());
        for (std::size_t k = 0; k < x.size(); ++k) q[k] = (more + slopes[k]) * x[k] + offsets[k];
        softmax(q);
    }
    void learn(const Numbers& x, const Numbers& q, std::size_t y, double weight) {
        const double lost = weight * (1.0 - keep), kept = 1.0 - lost;
        for (std::size_t k = 0; k < x.size(); ++k) {
            const double error = weight * ((k == y ? 1.0 : 0.0) - q[k]);
            const double bend = std::fabs(error) / 2.0;
            a[k] = kept * a[k] + lost * pull_offset + bend;
            b[k] = kept * b[k] + bend * x[k];
            c[k] = kept * c[k] + lost * pull_slope + bend * x[k] * x[k];
            const double u = error - lost * pull_offset * offsets[k];
            const double v = error * x[k] - lost * pull_slope * (slopes[k] - 1.0);
            const double determinant = a[k] * c[k] - b[k] * b[k];
            offsets[k] = clip(offsets[k] + (c[k] * u - b[k] * v) / determinant, -most, most);
            slopes[k] = clip(slopes[k] + (a[k] * v - b[k] * u) / determinant, -most, most);
        }
    }
    Entries entries() {
        return {{"slopes", row(slopes), -most, most,
                 "of vector scaling, one a class, without what the temperature has above 1"},
                {"offsets", row(offsets), -most, most, "of vector scaling"},
                {"a", row(a), pull_offset / 2.0, huge, "curvature of its offsets"},
                {"b", row(b), -huge, huge, "mixed curvature"},
                {"c", row(c), pull_slope / 2.0, huge, "curvature of its slopes"}};
    }
    bool settle() const {
        for (std::size_t k = 0; k < a.size(); ++k)
            if (!(a[k] * c[k] - b[k] * b[k] >= pull_slope * pull_offset / 4.0)) return false;
        return true;
    }
};

// softmax((a - 1) x + W (x, 1)), for the slope a of the temperature; W as Dirichlet calibration has
// it: recursive least squares a class, from the identity, with the curvature |error| / 2 as in
// Platt. What it forgets must not wind up where outcomes teach nothing: the inverse curvature grows
// no further than it was at first.
struct MatrixScaling {
    static constexpr double pull = 5.0, most = 64.0;
    static constexpr double tiny = 1e-12;            // so that no curvature is 0
    static constexpr std::size_t most_classes = 16;  // a round costs their cube
    double keep;
    std::size_t wide;       // classes and one
    Numbers rows, inverse;  // weights, a row a class; and of each class its inverse curvature

    MatrixScaling(std::size_t classes, double keep_)
        : keep(keep_),
          wide(classes + 1),
          rows(classes * wide),
          inverse(classes * wide * wide),
          steps(classes * wide),
          along(classes),
          growth(classes, 1.0),
          input(wide) {
        for (std::size_t k = 0; k < classes; ++k) {
            rows[k * wide + k] = 1.0;
            restart(k);
        }
    }

    // `more`: the temperature's slope, less 1.
    void say(const Numbers& x, double more, Numbers& q) const {
        q.resize(x.size());
        for (std::size_t k = 0; k < x.size(); ++k) {
            const double* w = rows.data() + k * wide;
            double z = w[x.size()] + more * x[k];
            for (std::size_t j = 0; j < x.size(); ++j) z += w[j] * x[j];
            q[k] = z;
        }
        softmax(q);
    }
    void learn(const Numbers& x, const Numbers& q, std::size_t y, double weight) {
        std::copy(x.begin(), x.end(), input.begin());
        input.back() = 1.0;
        learn_rows<least_wide>(q, y, weight);
    }
    Entries entries(const char* rows_name, const char* inverse_name) {
        return {{rows_name, row(rows), -most, most, "of matrix scaling: weights, a row a class"},
                {inverse_name, row(inverse), -1e3, 1e3, "of each class: its inverse curvature"}};
    }

  private:
    static constexpr std::size_t least_wide = 3, most_wide = most_classes + 1;
    // Of each class: its inverse curvature times the input, that along the input, and by what the
    // inverse grows since it forgets.
    Numbers steps, along, growth;
    Numbers input;

    void restart(std::size_t k) {
        double* const r = inverse.data() + k * wide * wide;
        for (std::size_t i = 0; i < wide; ++i)
            for (std::size_t j = 0; j < wide; ++j) r[i * wide + j] = i == j ? 1.0 / pull : 0.0;
    }

    // The width is a constant, so that sums stay in registers and short loops are unrolled.
    template <std::size_t n>
    void learn_rows(const Numbers& q, std::size_t y, double weight) {
        if constexpr (n <= most_wide) {
            if (n != wide) return learn_rows<n + 1>(q, y, weight);
            TRUECAST_HAS_FOUR ? learn_fours<n>(q, y, weight) : learn_twos<n>(q, y, weight);
        }
    }
    template <std::size_t n>
    TRUECAST_APART void learn_twos(const Numbers& q, std::size_t y, double weight) {
        learn_all<n, false>(q, y, weight);
    }
    template <std::size_t n>
    TRUECAST_APART TRUECAST_FOUR_AT_A_TIME void learn_fours(const Numbers& q, std::size_t y,
                                                            double weight) {
        learn_all<n, true>(q, y, weight);
    }

    // Sums are chains of numbers that wait for each other: those of all classes first, so that
    // they wait together.
    template <std::size_t n, bool fours>
    TRUECAST_INLINE void learn_all(const Numbers& q, std::size_t y, double weight) {
        for (std::size_t k = 0; k < q.size(); ++k) sum_row<n, fours>(k, weight);
        for (std::size_t k = 0; k < q.size(); ++k)
            learn_row<n, fours>(k, weight * ((k == y ? 1.0 : 0.0) - q[k]));
    }

    // The columns of a row in blocks, each of numbers that are computed with together. The last
    // block may begin before the one before it ends: both find the same where they overlap.
    template <std::size_t n, bool fours>
    struct Blocks {
#ifdef __GNUC__
        struct Two {
            typedef double Block __attribute__((vector_size(16)));
        };
        struct Four {
            typedef double Block __attribute__((vector_size(32)));
        };
        using Block = typename std::conditional_t<fours && n >= 4, Four, Two>::Block;
#else
        using Block = double;
#endif
        static constexpr std::size_t wide = sizeof(Block) / sizeof(double);
        static constexpr std::size_t count = (n + wide - 1) / wide;
        static constexpr std::size_t at(std::size_t b) { return std::min(b * wide, n - wide); }
        // `clip` from -most to most.
        static TRUECAST_INLINE void clip_each(Block& value) {
            const Block low = Block{} - most, high = Block{} + most;
            value = value > low ? value : low;
            value = value < high ? value : high;
        }
        static TRUECAST_INLINE void read(Block& to, const double* row, std::size_t b) {
            std::memcpy(&to, row + at(b), sizeof to);
        }
        static TRUECAST_INLINE void write(const Block& from, double* row, std::size_t b) {
            std::memcpy(row + at(b), &from, sizeof from);
        }
    };

    template <std::size_t n, bool fours>
    TRUECAST_INLINE void sum_row(std::size_t k, double weight) {
        const double* const __restrict r = inverse.data() + k * n * n;
        const double* const __restrict z = input.data();
        double* const __restrict s = steps.data() + k * n;
        if (keep < 1.0) {
            double trace = 0.0;
            for (std::size_t i = 0; i < n; ++i) trace += r[i * n + i];
            const double kept = 1.0 - weight * (1.0 - keep);
            growth[k] = trace <= kept * static_cast<double>(n) / pull ? 1.0 / kept : 1.0;
        }
        using All = Blocks<n, fours>;
        typename All::Block sums[All::count] = {}, old;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t b = 0; b < All::count; ++b) {
                All::read(old, r + i * n, b);
                sums[b] += old * z[i];
            }
        double products[n], all = 0.0;
        for (std::size_t b = 0; b < All::count; ++b) {
            All::write(sums[b], s, b);
            All::read(old, z, b);
            All::write(old * sums[b], products, b);
        }
        for (const double product : products) all += product;
        along[k] = all;
    }

    template <std::size_t n, bool fours>
    TRUECAST_INLINE void learn_row(std::size_t k, double error) {
        if (!(along[k] > 0.0)) return restart(k);  // rounding has taken its sign
        double* const __restrict r = inverse.data() + k * n * n;
        const double* const __restrict s = steps.data() + k * n;
        const double grown = growth[k], bend = std::fabs(error) / 2.0 + tiny;
        const double d = 1.0 + grown * bend * along[k], part = grown * grown * bend / d;
        using All = Blocks<n, fours>;
        typename All::Block sums[All::count], old;
        for (std::size_t b = 0; b < All::count; ++b) All::read(sums[b], s, b);
        for (std::size_t i = 0; i < n; ++i) {
            const double by = part * s[i];
            typename All::Block made[All::count];
            for (std::size_t b = 0; b < All::count; ++b) {
                All::read(old, r + i * n, b);
                made[b] = grown * old - by * sums[b];
            }
            for (std::size_t b = 0; b < All::count; ++b) All::write(made[b], r + i * n, b);
        }
        double* const __restrict w = rows.data() + k * n;
        const double rate = error * grown / d;
        typename All::Block moved[All::count];
        for (std::size_t b = 0; b < All::count; ++b) {
            All::read(old, w, b);
            moved[b] = old + rate * sums[b];
            All::clip_each(moved[b]);
        }
        for (std::size_t b = 0; b < All::count; ++b) All::write(moved[b], w, b);
    }
};

}  // namespace truecast::hints

// Temperature, vector and matrix scaling of log probabilities, learned online: three members of the
// hints for K classes (class_hints.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "exponential.hpp"
#include "hints.hpp"
#include "vectors.hpp"

namespace truecast::hints {

using Numbers = std::vector<double>;

// A block is of several classes: how many blocks hold them all.
constexpr std::size_t blocks_for(std::size_t classes) {
    return (classes + per_block - 1) / per_block;
}

TRUECAST_INLINE double sum_of(const Block& all) {
    double each[per_block];
    write(all, each);
    double total = 0.0;
    for (const double one : each) total += one;
    return total;
}

TRUECAST_INLINE void size_of(Block& number) { number = number < Block{} ? -number : number; }

// `clip` from -most to most.
TRUECAST_INLINE void clip_each(Block& value, double most) {
    const Block low = Block{} - most, high = Block{} + most;
    value = value > low ? value : low;
    value = value < high ? value : high;
}

// Numbers of all classes, some of each, in whole blocks: what is beyond the classes only fills up
// the last.
class Blocks {
    struct alignas(sizeof(Block)) Aligned {
        double each[per_block] = {};
    };
    std::vector<Aligned> all;

  public:
    explicit Blocks(std::size_t classes, std::size_t of_each = 1)
        : all(blocks_for(classes) * of_each) {}
    Blocks(std::size_t classes, std::size_t of_each, double value) : Blocks(classes, of_each) {
        std::fill(data(), data() + all.size() * per_block, value);
    }

    double* data() { return reinterpret_cast<double*>(all.data()); }
    const double* data() const { return reinterpret_cast<const double*>(all.data()); }
};

// exp(z) of some rows, as shares of each: `width` numbers of each row lie before the next. `real`
// is 1 for each class, and 0 beyond them. All rows take a step before the next one, as exponentials
// are long chains of numbers that wait for each other: those of several rows wait together.
TRUECAST_INLINE void softmax(double* z, std::size_t rows, std::size_t width, const double* real,
                             std::size_t classes) {
    Block each, part;
    double* const end = z + rows * width;
    for (double* row = z; row < end; row += width) {
        double top = row[0];
        for (std::size_t k = 1; k < classes; ++k) top = std::max(top, row[k]);
        for (std::size_t k = 0; k < classes; k += per_block) {
            read(each, row + k);
            read(part, real + k);
            write(part * (top - each), row + k);
        }
    }
    for (double* row = z; row < end; row += width)
        for (std::size_t k = 0; k < classes; k += per_block) {
            read(each, row + k);
            read(part, real + k);
            exp_of_minus(each);
            write(part * each, row + k);
        }
    for (double* row = z; row < end; row += width) {
        Block total = Block{};
        for (std::size_t k = 0; k < classes; k += per_block) {
            read(each, row + k);
            total += each;
        }
        const double all = sum_of(total);
        for (std::size_t k = 0; k < classes; k += per_block) {
            read(each, row + k);
            write(each / all, row + k);
        }
    }
}

// softmax(a x): Newton steps on the log loss of all rounds, pulled towards a = 1. One half of the
// curvature is what it would be if q was right, the other goes by the errors, as in Platt. The
// first alone is slow where a model is not sure enough, as forests are; the second where it is too
// sure.
struct Temperature {
    static constexpr double pull = 2.0;
    double slope = 1.0, curvature = pull;

    // What is the softmax of; likewise below.
    TRUECAST_INLINE void say(const double* x, std::size_t classes, double* z) const {
        Block own;
        for (std::size_t k = 0; k < classes; k += per_block) {
            read(own, x + k);
            write(slope * own, z + k);
        }
    }
    // `miss`: outcome less what was said, of each class.
    TRUECAST_INLINE void learn(const double* x, const double* q, const double* miss,
                               std::size_t classes, std::size_t y, double weight) {
        Block sum = Block{}, own, said, error;
        for (std::size_t k = 0; k < classes; k += per_block) {
            read(own, x + k);
            read(said, q + k);
            sum += said * own;
        }
        const double mean = sum_of(sum);
        sum = Block{};
        for (std::size_t k = 0; k < classes; k += per_block) {
            read(own, x + k);
            read(said, q + k);
            read(error, miss + k);
            size_of(error);
            own -= mean;
            sum += (0.5 * said + 0.25 * error) * (own * own);
        }
        curvature += weight * sum_of(sum);
        slope = clip(slope + weight * (x[y] - mean) / curvature, -4.0, 16.0);
    }
    Entries entries() {
        return {{"slope", slope, -4.0, 16.0, "of the temperature: one over it"},
                {"curvature", curvature, pull, huge, "of its objective"}};
    }
};

// softmax(a x_k + (a_k - 1) x_k + b_k), for the slope a of the temperature: for each class the
// Newton steps of Platt. They learn only what one slope for all classes leaves to be learned.
class VectorScaling {
    static constexpr double keep = 0.999, pull_slope = 8.0, pull_offset = 2.0;
    static constexpr double most = 64.0;
    std::size_t classes;
    Blocks slopes, offsets, a, b, c;  // and of each class the curvature (a, b; b, c)

  public:
    explicit VectorScaling(std::size_t count)
        : classes(count),
          slopes(count, 1, 1.0),
          offsets(count),
          a(count, 1, pull_offset),
          b(count),
          c(count, 1, pull_slope) {}

    // `more`: the temperature's slope, less 1.
    TRUECAST_INLINE void say(const double* x, double more, double* z) const {
        const double *const s = slopes.data(), *const o = offsets.data();
        const std::size_t count = classes;
        Block own, slope, offset;
        for (std::size_t k = 0; k < count; k += per_block) {
            read(own, x + k);
            read(slope, s + k);
            read(offset, o + k);
            write((more + slope) * own + offset, z + k);
        }
    }
    TRUECAST_INLINE void learn(const double* x, const double* miss, double weight) {
        const double lost = weight * (1.0 - keep), kept = 1.0 - lost;
        Block own, slope, offset, aa, bb, cc, error;
        for (std::size_t k = 0; k < classes; k += per_block) {
            read(own, x + k);
            read(error, miss + k);
            read(slope, slopes.data() + k);
            read(offset, offsets.data() + k);
            read(aa, a.data() + k);
            read(bb, b.data() + k);
            read(cc, c.data() + k);
            error = weight * error;
            Block bend = 0.5 * error;
            size_of(bend);
            aa = kept * aa + lost * pull_offset + bend;
            bb = kept * bb + bend * own;
            cc = kept * cc + lost * pull_slope + bend * own * own;
            const Block u = error - lost * pull_offset * offset;
            const Block v = error * own - lost * pull_slope * (slope - 1.0);
            const Block determinant = aa * cc - bb * bb;
            offset += (cc * u - bb * v) / determinant;
            slope += (aa * v - bb * u) / determinant;
            clip_each(offset, most);
            clip_each(slope, most);
            write(slope, slopes.data() + k);
            write(offset, offsets.data() + k);
            write(aa, a.data() + k);
            write(bb, b.data() + k);
            write(cc, c.data() + k);
        }
    }
    Entries entries() {
        const auto of = [this](Blocks& all) { return Row<double>{all.data(), classes}; };
        return {{"slopes", of(slopes), -most, most,
                 "of vector scaling, one a class, without what the temperature has above 1"},
                {"offsets", of(offsets), -most, most, "of vector scaling"},
                {"a", of(a), pull_offset / 2.0, huge, "curvature of its offsets"},
                {"b", of(b), -huge, huge, "mixed curvature"},
                {"c", of(c), pull_slope / 2.0, huge, "curvature of its slopes"}};
    }
    bool settle() const {
        for (std::size_t k = 0; k < classes; ++k) {
            const double aa = a.data()[k], bb = b.data()[k], cc = c.data()[k];
            if (!(aa * cc - bb * bb >= pull_slope * pull_offset / 4.0)) return false;
        }
        return true;
    }
};

// softmax((a - 1) x + W (x, 1)), for the slope a of the temperature; W as Dirichlet calibration has
// it: recursive least squares a class, from the identity, with the curvature |error| / 2 as in
// Platt. What it forgets must not wind up where outcomes teach nothing: the inverse curvature grows
// no further than it was at first.
//
// A state has the numbers of one class after those of another. To compute with, they lie side by
// side, as those of a block of classes are computed with together: `at_work` says which of both
// holds now. An inverse is symmetric: at work, only what is not below its diagonal counts.
class MatrixScaling {
  public:
    static constexpr std::size_t most_classes = 16;  // a round costs their cube

    MatrixScaling(std::size_t count, double keep_)
        : keep(keep_),
          classes(count),
          wide(classes + 1),
          rows(classes * wide),
          inverse(classes * wide * wide),
          weights(classes, wide),
          curved(classes, wide * wide),
          steps(1, wide) {
        for (std::size_t k = 0; k < classes; ++k) {
            rows[k * wide + k] = 1.0;
            for (std::size_t i = 0; i < wide; ++i) inverse[(k * wide + i) * wide + i] = 1.0 / pull;
        }
    }

    // Call it before `say`.
    void prepare() {
        if (!at_work) carry(true);
    }

    // `more`: the temperature's slope, less 1.
    TRUECAST_INLINE void say(const double* x, double more, double* z) const {
        const double* w = weights.data();
        const std::size_t count = classes;
        Block sum, weight;
        for (std::size_t k = 0; k < count; k += per_block, w += (count + 1) * per_block) {
            read(sum, x + k);
            read(weight, w + count * per_block);
            sum = weight + more * sum;
            for (std::size_t j = 0; j < count; ++j) {
                read(weight, w + j * per_block);
                sum += weight * x[j];
            }
            write(sum, z + k);
        }
    }
    // `x` has a 1 after the classes.
    void learn(const double* x, const double* miss, double weight) {
        prepare();
        learn_wide<least_wide>(x, miss, weight);
    }

    Entries entries(const char* rows_name, const char* inverse_name) {
        if (at_work) carry(false);
        return {{rows_name, row(rows), -most, most, "of matrix scaling: weights, a row a class"},
                {inverse_name, row(inverse), -1e3, 1e3, "of each class: its inverse curvature"}};
    }

  private:
    static constexpr double pull = 5.0, most = 64.0;
    static constexpr double tiny = 1e-12;  // so that no curvature is 0
    double keep;
    std::size_t classes, wide;  // classes, and one more
    Numbers rows, inverse;      // weights, a row a class; and of each class its inverse curvature
    Blocks weights, curved;     // the same, at work
    bool at_work = false;
    Blocks steps;  // of a block of classes: inverse curvature times the input

    // Where the i-th of `count` numbers of class k is, at work.
    static std::size_t place(std::size_t k, std::size_t count, std::size_t i) {
        const std::size_t lane = k % per_block;
        return (k - lane) * count + i * per_block + lane;
    }

    // From the one to the other.
    void carry(bool to_work) {
        const auto each = [&](Numbers& kept, Blocks& working, std::size_t count) {
            for (std::size_t k = 0; k < classes; ++k)
                for (std::size_t i = 0; i < count; ++i) {
                    double& here = kept[k * count + i];
                    double& there = working.data()[place(k, count, i)];
                    (to_work ? there : here) = to_work ? here : there;
                }
        };
        if (!to_work) mirror();
        each(rows, weights, wide);
        each(inverse, curved, wide * wide);
        at_work = to_work;
    }

    // Below the diagonal, what is above it.
    void mirror() {
        for (std::size_t k = 0; k < classes; ++k)
            for (std::size_t i = 0; i < wide; ++i)
                for (std::size_t j = 0; j < i; ++j)
                    curved.data()[place(k, wide * wide, i * wide + j)] =
                        curved.data()[place(k, wide * wide, j * wide + i)];
    }

    void restart(std::size_t k) {
        for (std::size_t i = 0; i < wide; ++i)
            for (std::size_t j = 0; j < wide; ++j)
                curved.data()[place(k, wide * wide, i * wide + j)] = i == j ? 1.0 / pull : 0.0;
    }

    // The width is a constant, so that sums stay in registers and short loops are unrolled.
    static constexpr std::size_t least_wide = 3, most_wide = most_classes + 1;
    static constexpr std::size_t per_column = 4;  // columns that are summed together
    template <std::size_t n>
    void learn_wide(const double* x, const double* miss, double weight) {
        if constexpr (n <= most_wide) {
            if (n != wide) return learn_wide<n + 1>(x, miss, weight);
            TRUECAST_HAS_FOUR ? learn_fours<n>(x, miss, weight) : learn_twos<n>(x, miss, weight);
        }
    }
    template <std::size_t n>
    TRUECAST_APART TRUECAST_FOUR_AT_A_TIME void learn_fours(const double* x, const double* miss,
                                                            double weight) {
        for (std::size_t k = 0; k + 1 < n; k += per_block) learn_block<n>(k, x, miss, weight);
    }
    template <std::size_t n>
    TRUECAST_APART void learn_twos(const double* x, const double* miss, double weight) {
        for (std::size_t k = 0; k + 1 < n; k += per_block) learn_block<n>(k, x, miss, weight);
    }

    // The classes of a block, from `k` on.
    template <std::size_t n>
    TRUECAST_INLINE void learn_block(std::size_t k, const double* x, const double* miss,
                                     double weight) {
        double* const r = curved.data() + k * n * n;
        double* const s = steps.data();
        Block along = Block{}, grown = Block{} + 1.0, error, step;
        if (keep < 1.0) forget<n>(r, weight, grown);
        sum_columns<n>(r, x, s);
        for (std::size_t i = 0; i < n; ++i) {
            read(step, s + i * per_block);
            along += x[i] * step;
        }
        read(error, miss + k);
        error = weight * error;
        Block bend = 0.5 * error;
        size_of(bend);
        bend += tiny;
        const Block d = 1.0 + grown * bend * along;
        Block part = grown * grown * bend / d, rate = error * grown / d;
        const Block none = Block{};
        grown = along > none ? grown : none + 1.0;
        part = along > none ? part : none;
        rate = along > none ? rate : none;
        keep < 1.0 ? learn_columns<n, true>(r, s, grown, part)
                   : learn_columns<n, false>(r, s, grown, part);
        step_weights<n>(weights.data() + k * n, s, rate);
        double sums[per_block];
        write(along, sums);
        for (std::size_t lane = 0; lane < per_block && k + lane < classes; ++lane)
            if (!(sums[lane] > 0.0)) restart(k + lane);  // rounding has taken its sign
    }

    // By what the inverse grows since it forgets.
    template <std::size_t n>
    TRUECAST_INLINE void forget(const double* r, double weight, Block& grown) const {
        Block trace = Block{}, old;
        for (std::size_t i = 0; i < n; ++i) {
            read(old, r + i * (n + 1) * per_block);
            trace += old;
        }
        const double kept = 1.0 - weight * (1.0 - keep);
        const Block limit = Block{} + kept * static_cast<double>(n) / pull;
        grown = trace <= limit ? Block{} + 1.0 / kept : Block{} + 1.0;
    }

    // Sums are chains of numbers that wait for each other: those of several columns wait together.
    // First what is above these columns' own rows, then their rows, then what is below: there, the
    // half that counts lies the other way.
    template <std::size_t n, std::size_t j = 0>
    static TRUECAST_INLINE void sum_columns(const double* r, const double* x, double* s) {
        if constexpr (j < n) {
            constexpr std::size_t columns = std::min(per_column, n - j), end = j + columns;
            Block sums[columns] = {}, old;
            for (std::size_t i = 0; i < j; ++i) TRUECAST_UNROLL
            for (std::size_t c = j; c < end; ++c) {
                read(old, r + (i * n + c) * per_block);
                sums[c - j] += old * x[i];
            }
            TRUECAST_UNROLL
            for (std::size_t i = j; i < end; ++i) TRUECAST_UNROLL
            for (std::size_t c = j; c < end; ++c) {
                read(old, r + (i < c ? i * n + c : c * n + i) * per_block);
                sums[c - j] += old * x[i];
            }
            for (std::size_t i = end; i < n; ++i) TRUECAST_UNROLL
            for (std::size_t c = j; c < end; ++c) {
                read(old, r + (c * n + i) * per_block);
                sums[c - j] += old * x[i];
            }
            for (std::size_t c = j; c < end; ++c) write(sums[c - j], s + c * per_block);
            sum_columns<n, end>(r, x, s);
        }
    }

    // `grows`: the inverse may do so. If it does not, it need not be multiplied.
    template <std::size_t n, bool grows, std::size_t j = 0>
    static TRUECAST_INLINE void learn_columns(double* r, const double* s, const Block& grown,
                                              const Block& part) {
        if constexpr (j < n) {
            constexpr std::size_t columns = std::min(per_column, n - j), end = j + columns;
            Block own[columns], old, by;
            for (std::size_t c = j; c < end; ++c) read(own[c - j], s + c * per_block);
            for (std::size_t i = 0; i < j; ++i) {
                read(by, s + i * per_block);
                by = part * by;
                TRUECAST_UNROLL
                for (std::size_t c = j; c < end; ++c) {
                    double* const at = r + (i * n + c) * per_block;
                    read(old, at);
                    write((grows ? grown * old : old) - by * own[c - j], at);
                }
            }
            TRUECAST_UNROLL
            for (std::size_t i = j; i < end; ++i) {
                by = part * own[i - j];
                TRUECAST_UNROLL
                for (std::size_t c = j; c < end; ++c) {
                    if (c < i) continue;
                    double* const at = r + (i * n + c) * per_block;
                    read(old, at);
                    write((grows ? grown * old : old) - by * own[c - j], at);
                }
            }
            learn_columns<n, grows, end>(r, s, grown, part);
        }
    }

    template <std::size_t n>
    static TRUECAST_INLINE void step_weights(double* w, const double* s, const Block& rate) {
        Block old, step;
        for (std::size_t i = 0; i < n; ++i) {
            read(step, s + i * per_block);
            read(old, w + i * per_block);
            old += rate * step;
            clip_each(old, most);
            write(old, w + i * per_block);
        }
    }
};

}  // namespace truecast::hints

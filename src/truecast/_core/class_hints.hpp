// Hints for K classes: a better vector of probabilities from a model's, learned from outcomes.
//
// A mixture of members that are weighted by their Brier score: what the model says; temperature,
// vector and matrix scaling of its log probabilities, learned online; and a hint for each class by
// itself, normalised. Nobody has to be told which of them suits the model. They prove nothing: the
// guard does. All arithmetic is spelled out in truecast/reference/class_hints.py, in the same
// order.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "hints.hpp"

namespace truecast::hints {

using Numbers = std::vector<double>;

// What a model said of all classes.
struct ClassRow {
    Numbers given;              // probabilities that sum to 1, or any logits
    Numbers p, x;               // probabilities, and their logarithms, bent
    std::vector<Score> scores;  // of each class against all others

    // A logarithm of a probability, drawn together below -8: naive Bayes says -300 where it means
    // -3.
    static double bent(double log_p) {
        return log_p < -bend_from ? -bend_from - std::log1p(-bend_from - log_p) : log_p;
    }

    void read(const double* from, std::size_t classes, bool logit) {
        given.assign(from, from + classes);
        p.resize(classes);
        x.resize(classes);
        scores.clear();
        logit ? read_logits() : read_probabilities();
    }

  private:
    static constexpr double bend_from = 8.0;

    // Numbers of an array that was checked: another thread can have written to it since.
    void read_probabilities() {
        double total = 0.0;
        for (double& each : given) {
            each = each > 0.0 ? (each < 1.0 ? each : 1.0) : 0.0;
            total += each;
        }
        for (std::size_t k = 0; k < p.size(); ++k) {
            p[k] =
                total > 0.0 ? std::min(given[k] / total, 1.0) : 1.0 / static_cast<double>(p.size());
            x[k] = bent(std::log(std::max(p[k], 1e-300)));
            scores.emplace_back(p[k]);
        }
    }

    void read_logits() {
        for (double& each : given) each = std::isfinite(each) ? clip(each, -1e100, 1e100) : 0.0;
        const double top = *std::max_element(given.begin(), given.end());
        double total = 0.0;
        for (std::size_t k = 0; k < p.size(); ++k) total += p[k] = std::exp(given[k] - top);
        const double log_total = std::log(total);
        for (std::size_t k = 0; k < p.size(); ++k) {
            const double rest = total - p[k];
            p[k] /= total;
            x[k] = bent(given[k] - top - log_total);
            scores.push_back(
                Score::of_logit(rest > 0.0 ? given[k] - top - std::log(rest) : against_rest(k)));
        }
    }

    // The log-odds of a class that has all the probability, as far as floats can tell.
    double against_rest(std::size_t k) const {
        double next = -1e300;
        for (std::size_t j = 0; j < given.size(); ++j)
            if (j != k) next = std::max(next, given[j]);
        double total = 0.0;
        for (std::size_t j = 0; j < given.size(); ++j)
            if (j != k) total += std::exp(given[j] - next);
        return given[k] - next - std::log(total);
    }
};

inline void softmax(Numbers& z) {
    const double top = *std::max_element(z.begin(), z.end());
    double total = 0.0;
    for (double& each : z) total += each = std::exp(each - top);
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

// softmax(a_k x_k + b_k): for each class the Newton steps of Platt.
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

    void say(const Numbers& x, Numbers& q) const {
        q.resize(x.size());
        for (std::size_t k = 0; k < x.size(); ++k) q[k] = slopes[k] * x[k] + offsets[k];
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
        return {{"slopes", row(slopes), -most, most, "of vector scaling, one a class"},
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

// softmax(W (x, 1)), as Dirichlet calibration has it: recursive least squares a class, from the
// identity, with the curvature |error| / 2 as in Platt. What it forgets must not wind up where
// outcomes teach nothing: the inverse curvature grows no further than it was at first.
struct MatrixScaling {
    static constexpr double pull = 5.0, most = 64.0;
    static constexpr double tiny = 1e-12;  // so that no curvature is 0
    double keep;
    std::size_t wide;       // classes and one
    Numbers rows, inverse;  // weights, a row a class; and of each class its inverse curvature

    MatrixScaling(std::size_t classes, double keep_)
        : keep(keep_),
          wide(classes + 1),
          rows(classes * wide),
          inverse(classes * wide * wide),
          step(wide),
          input(wide) {
        for (std::size_t k = 0; k < classes; ++k) {
            rows[k * wide + k] = 1.0;
            restart(k);
        }
    }

    void say(const Numbers& x, Numbers& q) const {
        q.resize(x.size());
        for (std::size_t k = 0; k < x.size(); ++k) {
            const double* w = rows.data() + k * wide;
            double z = w[x.size()];
            for (std::size_t j = 0; j < x.size(); ++j) z += w[j] * x[j];
            q[k] = z;
        }
        softmax(q);
    }
    void learn(const Numbers& x, const Numbers& q, std::size_t y, double weight) {
        std::copy(x.begin(), x.end(), input.begin());
        input.back() = 1.0;
        for (std::size_t k = 0; k < x.size(); ++k)
            learn_row(k, weight * ((k == y ? 1.0 : 0.0) - q[k]), weight);
    }
    Entries entries(const char* rows_name, const char* inverse_name) {
        return {{rows_name, row(rows), -most, most, "of matrix scaling: weights, a row a class"},
                {inverse_name, row(inverse), -1e3, 1e3, "of each class: its inverse curvature"}};
    }

  private:
    Numbers step, input;

    void restart(std::size_t k) {
        double* const r = inverse.data() + k * wide * wide;
        for (std::size_t i = 0; i < wide; ++i)
            for (std::size_t j = 0; j < wide; ++j) r[i * wide + j] = i == j ? 1.0 / pull : 0.0;
    }

    // The products of some columns with z, in registers.
    template <std::size_t columns>
    static void product(const double* r, const double* z, std::size_t n, double* s) {
        std::array<double, columns> sums{};
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < columns; ++j) sums[j] += r[i * n + j] * z[i];
        std::copy(sums.begin(), sums.end(), s);
    }
    static constexpr std::size_t block = 4;

    // By columns, so that products of one column are independent of each other.
    void learn_row(std::size_t k, double error, double weight) {
        double* const __restrict r = inverse.data() + k * wide * wide;
        double* const __restrict s = step.data();
        const double* const __restrict z = input.data();
        const std::size_t n = wide;
        double grown = 1.0;
        if (keep < 1.0) {
            double trace = 0.0;
            for (std::size_t i = 0; i < n; ++i) trace += r[i * n + i];
            const double kept = 1.0 - weight * (1.0 - keep);
            if (trace <= kept * static_cast<double>(n) / pull) grown = 1.0 / kept;
        }
        std::size_t from = 0;
        for (; from + block <= n; from += block) product<block>(r + from, z, n, s + from);
        for (; from < n; ++from) product<1>(r + from, z, n, s + from);
        double along = 0.0;
        for (std::size_t i = 0; i < n; ++i) along += s[i] * z[i];
        if (!(along > 0.0)) return restart(k);  // rounding has taken its sign
        const double bend = std::fabs(error) / 2.0 + tiny;
        const double d = 1.0 + grown * bend * along, part = grown * grown * bend / d;
        for (std::size_t i = 0; i < n; ++i) {
            const double by = part * s[i];
            for (std::size_t j = 0; j < n; ++j) r[i * n + j] = grown * r[i * n + j] - by * s[j];
        }
        double* const w = rows.data() + k * wide;
        const double rate = error * grown / d;
        for (std::size_t j = 0; j < n; ++j) w[j] = clip(w[j] + rate * s[j], -most, most);
    }
};

// A mixture of all these, or if `across` is not set, only a hint for each class, normalised.
class ClassMix {
  public:
    static constexpr std::size_t most_for_matrix = 16;  // classes: a round costs their cube

    ClassMix(const Hint& each, std::size_t classes, bool across_)
        : across(across_), count(classes), vector(classes) {
        for (std::size_t k = 0; k < classes; ++k) own.push_back(each.clone());
        if (across && classes <= most_for_matrix) {
            matrices.emplace_back(classes, 1.0);
            matrices.emplace_back(classes, 0.998);
        }
        said.resize(across ? 4 + matrices.size() : 1);
        const double shares =
            static_cast<double>(said.size()) + (across ? of_temperature - 1.0 : 0.0);
        weights.assign(said.size(), 1.0 / shares);
        if (across) weights[1] = of_temperature / shares;
        mixed.resize(classes);
    }
    ClassMix(const ClassMix& other)
        : across(other.across),
          count(other.count),
          rounds(other.rounds),
          lag(other.lag),
          temperature(other.temperature),
          vector(other.vector),
          matrices(other.matrices),
          weights(other.weights),
          said(other.said),
          mixed(other.mixed) {
        for (const auto& hint : other.own) own.push_back(hint->clone());
    }
    ClassMix(ClassMix&&) = default;
    ClassMix& operator=(ClassMix&&) = default;

    std::size_t classes() const { return count; }

    // What is said of a row, which sums to 1. Changes nothing that later calls could tell.
    const Numbers& predict(const ClassRow& from) {
        if (fresh && last == from.given) return mixed;
        say_each(from, said.back());
        if (across) {
            said[0] = from.p;
            temperature.say(from.x, said[1]);
            vector.say(from.x, said[2]);
            for (std::size_t i = 0; i < matrices.size(); ++i) matrices[i].say(from.x, said[3 + i]);
        }
        std::fill(mixed.begin(), mixed.end(), 0.0);
        for (std::size_t i = 0; i < said.size(); ++i)
            for (std::size_t k = 0; k < count; ++k) mixed[k] += weights[i] * said[i][k];
        normalise(mixed);
        last = from.given;
        fresh = true;
        return mixed;
    }

    // Numbers to remember a forecast by until its outcome comes, if that is late: what the members
    // said, the notes of the hints of each class, and after how many rounds.
    std::size_t notes() const { return said.size() * count + count * own[0]->notes() + 1; }
    const Numbers& issue(const ClassRow& from, double* kept) {
        predict(from);
        for (const Numbers& q : said) kept = std::copy(q.begin(), q.end(), kept);
        for (std::size_t k = 0; k < count; ++k, kept += own[0]->notes())
            own[k]->issue(&from.scores[k], kept);
        *kept = rounds;
        return mixed;
    }

    void learn(const ClassRow& from, std::size_t y, const double* kept = nullptr,
               double weight = 1.0) {
        predict(from);
        const double* const each = kept == nullptr ? nullptr : kept + said.size() * count;
        const double since = each == nullptr ? rounds : each[count * own[0]->notes()];
        lag += weight * (std::max(rounds - since, 0.0) - lag) / 64.0;
        const double pace = weight / (1.0 + lag / patience);
        reweigh(y, kept, pace);
        rounds += weight;
        if (across) {
            temperature.learn(from.x, said[1], y, weight);
            vector.learn(from.x, said[2], y, weight);
            for (std::size_t i = 0; i < matrices.size(); ++i)
                matrices[i].learn(from.x, said[3 + i], y, pace);
        }
        for (std::size_t k = 0; k < count; ++k)
            own[k]->learn(&from.scores[k], k == y,
                          each == nullptr ? nullptr : each + k * own[0]->notes(), weight);
        fresh = false;
    }

    Entries entries() {
        Entries all{{"rounds", rounds, 0.0, most_rounds, "outcomes learned, by weight"},
                    {"lag", lag, 0.0, most_rounds,
                     "how much comes between a forecast and its outcome, lately"},
                    {"weights", row(weights), 0.0, 1.0, "of the members"}};
        if (!across) return all;
        all = joined(joined(std::move(all), temperature.entries()), vector.entries());
        if (!matrices.empty()) {
            all = joined(std::move(all), matrices[0].entries("matrix", "inverse"));
            all = joined(std::move(all), matrices[1].entries("fading_matrix", "fading_inverse"));
        }
        return all;
    }
    bool settle() {
        fresh = false;
        double total = 0.0;
        for (const double w : weights) total += w;
        return std::fabs(total - 1.0) < 1e-6 && lag <= rounds && vector.settle();
    }
    const std::vector<std::unique_ptr<Hint>>& each() const { return own; }

  private:
    // Shares of the weight that temperature scaling starts with, where others have one: with few
    // rounds, it has the least to learn.
    static constexpr double of_temperature = 3.0;
    static constexpr double patience = 25.0;  // outcomes this late teach half as much
    static constexpr double share = 0.001;    // of all weight, handed out anew in a round

    void say_each(const ClassRow& from, Numbers& q) {
        q.resize(count);
        for (std::size_t k = 0; k < count; ++k) q[k] = own[k]->predict(&from.scores[k]);
        normalise(q);
    }

    static void normalise(Numbers& q) {
        double total = 0.0;
        for (const double each : q) total += each;
        for (double& each : q)
            each = total > 0.0 ? std::min(each / total, 1.0) : 1.0 / static_cast<double>(q.size());
    }

    // Each by exp(-its Brier score), of what it said when the forecast was made.
    void reweigh(std::size_t y, const double* kept, double pace) {
        double total = 0.0;
        for (std::size_t i = 0; i < said.size(); ++i) {
            const double* const q = kept == nullptr ? said[i].data() : kept + i * count;
            double loss = 0.0;
            for (std::size_t k = 0; k < count; ++k) {
                const double miss = (k == y ? 1.0 : 0.0) - q[k];
                loss += miss * miss;
            }
            total += weights[i] *= std::exp(-pace * loss);
        }
        const double part = share * pace, scale = (1.0 - part) / total;
        const double anew = part / static_cast<double>(said.size());
        for (double& w : weights) w = std::min(scale * w + anew, 1.0);
    }

    bool across;
    std::size_t count;
    double rounds = 0.0, lag = 0.0;
    Temperature temperature;
    VectorScaling vector;
    std::vector<MatrixScaling> matrices;
    std::vector<std::unique_ptr<Hint>> own;  // for each class
    Numbers weights;
    std::vector<Numbers> said;  // by each member; the last is that of `own`
    Numbers mixed, last;
    bool fresh = false;
};

}  // namespace truecast::hints

// Hints for K classes: a better vector of probabilities from a model's, learned from outcomes.
//
// A mixture of members that are weighted by their Brier score: what the model says; temperature,
// vector and matrix scaling of its log probabilities, learned online; and a hint for each class by
// itself, normalised. Nobody has to be told which of them suits the model. They prove nothing: the
// guard does. All arithmetic is spelled out in truecast/reference/class_hints.py; sums over classes
// are in another order here, and exponentials differ in their last bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hints.hpp"
#include "scaling.hpp"

namespace truecast::hints {

// What a model said of all classes.
struct ClassRow {
    Numbers given;  // probabilities that sum to 1, or any logits
    // Probabilities, and their logarithms, bent, with a 1 after them; zeros fill up a block.
    Numbers p, x;
    std::vector<Score> scores;  // of each class against all others

    // A logarithm of a probability, drawn together below -8: naive Bayes says -300 where it means
    // -3.
    static double bent(double log_p) {
        return log_p < -bend_from ? -bend_from - std::log1p(-bend_from - log_p) : log_p;
    }

    void read(const double* from, std::size_t classes, bool logit) {
        given.assign(from, from + classes);
        p.assign(width(classes), 0.0);
        x.assign(width(classes), 0.0);
        x[classes] = 1.0;
        scores.clear();
        logit ? read_logits() : read_probabilities();
    }

    // Of a row that has room for one more.
    static std::size_t width(std::size_t classes) { return blocks_for(classes + 1) * per_block; }

  private:
    static constexpr double bend_from = 8.0;

    // Numbers of an array that was checked: another thread can have written to it since.
    void read_probabilities() {
        const double even = 1.0 / static_cast<double>(given.size());
        double total = 0.0;
        for (double& each : given) {
            each = each > 0.0 ? (each < 1.0 ? each : 1.0) : 0.0;
            total += each;
        }
        for (std::size_t k = 0; k < given.size(); ++k) {
            p[k] = total > 0.0 ? std::min(given[k] / total, 1.0) : even;
            x[k] = bent(std::log(std::max(p[k], 1e-300)));
            scores.emplace_back(p[k]);
        }
    }

    void read_logits() {
        for (double& each : given) each = std::isfinite(each) ? clip(each, -1e100, 1e100) : 0.0;
        const double top = *std::max_element(given.begin(), given.end());
        double total = 0.0;
        for (std::size_t k = 0; k < given.size(); ++k) total += p[k] = std::exp(given[k] - top);
        const double log_total = std::log(total);
        for (std::size_t k = 0; k < given.size(); ++k) {
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

// A mixture of all these, or if `across` is not set, only a hint for each class, normalised.
class ClassMix {
  public:
    ClassMix(const Hint& each, std::size_t classes, bool across_)
        : across(across_),
          count(classes),
          wide(ClassRow::width(classes)),
          vector(classes),
          mixed(classes) {
        for (std::size_t k = 0; k < classes; ++k) own.push_back(each.clone());
        if (across && classes <= MatrixScaling::most_classes) {
            matrices.emplace_back(classes, 1.0);
            matrices.emplace_back(classes, 0.998);
        }
        weights.assign(across ? 4 + matrices.size() : 1, 1.0);
        if (across) {
            std::fill(weights.begin() + 3, weights.end(), of_matrix);
            weights[1] = of_temperature;
            weights[2] = of_vector;
            weights.back() = of_each;
        }
        double total = 0.0;
        for (const double w : weights) total += w;
        for (double& w : weights) w /= total;
        said.resize(weights.size() * wide);
        miss.resize(said.size());
        together.resize(wide);
        real.assign(wide, 0.0);
        std::fill_n(real.begin(), classes, 1.0);
        for (std::size_t k = 0; k < wide; ++k) numbers.push_back(static_cast<double>(k));
    }
    ClassMix(const ClassMix& other)
        : across(other.across),
          count(other.count),
          wide(other.wide),
          rounds(other.rounds),
          lag(other.lag),
          temperature(other.temperature),
          vector(other.vector),
          matrices(other.matrices),
          weights(other.weights),
          said(other.said),
          miss(other.miss),
          together(other.together),
          real(other.real),
          numbers(other.numbers),
          mixed(other.mixed) {
        for (const auto& hint : other.own) own.push_back(hint->clone());
    }
    ClassMix(ClassMix&&) = default;
    ClassMix& operator=(ClassMix&&) = default;

    std::size_t classes() const { return count; }

    // What is said of a row, which sums to 1. Changes nothing that later calls could tell.
    const Numbers& predict(const ClassRow& from) {
        if (fresh && last == from.given) return mixed;
        double* const each = by(members() - 1);
        for (std::size_t k = 0; k < count; ++k) each[k] = own[k]->predict(&from.scores[k]);
        mix(from);
        last = from.given;
        fresh = true;
        return mixed;
    }

    // Some rounds at once: what is said of each row, learned before the next. The hints of each
    // class need nothing of the others, so they go first, class by class: their numbers stay in the
    // cache. `to` has room for a number of each class and row.
    void play(const std::vector<ClassRow>& rows, const std::size_t* y, double* to) {
        std::vector<Score> scores;
        std::vector<std::uint8_t> is_it(rows.size());
        Numbers each(rows.size()), asked(rows.size() * wide);
        for (std::size_t k = 0; k < count; ++k) {
            scores.clear();
            for (const ClassRow& row : rows) scores.push_back(row.scores[k]);
            for (std::size_t t = 0; t < rows.size(); ++t) is_it[t] = k == y[t];
            own[k]->play(scores.data(), is_it.data(), rows.size(), each.data());
            for (std::size_t t = 0; t < rows.size(); ++t) asked[t * wide + k] = each[t];
        }
        fresh = false;
        for (std::size_t t = 0; t < rows.size(); ++t, to += count) {
            std::copy_n(&asked[t * wide], wide, by(members() - 1));
            mix(rows[t]);
            std::copy(mixed.begin(), mixed.end(), to);
            learn_across(rows[t], y[t], nullptr, rounds, 1.0);
        }
    }

    // Numbers to remember a forecast by until its outcome comes, if that is late: what the members
    // said, the notes of the hints of each class, and after how many rounds.
    std::size_t notes() const { return members() * count + count * own[0]->notes() + 1; }
    const Numbers& issue(const ClassRow& from, double* kept) {
        predict(from);
        for (std::size_t i = 0; i < members(); ++i) kept = std::copy(by(i), by(i) + count, kept);
        for (std::size_t k = 0; k < count; ++k, kept += own[0]->notes()) {
            own[k]->issue(&from.scores[k], kept);
            own[k]->shorten(kept);
        }
        *kept = rounds;
        return mixed;
    }

    void learn(const ClassRow& from, std::size_t y, const double* kept = nullptr,
               double weight = 1.0) {
        predict(from);
        const double* const each = kept == nullptr ? nullptr : kept + members() * count;
        learn_across(from, y, kept, each == nullptr ? rounds : each[count * own[0]->notes()],
                     weight);
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
    // Shares of the weight that they start with, where the model has one: temperature scaling has
    // the least to learn, and a matrix the most.
    static constexpr double of_temperature = 6.0, of_vector = 0.5, of_matrix = 0.25, of_each = 2.0;
    static constexpr double unproved = 20.0;  // after as many outcomes that is a quarter: `trust`
    static constexpr double patience = 25.0;  // outcomes this late teach half as much
    static constexpr double share = 0.001;    // of all weight, handed out anew in a round
    static constexpr std::size_t most_members = 8;

    std::size_t members() const { return weights.size(); }
    double* by(std::size_t member) { return said.data() + member * wide; }

    // What all members say of a row, those of each class already asked: together.
    void mix(const ClassRow& from) {
        for (MatrixScaling& matrix : matrices) matrix.prepare();
        TRUECAST_HAS_FOUR ? mix_fours(from) : mix_twos(from);
    }
    TRUECAST_APART TRUECAST_FOUR_AT_A_TIME void mix_fours(const ClassRow& from) { mix_all(from); }
    TRUECAST_APART void mix_twos(const ClassRow& from) { mix_all(from); }

    TRUECAST_INLINE void mix_all(const ClassRow& from) {
        const std::size_t n = members(), width = wide;
        double *const all = said.data(), *const sums = together.data();
        const double *const share_of = weights.data(), *const given = from.p.data();
        normalise(all + (n - 1) * width);
        if (across) {
            const double* const x = from.x.data();
            const double more = temperature.slope - 1.0;
            std::copy(from.p.begin(), from.p.end(), all);
            temperature.say(x, count, all + width);
            vector.say(x, more, all + 2 * width);
            for (std::size_t i = 0; i < matrices.size(); ++i)
                matrices[i].say(x, more, all + (3 + i) * width);
            softmax(all + width, n - 2, width, real.data(), count);
        }
        const double root = unproved / (unproved + rounds), part = across ? root * root : 0.0;
        for (std::size_t k = 0; k < width; k += per_block) {
            Block sum = Block{}, q;
            for (std::size_t i = 0; i < n; ++i) {
                read(q, all + i * width + k);
                sum += share_of[i] * q;
            }
            // Nobody has learned much from a few outcomes: until there are more, the model has a
            // part of its own, which does not depend on weights.
            read(q, given + k);
            sum += part * (q - sum);
            write(sum, sums + k);
        }
        normalise(sums);
        std::copy(sums, sums + count, mixed.begin());
    }

    // All but the hints of each class. `since`: after how many rounds the forecast was made.
    void learn_across(const ClassRow& from, std::size_t y, const double* kept, double since,
                      double weight) {
        lag += weight * (std::max(rounds - since, 0.0) - lag) / 64.0;
        const double pace = weight / (1.0 + lag / patience);
        TRUECAST_HAS_FOUR ? learn_fours(from, y, kept, pace, weight)
                          : learn_twos(from, y, kept, pace, weight);
        rounds += weight;
    }
    TRUECAST_APART TRUECAST_FOUR_AT_A_TIME void learn_fours(const ClassRow& from, std::size_t y,
                                                            const double* kept, double pace,
                                                            double weight) {
        learn_all(from, y, kept, pace, weight);
    }
    TRUECAST_APART void learn_twos(const ClassRow& from, std::size_t y, const double* kept,
                                   double pace, double weight) {
        learn_all(from, y, kept, pace, weight);
    }

    TRUECAST_INLINE void learn_all(const ClassRow& from, std::size_t y, const double* kept,
                                   double pace, double weight) {
        if (kept != nullptr) {
            for (std::size_t i = 0; i < members(); ++i, kept += count)
                std::copy(kept, kept + count, miss.data() + i * wide);
            note_misses(miss.data(), y);
            reweigh(pace);
        }
        note_misses(said.data(), y);
        if (kept == nullptr) reweigh(pace);
        if (!across) return;
        const double *const x = from.x.data(), *const missed = miss.data();
        temperature.learn(x, by(1), missed + wide, count, y, weight);
        vector.learn(x, missed + 2 * wide, weight);
        for (std::size_t i = 0; i < matrices.size(); ++i)
            matrices[i].learn(x, missed + (3 + i) * wide, pace);
    }

    // Outcome less what was said by each member, of each class. In whole blocks: to read a block,
    // of which one number was just written, takes long.
    TRUECAST_INLINE void note_misses(const double* q, std::size_t y) {
        double* to = miss.data();
        const double *const end = to + miss.size(), *const number = numbers.data();
        const Block which = Block{} + static_cast<double>(y), one = Block{} + 1.0;
        const std::size_t width = wide;
        Block each, happened;
        while (to < end)
            for (std::size_t k = 0; k < width; k += per_block) {
                read(happened, number + k);
                happened = happened == which ? one : Block{};
                read(each, q);
                write(happened - each, to);
                q += per_block;
                to += per_block;
            }
    }

    // A row, which has zeros after the classes.
    TRUECAST_INLINE void normalise(double* q) const {
        const std::size_t width = wide;
        Block total = Block{}, each;
        for (std::size_t k = 0; k < width; k += per_block) {
            read(each, q + k);
            total += each;
        }
        const double all = sum_of(total);
        if (!(all > 0.0)) return std::fill(q, q + count, 1.0 / static_cast<double>(count));
        const Block one = Block{} + 1.0;
        for (std::size_t k = 0; k < width; k += per_block) {
            read(each, q + k);
            each = each / all;
            write(each < one ? each : one, q + k);
        }
    }

    // Each by exp(-its Brier score), of what it missed when the forecast was made.
    TRUECAST_INLINE void reweigh(double pace) {
        double losses[most_members] = {};
        const std::size_t n = members(), width = wide;
        const double* missed = miss.data();
        double* const w = weights.data();
        for (std::size_t i = 0; i < n; ++i, missed += width) {
            Block loss = Block{}, each;
            for (std::size_t k = 0; k < width; k += per_block) {
                read(each, missed + k);
                loss += each * each;
            }
            losses[i] = pace * sum_of(loss);
        }
        double shares[most_members];
        for (std::size_t i = 0; i < most_members; i += per_block) {
            Block some;
            gather(some, losses + i);
            exp_of_minus(some);
            write(some, shares + i);
        }
        double total = 0.0;
        for (std::size_t i = 0; i < n; ++i) total += w[i] *= shares[i];
        const double part = share * pace, scale = (1.0 - part) / total;
        const double anew = part / static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i) w[i] = std::min(scale * w[i] + anew, 1.0);
    }

    bool across;
    std::size_t count, wide;  // classes; and of a row, in whole blocks
    double rounds = 0.0, lag = 0.0;
    Temperature temperature;
    VectorScaling vector;
    std::vector<MatrixScaling> matrices;
    std::vector<std::unique_ptr<Hint>> own;  // for each class
    Numbers weights;
    // By each member, a row, and how far off it was; the last is that of `own`.
    Numbers said, miss;
    Numbers together;  // and of all
    Numbers real;      // 1 for each class, and 0 where a row is filled up
    Numbers numbers;   // 0, 1, 2, ...
    Numbers mixed, last;
    bool fresh = false;
};

}  // namespace truecast::hints

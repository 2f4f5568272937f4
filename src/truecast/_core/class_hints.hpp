// Hints for K classes: a better vector of probabilities from a model's, learned from outcomes.
//
// A mixture of members that are weighted by their Brier score: what the model says; temperature,
// vector and matrix scaling of its log probabilities, learned online; and a hint for each class by
// itself, normalised. Nobody has to be told which of them suits the model. They prove nothing: the
// guard does. All arithmetic is spelled out in truecast/reference/class_hints.py, in the same
// order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "hints.hpp"
#include "scaling.hpp"

namespace truecast::hints {

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

// A mixture of all these, or if `across` is not set, only a hint for each class, normalised.
class ClassMix {
  public:
    ClassMix(const Hint& each, std::size_t classes, bool across_)
        : across(across_), count(classes), vector(classes) {
        for (std::size_t k = 0; k < classes; ++k) own.push_back(each.clone());
        if (across && classes <= MatrixScaling::most_classes) {
            matrices.emplace_back(classes, 1.0);
            matrices.emplace_back(classes, 0.998);
        }
        said.resize(across ? 4 + matrices.size() : 1);
        weights.assign(said.size(), 1.0);
        if (across) {
            std::fill(weights.begin() + 3, weights.end(), of_matrix);
            weights[1] = of_temperature;
            weights[2] = of_vector;
            weights.back() = of_each;
        }
        normalise(weights);
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
        said.back().resize(count);
        for (std::size_t k = 0; k < count; ++k) said.back()[k] = own[k]->predict(&from.scores[k]);
        mix(from);
        last = from.given;
        fresh = true;
        return mixed;
    }

    // Some rounds at once: what is said of each row, learned before the next. The hints of each
    // class need nothing of the others, so they go first, class by class: their numbers stay in the
    // cache. `to` has room for a number of each class and row.
    void play(const std::vector<ClassRow>& rows, const std::size_t* y, double* to) {
        for (std::size_t k = 0; k < count; ++k)
            for (std::size_t t = 0; t < rows.size(); ++t) {
                const Score* const score = &rows[t].scores[k];
                to[t * count + k] = own[k]->predict(score);
                own[k]->learn(score, k == y[t]);
            }
        fresh = false;
        for (std::size_t t = 0; t < rows.size(); ++t, to += count) {
            said.back().assign(to, to + count);
            mix(rows[t]);
            std::copy(mixed.begin(), mixed.end(), to);
            learn_across(rows[t], y[t], nullptr, rounds, 1.0);
        }
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

    // What all members say of a row, those of each class already asked: together.
    void mix(const ClassRow& from) {
        normalise(said.back());
        if (across) {
            said[0] = from.p;
            temperature.say(from.x, said[1]);
            const double more = temperature.slope - 1.0;
            vector.say(from.x, more, said[2]);
            for (std::size_t i = 0; i < matrices.size(); ++i)
                matrices[i].say(from.x, more, said[3 + i]);
        }
        std::fill(mixed.begin(), mixed.end(), 0.0);
        for (std::size_t i = 0; i < said.size(); ++i)
            for (std::size_t k = 0; k < count; ++k) mixed[k] += weights[i] * said[i][k];
        if (across) trust(from.p);
        normalise(mixed);
    }

    // All but the hints of each class. `since`: after how many rounds the forecast was made.
    void learn_across(const ClassRow& from, std::size_t y, const double* kept, double since,
                      double weight) {
        lag += weight * (std::max(rounds - since, 0.0) - lag) / 64.0;
        const double pace = weight / (1.0 + lag / patience);
        reweigh(y, kept, pace);
        rounds += weight;
        if (!across) return;
        temperature.learn(from.x, said[1], y, weight);
        vector.learn(from.x, said[2], y, weight);
        for (std::size_t i = 0; i < matrices.size(); ++i)
            matrices[i].learn(from.x, said[3 + i], y, pace);
    }

    // Nobody has learned much from a few outcomes: until there are more, the model has a part of
    // its own, which does not depend on weights.
    void trust(const Numbers& p) {
        const double root = unproved / (unproved + rounds), part = root * root;
        for (std::size_t k = 0; k < count; ++k) mixed[k] += part * (p[k] - mixed[k]);
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

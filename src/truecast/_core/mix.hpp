// A mix of hints: weighted by how they did, together with one more member that is learned from what
// they say.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hints.hpp"
#include "vectors.hpp"

namespace truecast::hints {

constexpr std::size_t usual = 9;  // members of a mix: loops over them are unrolled

// The sum of products, from the first to the last; of `n` if the number is not `known`.
template <std::size_t known>
double dot(const double* a, const double* b, std::size_t n = known) {
    double sum = 0.0;
    TRUECAST_UNROLL
    for (std::size_t i = 0; i < (known > 0 ? known : n); ++i) sum += a[i] * b[i];
    return sum;
}

// sigmoid(sum of w_i logit(p_i)) of members that say p_i: logistic regression on what they say, by
// Newton steps as in Platt, all rounds counted alike. The curvature is kept as L D L', L with ones
// on its diagonal, and only ever grows: nothing is subtracted, so no number of rounds makes it lose
// its sign.
class Stack {
  public:
    explicit Stack(std::size_t members)
        : n(members),
          weights(n, 1.0 / static_cast<double>(n)),
          diagonal(n, pull),
          inverse(n, 1.0 / pull),
          lower(n * (n - 1) / 2, 0.0),
          asked(n),
          logits(n, logit(0.0)),
          many(n > few ? 3 * n + lower.size() : 0) {}

    double say(const double* p) {
        for (std::size_t i = 0; i < n; ++i) {
            asked[i] = p[i];
            logits[i] = logit(p[i]);
        }
        return say_of(logits.data());
    }

    // The same of members' logits.
    double say_of(const double* each) const {
        const double z =
            n == usual ? dot<usual>(weights.data(), each) : dot<0>(weights.data(), each, n);
        return sigmoid(clip(z, -farthest, farthest));
    }

    // Of what a member said: mostly it was asked for just now.
    double logit_of(std::size_t member, double p) const {
        return p == asked[member] ? logits[member] : logit(p);
    }

    const double* last_logits() const { return logits.data(); }  // of what `say` was asked

    // It said p of the logits z: C += bend z z', then weights += error C^-1 z, for the curvature
    // C = L D L'. With x = L^-1 z and s_j = 1 + bend Sum_{i<j} x_i^2 / D_i, both take one pass over
    // the rows of L and one back: D_j grows by bend x_j^2 / s_j, and (the new C)^-1 z = (the old
    // C)^-1 z / s_n.
    void learn(const double* z, double p, bool y, double weight) {
        if (n == usual)
            learn_of<usual>(z, p, y, weight);
        else
            learn_of<0>(z, p, y, weight);
    }

    Entries entries() {
        return {{"stack", row(weights), -most_weight, most_weight,
                 "weights of the members' logits in the stack"},
                {"diagonal", row(diagonal), pull, 1e20, "D of the stack's curvature L D L'"},
                {"lower", row(lower), -1e10, 1e10, "L below its diagonal, row by row"}};
    }

    // The diagonal may have changed.
    void settle() {
        for (std::size_t i = 0; i < n; ++i) inverse[i] = 1.0 / diagonal[i];
    }

  private:
    template <std::size_t known>
    void learn_of(const double* z, double p, bool y, double weight) {
        const std::size_t count = known > 0 ? known : n;
        const double error = weight * ((y ? 1.0 : 0.0) - p), bend = std::fabs(error) / 2.0;
        std::array<double, of_few> own;
        double* const solved = many.empty() ? own.data() : many.data();
        double *const step = solved + count, *const share = step + count;
        double* const left = share + count;
        solve<known>(z, solved, left);
        double s = 1.0;
        TRUECAST_UNROLL
        for (std::size_t j = 0; j < count; ++j) {
            const double x = solved[j], over = bend / s;
            step[j] = x * inverse[j];
            s += bend * (x * step[j]);
            diagonal[j] += over * (x * x);
            inverse[j] = 1.0 / diagonal[j];
            share[j] = x * over * inverse[j];
        }
        const double rate = error / s;
        TRUECAST_UNROLL
        for (std::size_t k = 1; k <= count; ++k) {
            const std::size_t i = count - k;
            const double v = step[i];
            weights[i] = clip(weights[i] + rate * v, -most_weight, most_weight);
            double* const from = lower.data() + i * (i - 1) / 2;
            const double* const part = left + i * (i - 1) / 2;
            TRUECAST_UNROLL
            for (std::size_t j = 0; j < i; ++j) {
                step[j] -= from[j] * v;
                from[j] += share[j] * part[j];
            }
        }
    }

    // x = L^-1 z for the logits z; `left` is, of each place of L, what is left of z when the
    // columns up to it are taken off.
    template <std::size_t known>
    void solve(const double* z, double* solved, double* left) const {
        const std::size_t count = known > 0 ? known : n;
        const double* from = lower.data();
        double* part = left;
        TRUECAST_UNROLL
        for (std::size_t i = 0; i < count; ++i) {
            double rest = z[i];
            TRUECAST_UNROLL
            for (std::size_t j = 0; j < i; ++j) *part++ = rest -= solved[j] * *from++;
            solved[i] = rest;
        }
    }

    // What `learn` works with, and leaves. Where there are many stacks, room of its own for each
    // would take up the cache, so mostly it is that of the call.
    static constexpr std::size_t few = 16, of_few = 3 * few + few * (few - 1) / 2;

    static constexpr double pull = 10.0, most_weight = 64.0;
    std::size_t n;
    std::vector<double> weights, diagonal, inverse, lower;
    std::vector<double> asked, logits;  // of one round
    std::vector<double> many;           // the room, if members are not few
};

// A mix of hints and of their stack, weighted by how likely each made the outcomes so far (fixed
// share: in every round a small part of the weight is handed out anew, so that the best member
// after a change is found again). It is smaller where an outcome was no surprise: a constant part
// would bring poor members back faster than rare events can put them down. The first member starts
// with three fifths of the weight, as scores that are right should not pay much for members that
// are not needed, and the second with three twentieths; if there are several scores, the first and
// second members of each start with equal parts of that.
//
// Where outcomes come late, what they have in common would be taken for evidence once for each
// outstanding round, and be stale by then: the later, the slower the weights and the stack change.
// With a stack that kept its pace, flights 250 late gained 4.0 % instead of 4.5 %.
class Mix final : public Hint {
  public:
    // Each member sees one of the scores: `sees` says which of the `inputs`.
    Mix(std::vector<std::unique_ptr<Hint>> hints, std::vector<std::size_t> sees_,
        std::size_t inputs)
        : Hint(inputs),
          own(std::move(hints)),
          sees(std::move(sees_)),
          stack(own.size()),
          start(own.size() + 1),
          now(own.size()),
          at{std::vector<double>(own.size() + 1)} {
        const double models = static_cast<double>(inputs),
                     likely = own.size() > inputs ? second : 0.0;
        const std::size_t named = likely > 0.0 ? 2 * inputs : inputs;
        const double other = (1.0 - first - likely) / static_cast<double>(start.size() - named);
        std::fill(start.begin(), start.end(), other);
        for (std::size_t i = 0; i < own.size(); ++i) {
            if (first_of_its_score(i)) start[i] = first / models;
            if (likely > 0.0 && i > 0 && first_of_its_score(i - 1)) start[i] = likely / models;
        }
        weights = start;
    }
    Mix(const Mix& other)
        : Hint(other),
          sees(other.sees),
          stack(other.stack),
          start(other.start),
          weights(other.weights),
          rounds(other.rounds),
          lag(other.lag),
          now(other.now),
          at(other.at) {
        for (const auto& hint : other.own) own.push_back(hint->clone());
    }
    std::unique_ptr<Hint> clone() const override { return std::make_unique<Mix>(*this); }
    std::size_t notes() const override { return weights.size() + 1; }
    void shorten(double* kept) const override {
        for (std::size_t i = 0; i < own.size(); ++i)
            kept[i] = lengthened(shortened(kept[i], stack.logit_of(i, kept[i])));
        kept[own.size()] = rough(kept[own.size()]);
    }

    std::vector<Hint*> members() override {
        std::vector<Hint*> all;
        for (const auto& hint : own) all.push_back(hint.get());
        return all;
    }
    Entries entries() override {
        return joined({{"rounds", rounds, 0.0, most_rounds, "outcomes learned, by weight"},
                       {"lag", lag, 0.0, most_rounds,
                        "how much comes between a forecast and its outcome, lately"},
                       {"weights", row(weights), 0.0, 1.0, "of the members, then of their stack"}},
                      stack.entries());
    }
    bool settle() override {
        stack.settle();
        double total = 0.0;
        for (const double w : weights) total += w;
        return Hint::settle() && std::fabs(total - 1.0) < 1e-6 && lag <= rounds;
    }

    // Members need nothing of each other, nor of what is made of them: first all that they say of
    // some rounds, then its logarithms, and only then what each round has to wait for the one
    // before. Room for it is mostly that of the call: where there are many mixes, room of its own
    // for each would take up the cache.
    void play(const Score* scores, const std::uint8_t* y, std::size_t count, double* p) override {
        const std::size_t n = own.size(), row = n + 1;  // the last is for their stack
        std::array<double, 64 * (2 * usual + 1)> own_room;
        std::vector<double> more(count * (row + n) > own_room.size() ? count * (row + n) : 0);
        double* const each = more.empty() ? own_room.data() : more.data();
        double* const z = each + count * row;
        for (std::size_t t = 0; t < count; ++t, scores += inputs()) {
            ask(scores, &each[t * row]);
            teach(scores, &each[t * row], (y[t] & 1) != 0, 1.0);
        }
        for (std::size_t t = 0; t < count; ++t)
            std::transform(&each[t * row], &each[t * row] + n, &z[t * n], logit);
        for (std::size_t t = 0; t < count; ++t) {
            const double stacked = each[t * row + n] = stack.say_of(&z[t * n]);
            p[t] = mixed(&each[t * row]);
            at.round = rounds;
            weigh(&z[t * n], stacked, &each[t * row], (y[t] & 1) != 0, 1.0);
        }
        forget();
    }

  protected:
    double say(const Score* scores) override {
        ask(scores, now.data());
        std::copy(now.begin(), now.end(), at.said.begin());
        at.said.back() = at.stacked = stack.say(at.said.data());
        at.round = rounds;
        return mixed(at.said.data());
    }

    void absorb(const Score* scores, double, bool y, double weight) override {
        weigh(stack.last_logits(), at.stacked, at.said.data(), y, weight);
        teach(scores, now.data(), y, weight);
    }

    // The rounds are kept over a power of two: exact, and from 0 to 1 like the others.
    void note(double* kept) const override {
        *std::copy(at.said.begin(), at.said.end(), kept) = at.round / most_rounds;
    }
    void recall(const Score* scores, const double* kept) override {
        if (!knows(scores)) ask(scores, now.data());
        std::copy(kept, kept + at.said.size(), at.said.begin());
        at.round = kept[at.said.size()] * most_rounds;
        at.stacked = stack.say(at.said.data());
    }

  private:
    // What the members and their stack said, and after how many rounds.
    struct Forecast {
        std::vector<double> said;
        double round = 0.0;
        double stacked = 0.0;  // by the stack as it is now
    };

    void ask(const Score* scores, double* each) {
        for (std::size_t i = 0; i < own.size(); ++i) each[i] = own[i]->say(scores + sees[i]);
    }
    void teach(const Score* scores, const double* each, bool y, double weight) {
        for (std::size_t i = 0; i < own.size(); ++i)
            own[i]->absorb(scores + sees[i], each[i], y, weight);
    }

    bool first_of_its_score(std::size_t i) const {
        return i == 0 || (i < own.size() && sees[i] != sees[i - 1]);
    }

    // What the members and their stack say, weighted.
    double sum_of(const double* each) const {
        if (own.size() == usual) return dot<usual + 1>(weights.data(), each);
        return dot<0>(weights.data(), each, weights.size());
    }
    double mixed(const double* each) const { return std::min(sum_of(each), 1.0); }

    // Learn who was right: the members, whose logits are z, and their stack, which said `stacked`.
    // Leaves something else of what `each` said.
    void weigh(const double* z, double stacked, double* each, bool y, double weight) {
        lag += weight * (std::max(rounds - at.round, 0.0) - lag) / 64.0;
        const double pace = weight / (1.0 + lag / patience);
        stack.learn(z, stacked, y, pace);
        if (own.size() == usual)
            reweigh<usual + 1>(each, y, pace);
        else
            reweigh<0>(each, y, pace);
        rounds += weight;
    }

    template <std::size_t known>
    void reweigh(double* each, bool y, double pace) {
        const std::size_t count = known > 0 ? known : weights.size();
        const double p = sum_of(each), surprise = y ? 1.0 - p : p;
        double total = 0.0;
        for (std::size_t i = 0; !y && i < count; ++i) each[i] = 1.0 - each[i];
        for (std::size_t i = 0; pace < 1.0 && i < count; ++i) each[i] = std::pow(each[i], pace);
        TRUECAST_UNROLL
        for (std::size_t i = 0; i < count; ++i) total += each[i] *= weights[i];
        if (!(total > 0.0)) return;  // nobody thought it possible
        const double part = share * pace * clip(steep * surprise, least, 1.0);
        const double kept = (1.0 - part) / total;
        TRUECAST_UNROLL
        for (std::size_t i = 0; i < count; ++i) weights[i] = kept * each[i] + part * start[i];
    }

    static constexpr double first = 0.6, second = 0.15;  // of the weight, at the start
    static constexpr double patience = 25.0;             // outcomes this late teach half as much
    static constexpr double share = 0.0003, steep = 50.0;
    static constexpr double least =
        0.0001;  // the best member is found again even where nothing surprises
    std::vector<std::unique_ptr<Hint>> own;
    std::vector<std::size_t> sees;  // the score of each member
    Stack stack;
    std::vector<double> start, weights;
    double rounds = 0.0, lag = 0.0;
    std::vector<double> now;  // what the members say
    Forecast at;              // what say or recall left for absorb
};

}  // namespace truecast::hints

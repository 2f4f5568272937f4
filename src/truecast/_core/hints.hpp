// Hints: better probabilities from a model's scores, learned from pairs of a score and its outcome
// as outcomes come.
//
// A hint promises nothing: a guard follows it as far as its proof allows. Hints need no order of
// outcomes, no horizon, a fixed amount of memory and O(1) a round; whatever the scores in [0, 1]
// and the outcomes, they say a number in [0, 1]. All arithmetic is spelled out in
// truecast/reference/hints.py, in the same order.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "entries.hpp"

namespace truecast::hints {

constexpr double farthest =
    16.0;  // logits are clipped there: scores of 0 and 1 are as good as 1e-7 from them
constexpr double beyond = 40.0;  // bent ones are clipped there
constexpr std::size_t per_unit = 4;
constexpr std::size_t knots =
    2 * 16 * per_unit + 1;  // evenly spaced on the logit scale, so rare events have some too

inline double sigmoid(double z) { return 1.0 / (1.0 + std::exp(-z)); }

// `least` for what is not a number.
inline double clip(double value, double least, double most) {
    return value > least ? (value < most ? value : most) : least;
}

inline double logit(double p) {
    if (p < 1e-9) return -farthest;
    if (p >= 1.0) return farthest;
    return clip(std::log(p / (1.0 - p)), -farthest, farthest);
}

// A forecast in 16 bits: its logit, clipped, in steps of 1 / 2000. It changes by at most 1 / 4000
// of itself; 0 and 1 stay. Very many forecasts may await their outcomes, and have to be saved.
constexpr double short_steps = 2000.0;
constexpr std::uint16_t short_half = 1 << 15, short_one = 0xfffe, no_short = 0xffff;

inline std::uint16_t shortened(double p, double logit_of_p) {
    if (!(p > 0.0)) return 0;
    if (p >= 1.0) return short_one;
    return static_cast<std::uint16_t>(short_half + std::floor(logit_of_p * short_steps + 0.5));
}
inline std::uint16_t shortened(double p) { return shortened(p, logit(p)); }

inline double lengthened(std::uint16_t p) {
    if (p == 0) return 0.0;
    if (p >= short_one) return 1.0;
    return sigmoid((static_cast<double>(p) - short_half) / short_steps);
}

inline double rough(double p) { return lengthened(shortened(p)); }

// A logit, drawn together beyond 16 as a logarithm does: naive Bayes says 300 where it means 3.
// 6,454 becomes 40.
inline double bent(double z) {
    const double size = std::fabs(z);
    if (size <= farthest) return z;
    return std::copysign(std::min(farthest + 4.0 * std::log(size / farthest), beyond), z);
}

// A score, and where it stands among the knots: `part` of the way from knot `left` to the next.
struct Score {
    double given, x;  // as the model gave it, and as a probability
    double z, bend;   // its logit, clipped and bent
    std::size_t left;
    double part;

    explicit Score(double p)
        : Score(p + 0.0, p + 0.0, std::log(p / (1.0 - p))) {}  // -0.0 becomes 0.0
    static Score of_logit(double z) { return Score(z + 0.0, sigmoid(clip(z, -700.0, 700.0)), z); }

  private:
    Score(double score, double p, double full)
        : given(score), x(p), z(clip(full, -farthest, farthest)), bend(bent(full)) {
        const double at = (z + farthest) * per_unit;
        left = std::min(static_cast<std::size_t>(at), knots - 2);
        part = at - static_cast<double>(left);
    }
};

// A hint is asked about `inputs()` scores a round: one, or one of each model. Callers hand over the
// first of them.
class Hint {
  public:
    explicit Hint(std::size_t inputs = 1) : last(inputs) {}
    virtual ~Hint() = default;
    virtual std::unique_ptr<Hint> clone() const = 0;
    std::size_t inputs() const { return last.size(); }

    // What is said of the scores; changes nothing that later calls could tell.
    double predict(const Score* scores) {
        if (!knows(scores)) {
            said = say(scores);
            for (std::size_t k = 0; k < last.size(); ++k) last[k] = scores[k].given;
            fresh = true;
        }
        return said;
    }

    // Some numbers to remember a forecast by until its outcome comes, if that is late:
    // a mix judges its members by what they said then. By what they say now, members good for the
    // next round only would seem good for later rounds too.
    virtual std::size_t notes() const { return 0; }
    virtual double issue(const Score* scores, double* kept) {
        const double p = predict(scores);
        note(kept);
        return p;
    }

    // Make forecasts among these notes `rough`: they are kept where there may be very many.
    virtual void shorten(double*) const {}

    // `weight`, above 0 and at most 1, is how much of an observation the outcome is: outcomes that
    // come together may be one. Older ones fade in proportion.
    virtual void learn(const Score* scores, bool y, const double* kept = nullptr,
                       double weight = 1.0) {
        if (kept == nullptr)
            predict(scores);
        else
            recall(scores, kept);
        absorb(scores, said, y, weight);
        fresh = false;
    }

    // Predict and learn, `count` rounds one after the other.
    virtual void play(const Score* scores, const std::uint8_t* y, std::size_t count, double* p) {
        for (std::size_t t = 0; t < count; ++t, scores += inputs()) {
            p[t] = predict(scores);
            learn(scores, (y[t] & 1) != 0);
        }
    }

    // Whether it needs the interpreter lock, and may throw. If so, `at` names the row of a batch,
    // for its errors.
    virtual bool runs_python() const { return false; }
    virtual void at(std::int64_t) {}

    virtual Entries entries() { return {}; }
    // Call it when numbers of the state were written: whether they fit together.
    virtual bool settle() {
        fresh = false;
        return true;
    }
    virtual std::vector<Hint*> members() { return {}; }

  protected:
    virtual double say(const Score* scores) = 0;
    virtual void absorb(const Score* scores, double p, bool y, double weight) = 0;
    virtual void note(double*) const {}
    virtual void recall(const Score* scores, const double*) { predict(scores); }

    // Something was learned.
    void forget() { fresh = false; }

    // Whether these are the scores that it was asked about last, and nothing was learned since.
    bool knows(const Score* scores) const {
        for (std::size_t k = 0; k < last.size(); ++k)
            if (scores[k].given != last[k]) return false;
        return fresh;
    }

  private:
    friend class Mix;  // asks its members itself: it knows what they said last

    std::vector<double> last;  // a forecast is worked out once for saying and learning
    double said = 0.0;
    bool fresh = false;
};

// Says the score.
class Identity final : public Hint {
  public:
    std::unique_ptr<Hint> clone() const override { return std::make_unique<Identity>(*this); }

  protected:
    double say(const Score* score) override { return score->x; }
    void absorb(const Score*, double, bool, double) override {}
};

// Platt scaling: sigmoid(offset + slope z), by Newton steps on the log loss so far, a loss t rounds
// ago counted keep^t, plus a quadratic pull of constant strength towards the identity. The
// curvature of a loss is taken as |y - p| / 2, which is p (1 - p) on average where p is right and
// never lets an outcome move z by more than 2.
class Platt final : public Hint {
  public:
    explicit Platt(double keep_) : keep(keep_) {}
    std::unique_ptr<Hint> clone() const override { return std::make_unique<Platt>(*this); }

    Entries entries() override {
        return {{"offset", offset, -most_offset, most_offset, "of the line on the logit scale"},
                {"slope", slope, -most_slope, most_slope, "of the line"},
                {"curvature", row(curvature), -1e20, 1e20,
                 "of the objective: a, b, c of the matrix (a, b; b, c)"}};
    }
    bool settle() override {
        const auto [a, b, c] = curvature;
        const double least =
            pull_slope * a + pull_offset * c - pull_offset * pull_slope;  // by Cauchy and Schwarz
        return Hint::settle() && a >= pull_offset / 2.0 && c >= pull_slope / 2.0 &&
               a * c - b * b >= least / 2.0;
    }

  protected:
    double say(const Score* score) override {
        return sigmoid(clip(offset + slope * score->z, -farthest, farthest));
    }

    void absorb(const Score* score, double p, bool y, double weight) override {
        const double z = score->z, error = weight * ((y ? 1.0 : 0.0) - p),
                     bend = std::fabs(error) / 2.0;
        const double lost = weight * (1.0 - keep), kept = 1.0 - lost;
        auto& [a, b, c] = curvature;
        a = kept * a + lost * pull_offset + bend;
        b = kept * b + bend * z;
        c = kept * c + lost * pull_slope + bend * z * z;
        const double u = error - lost * pull_offset * offset,
                     v = error * z - lost * pull_slope * (slope - 1.0);
        const double determinant = a * c - b * b;
        offset = clip(offset + (c * u - b * v) / determinant, -most_offset, most_offset);
        slope = clip(slope + (a * v - b * u) / determinant, -most_slope, most_slope);
    }

  private:
    static constexpr double most_offset = 64.0, most_slope = 16.0;
    static constexpr double pull_offset = 2.0, pull_slope = 8.0;
    double keep;
    double offset = 0.0, slope = 1.0;
    std::array<double, 3> curvature{pull_offset, 0.0, pull_slope};
};

// Weights of rounds that fade: the newest counts `unit`, which grows by 1 / keep a round instead of
// all others shrinking; now and then all are scaled back.
struct Fading {
    double keep, unit = 1.0;
    static constexpr double most = 1e100;

    Entry entry() { return {"unit", unit, 1.0, 2 * most, "what the newest outcome counts"}; }

    // What an outcome of this weight counts.
    double next(double weight) {
        unit /= 1.0 - weight * (1.0 - keep);
        return unit * weight;
    }

    void scale(double* values, std::size_t count) const {
        for (std::size_t k = 0; k < count; ++k) values[k] /= unit;
    }

    // What a sum with terms no larger than those of this one can be, with rounding.
    static double at_most(double sum) { return sum * 1.000001 + 1e-290; }
};

// The score plus the mean residual (outcome - score) near it: a table of mean residuals at the
// knots, read and written by linear interpolation, shrunk towards 0 as if each knot had seen
// `prior` residuals of 0.
class BinMeans final : public Hint {
  public:
    BinMeans(double keep, double prior_) : fading{keep}, prior(prior_) {}
    std::unique_ptr<Hint> clone() const override { return std::make_unique<BinMeans>(*this); }

    Entries entries() override {
        return {fading.entry(),
                {"weights", row(weights), 0.0, huge, "of the outcomes at each knot"},
                {"residuals", row(residuals), -huge, huge,
                 "weighted sums of outcome - score at each knot"}};
    }
    bool settle() override {
        for (std::size_t k = 0; k < knots; ++k)
            if (std::fabs(residuals[k]) > Fading::at_most(weights[k])) return false;
        return Hint::settle();
    }

  protected:
    double say(const Score* score) override {
        const double own_weight = prior * fading.unit;
        const std::size_t k = score->left;
        const double lower = residuals[k] / (weights[k] + own_weight);
        const double upper = residuals[k + 1] / (weights[k + 1] + own_weight);
        return clip(score->x + (1.0 - score->part) * lower + score->part * upper, 0.0, 1.0);
    }

    void absorb(const Score* score, double, bool y, double weight) override {
        const double all = fading.next(weight), right = all * score->part, left = all - right;
        const double residual = (y ? 1.0 : 0.0) - score->x;
        const std::size_t k = score->left;
        weights[k] += left;
        weights[k + 1] += right;
        residuals[k] += left * residual;
        residuals[k + 1] += right * residual;
        if (fading.unit > Fading::most) {
            fading.scale(weights.data(), knots);
            fading.scale(residuals.data(), knots);
            fading.unit = 1.0;
        }
    }

  private:
    Fading fading;
    double prior;
    std::array<double, knots> weights{}, residuals{};
};

// Isotonic regression: rates at knots, pooled where they would decrease, refitted from time to
// time; between the centres of the pools it goes straight. As if each knot had seen `prior` rounds
// with its own probability, or a tenth of them beyond 16. Its knots are those of bent logits:
// scores that are nearly 0 or 1 differ, and say different things.
class Isotonic final : public Hint {
  public:
    Isotonic(double keep, double prior_) : fading{keep}, prior(prior_) { refit(); }
    std::unique_ptr<Hint> clone() const override { return std::make_unique<Isotonic>(*this); }

    Entries entries() override {
        return {fading.entry(),
                {"rounds", rounds, 0.0, most_rounds, "outcomes learned"},
                {"due", due, 0.0, most_rounds, "the round after which it is fitted anew"},
                {"weights", row(weights), 0.0, huge, "of the outcomes at each knot"},
                {"ones", row(ones), 0.0, huge, "weights of the outcomes that were 1"},
                {"logits", row(logits), -huge, huge, "weighted sums of the scores' logits"},
                {"rates", row(rates), 0.0, 1.0, "of the pool that each knot belongs to"},
                {"centres", row(centres), -beyond, beyond, "of that pool, as a logit"}};
    }
    bool settle() override {
        for (std::size_t k = 0; k < wide; ++k) {
            const double most = Fading::at_most(weights[k]);
            if (ones[k] > most || std::fabs(logits[k]) > beyond * most ||
                (k > 0 && rates[k] < rates[k - 1]))
                return false;
        }
        mark_ends();
        return Hint::settle() && rounds == std::floor(rounds) && due > rounds &&
               due <= rounds + longest;
    }

  protected:
    double say(const Score* score) override {
        const std::size_t k = nearest(*score);
        const bool up = centres[k] <= score->bend;
        const std::size_t from = first[k], to = last[k] + std::size_t{1};
        if (up ? to == wide : from == 0) return rates[k];
        const std::size_t a = up ? k : from - 1, b = up ? to : k;
        const double part = (score->bend - centres[a]) / (centres[b] - centres[a]);
        return clip(rates[a] + (rates[b] - rates[a]) * part, rates[a], rates[b]);
    }

    void absorb(const Score* score, double, bool y, double weight) override {
        const double all = fading.next(weight);
        const std::size_t k = nearest(*score);
        weights[k] += all;
        if (y) ones[k] += all;
        logits[k] += all * score->bend;
        if (fading.unit > Fading::most) {
            for (auto* values : {&weights, &ones, &logits}) fading.scale(values->data(), wide);
            fading.unit = 1.0;
        }
        rounds += 1.0;
        if (rounds >= due) {
            refit();
            due = rounds + clip(std::floor(rounds / 16.0), 1.0, longest);
        }
    }

  private:
    static constexpr std::size_t wide = 2 * static_cast<std::size_t>(beyond) * per_unit + 1;
    struct Pool {
        std::size_t from;
        double weight, ones, logits, rate;
        double centre() const { return logits / weight; }
        void add(const Pool& next) {
            weight += next.weight, ones += next.ones, logits += next.logits;
            rate = ones / weight;
        }
    };

    static std::size_t nearest(const Score& score) {
        return static_cast<std::size_t>((score.bend + beyond) * per_unit + 0.5);
    }
    static double place(std::size_t k) { return static_cast<double>(k) / per_unit - beyond; }

    static std::array<double, wide> own_rates() {
        std::array<double, wide> all;
        for (std::size_t k = 0; k < wide; ++k)
            all[k] = sigmoid(clip(place(k), -farthest, farthest));
        return all;
    }

    // Invariant: the pools so far are the regression of the knots so far.
    void refit() {
        static const std::array<double, wide> own = own_rates();
        const double own_weight = prior * fading.unit;
        std::array<Pool, wide> pools;
        std::size_t count = 0;
        for (std::size_t k = 0; k < wide; ++k) {
            const double z = place(k);
            const double faith = std::fabs(z) <= farthest ? own_weight : own_weight / 10.0;
            const double all = weights[k] + faith, one = ones[k] + faith * own[k];
            Pool pool{k, all, one, logits[k] + faith * z, one / all};
            while (count > 0 && pools[count - 1].rate >= pool.rate) {
                Pool wider = pools[--count];
                wider.add(pool);
                pool = wider;
            }
            pools[count++] = pool;
        }
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t to = i + 1 < count ? pools[i + 1].from : wide;
            const std::size_t from = pools[i].from;
            std::fill(&rates[from], &rates[0] + to, clip(pools[i].rate, 0.0, 1.0));
            std::fill(&centres[from], &centres[0] + to, clip(pools[i].centre(), -beyond, beyond));
        }
        mark_ends();
    }

    // Where the pool of each knot begins and ends: rates of pools differ.
    void mark_ends() {
        for (std::size_t k = 0; k < wide; ++k)
            first[k] = k > 0 && rates[k] == rates[k - 1] ? first[k - 1] : number(k);
        for (std::size_t k = wide; k-- > 0;)
            last[k] = k + 1 < wide && rates[k] == rates[k + 1] ? last[k + 1] : number(k);
    }
    static std::uint16_t number(std::size_t k) { return static_cast<std::uint16_t>(k); }

    static constexpr double longest = 256.0;  // rounds without a new fit
    Fading fading;
    double prior;
    double rounds = 0.0, due = 1.0;
    std::array<double, wide> weights{}, ones{}, logits{};
    std::array<double, wide> rates{}, centres{};
    std::array<std::uint16_t, wide> first{}, last{};  // knots of it
};

// A new hint for one score, by its name in Python; none if there is no such name.
inline std::unique_ptr<Hint> new_single(const std::string& kind, double keep, double prior) {
    if (kind == "Identity") return std::make_unique<Identity>();
    if (kind == "Platt") return std::make_unique<Platt>(keep);
    if (kind == "BinMeans") return std::make_unique<BinMeans>(keep, prior);
    if (kind == "Isotonic") return std::make_unique<Isotonic>(keep, prior);
    return nullptr;
}

// A hint as Python holds it, whichever it is; `hint->clone()` gives one that continues from the
// same state on its own.
struct HintHolder {
    std::unique_ptr<Hint> hint;
    bool busy = false;   // a batch is running without the interpreter lock
    bool logit = false;  // scores are log-odds, not probabilities

    HintHolder copy() const { return {hint->clone(), false, logit}; }

    // Of a number that was checked: if it is an array's, another thread can have written to it
    // since.
    Score score(double given) const {
        if (logit) return Score::of_logit(std::isfinite(given) ? given : 0.0);
        return Score(given > 0.0 ? (given < 1.0 ? given : 1.0) : 0.0);
    }

    // Predict and learn, round by round: of each, the scores of all models.
    void play(const double* given, const std::uint8_t* y, std::size_t count, double* p) const {
        constexpr std::size_t some = 64;  // their numbers stay in the cache
        const std::size_t models = hint->inputs();
        std::vector<Score> scores;
        for (std::size_t t = 0; t < count; t += some) {
            const std::size_t now = std::min(some, count - t);
            scores.clear();
            for (std::size_t k = 0; k < now * models; ++k) scores.push_back(score(*given++));
            hint->play(scores.data(), y + t, now, p + t);
        }
    }

    // The scores of a round, which begin there.
    void read(const double* from, std::vector<Score>& scores) const {
        scores.clear();
        for (std::size_t k = 0; k < hint->inputs(); ++k) scores.push_back(score(from[k]));
    }
};

}  // namespace truecast::hints

// Hints as Python sees them: one class for all kinds, and their numbers as one row, whose layout
// Python can ask for.
#include "hints.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "arrays.hpp"
#include "bursts.hpp"
#include "edge.hpp"
#include "mix.hpp"
#include "open.hpp"
#include "saving.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {

// A list of floats, as `issue` gave it, at once; everything else goes through the checks in Python.
std::vector<double> notes_of(nb::handle notes, std::size_t count) {
    if (!PyList_CheckExact(notes.ptr()) || nb::len(notes) != count)
        return nb::cast<std::vector<double>>(
            nb::module_::import_("truecast._check").attr("notes")(notes, count));
    std::vector<double> kept;
    for (nb::handle note : notes) kept.push_back(probability("notes", note));
    return kept;
}

using hints::Hint;
using hints::HintHolder;

// A number at once if it is a float in range; all other checks are Python's.
hints::Score score_of(const HintHolder& held, nb::handle score) {
    if (!held.logit) return held.score(probability("score", score));
    if (PyFloat_CheckExact(score.ptr()) && std::isfinite(PyFloat_AS_DOUBLE(score.ptr())))
        return held.score(PyFloat_AS_DOUBLE(score.ptr()));
    const nb::object check = nb::module_::import_("truecast._check").attr("log_odds");
    return held.score(nb::cast<double>(check("score", score)));
}

// The scores of one round: a number, or a sequence with one of each model.
void scores_of(const HintHolder& held, nb::handle score, std::vector<hints::Score>& scores) {
    const std::size_t models = held.hint->inputs();
    scores.clear();
    scores.reserve(models);
    if (models == 1) return scores.push_back(score_of(held, score));
    const nb::object check = nb::module_::import_("truecast._check").attr("score_of_models");
    for (const double one :
         nb::cast<std::vector<double>>(check("score", score, models, held.logit)))
        scores.push_back(held.score(one));
}

// Above 0 and at most 1.
double weight_of(nb::handle weight) {
    if (PyFloat_CheckExact(weight.ptr())) {
        const double value = PyFloat_AS_DOUBLE(weight.ptr());
        if (value > 0.0 && value <= 1.0) return value;
    }
    return nb::cast<double>(nb::module_::import_("truecast._check").attr("weight")(weight));
}

nb::dict state_of(Hint& hint) {
    nb::dict state = saved(hint.entries());
    nb::list members;
    for (Hint* member : hint.members()) members.append(state_of(*member));
    if (nb::len(members) > 0) state["members"] = members;
    return state;
}

bool take_state(Hint& hint, const nb::dict& state) {
    load(hint.entries(), state);
    const std::vector<Hint*> members = hint.members();
    for (std::size_t k = 0; k < members.size(); ++k)
        if (!take_state(*members[k], nb::cast<nb::dict>(state["members"][k]))) return false;
    return in_range(hint.entries()) && hint.settle();
}

namespace {

std::unique_ptr<Hint> make(const std::string& kind, double keep, double prior,
                           const std::vector<HintHolder*>& members, std::size_t models) {
    require(keep > 0.0 && keep <= 1.0 && prior > 0.0,
            "keep must be above 0 and at most 1, prior above 0");
    if (std::unique_ptr<Hint> single = hints::new_single(kind, keep, prior)) return single;
    require(kind == "Mix" && models > 0 && !members.empty() && members.size() % models == 0,
            "there is no such hint");
    std::vector<std::unique_ptr<Hint>> own;
    std::vector<std::size_t> sees;  // as many members for each model
    for (HintHolder* member : members) {
        require(at_rest(*member).hint->inputs() == 1, "a member sees one score");
        sees.push_back(own.size() * models / members.size());
        own.push_back(member->hint->clone());
    }
    return std::make_unique<hints::Mix>(std::move(own), std::move(sees), models);
}

// The entries of the hint itself, then those of its members.
nb::list entries(HintHolder& held) {
    nb::list all;
    all.append(described(at_rest(held).hint->entries()));
    for (Hint* member : held.hint->members()) all.append(described(member->entries()));
    return all;
}

// Returns whether these numbers fit together; changes nothing if they do not.
bool restore(HintHolder& held, const nb::dict& state) {
    std::unique_ptr<Hint> changed = at_rest(held).hint->clone();
    if (!take_state(*changed, state)) return false;
    held.hint = std::move(changed);
    return true;
}

nb::tuple issue(HintHolder& held, nb::handle score) {
    std::vector<hints::Score> scores;
    scores_of(held, score, scores);
    std::vector<double> kept(at_rest(held).hint->notes());
    const double p = held.hint->issue(scores.data(), kept.data());
    return nb::make_tuple(p, kept);
}

void learn(HintHolder& held, nb::handle score, nb::handle y, nb::handle notes, nb::handle weight) {
    std::vector<hints::Score> scores;
    scores_of(held, score, scores);
    const bool bit = outcome(y) != 0;
    const double part = weight_of(weight);
    if (notes.is_none()) return at_rest(held).hint->learn(scores.data(), bit, nullptr, part);
    const std::vector<double> kept = notes_of(notes, at_rest(held).hint->notes());
    at_rest(held).hint->learn(scores.data(), bit, kept.data(), part);
}

// Scores round by round, those of all models of a round together.
void follow(HintHolder& held, Array<const double, 1> numbers, Array<const std::uint8_t, 1> y,
            Array<double, 1> said) {
    const std::size_t models = held.hint->inputs();
    require(numbers.shape(0) == y.shape(0) * models && said.shape(0) == y.shape(0),
            "there must be an entry for each outcome");
    const Busy working(held);
    nb::gil_scoped_release unlocked;
    held.play(numbers.data(), y.data(), y.shape(0), said.data());
}

}  // namespace

void bind_hints(nb::module_& m) {
    nb::class_<hints::Bursts>(m, "Bursts")
        .def(nb::init<>())
        .def("issued", &hints::Bursts::issued,
             "A forecast was made: what resolves from now on is another burst.")
        .def("given_up", &hints::Bursts::given_up,
             "The outcome of a forecast is awaited no longer.")
        .def("weight", &hints::Bursts::weight, "residual"_a, "mates"_a,
             "How much of an observation the outcome is that resolves now.")
        .def_prop_ro("effect", &hints::Bursts::effect,
                     "How many outcomes make an observation, lately.")
        .def("_saved", [](hints::Bursts& bursts) { return saved(bursts.entries()); })
        .def("_settle", &hints::Bursts::settle);
    nb::class_<HintHolder>(m, "Hint")
        .def(
            "__init__",
            [](HintHolder* self, const std::string& kind, double keep, double prior,
               const std::vector<HintHolder*>& members, std::size_t models) {
                new (self) HintHolder{make(kind, keep, prior, members, models)};
            },
            "kind"_a, "keep"_a, "prior"_a, "members"_a, "models"_a)
        .def(
            "__init__",
            [](HintHolder* self, HintHolder& other) {
                new (self) HintHolder(at_rest(other).copy());
            },
            "other"_a, "A copy, which goes on by itself.")
        .def(
            "__init__",
            [](HintHolder* self, nb::object calls) {
                new (self) HintHolder{std::make_unique<hints::Open>(std::move(calls))};
            },
            "calls"_a, "A hint that Python provides.")
        .def_prop_ro(
            "_calls",
            [](const HintHolder& held) {
                const auto* open = dynamic_cast<const hints::Open*>(held.hint.get());
                return open == nullptr ? nb::object(nb::none()) : open->calls;
            },
            "What asks the hint, if Python provides it.")
        .def_prop_ro(
            "_notes", [](const HintHolder& held) { return held.hint->notes(); },
            "How many notes `issue` gives.")
        .def(
            "predict",
            [](HintHolder& held, nb::handle score) {
                std::vector<hints::Score> scores;
                scores_of(held, score, scores);
                return at_rest(held).hint->predict(scores.data());
            },
            "score"_a.none(), "A better probability than this score; nothing is learned.")
        .def("issue", &issue, "score"_a.none(),
             "What `predict` says, and notes to keep and hand to `learn` if other rounds come "
             "before this outcome.")
        .def("learn", &learn, "score"_a.none(), "outcome"_a.none(), "notes"_a = nb::none(),
             "weight"_a.none() = 1.0,
             "Learn the outcome, 0 or 1, of a round with this score; rounds may come in any order. "
             "`weight`, above 0 and at most 1, is how much of an observation it is.")
        .def_prop_ro(
            "_models", [](const HintHolder& held) { return held.hint->inputs(); },
            "How many scores a round has.")
        .def_prop_rw(
            "_logit", [](const HintHolder& held) { return held.logit; },
            [](HintHolder& held, bool logit) {
                at_rest(held).hint->settle();
                held.logit = logit;
            },
            "Whether scores are log-odds.")
        .def("_follow", &follow, "scores"_a, "outcomes"_a, "said"_a,
             "Predict and learn, round by round.")
        .def("_entries", &entries,
             "What the state of the hint has, and then that of each member (saving.hpp).")
        .def(
            "_saved", [](HintHolder& held) { return state_of(*at_rest(held).hint); },
            "All numbers of the state.")
        .def("_restore", &restore, "state"_a,
             "Take these numbers if they fit together; say whether they did.");
}

}  // namespace truecast

// A hint that Python provides. Its users hold the interpreter lock, and expect any call to
// throw.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "hints.hpp"

namespace truecast::hints {

class Open final : public Hint {
  public:
    // Of truecast.recalibrate.open.Calls: asks the object, and checks what it says.
    explicit Open(nanobind::object calls_)
        : Hint(nanobind::cast<std::size_t>(calls_.attr("models"))),
          calls(std::move(calls_)),
          count(nanobind::cast<std::size_t>(calls.attr("notes"))) {}
    std::unique_ptr<Hint> clone() const override {
        return std::make_unique<Open>(calls.attr("copy")());
    }

    bool runs_python() const override { return true; }
    void at(std::int64_t number) override { row = number; }
    std::size_t notes() const override { return count; }

    double issue(const Score* scores, double* kept) override {
        const nanobind::object both = calls.attr("issue")(given(scores), position());
        const nanobind::object list = both[1];
        for (std::size_t k = 0; k < count; ++k) kept[k] = nanobind::cast<double>(list[k]);
        return nanobind::cast<double>(both[0]);
    }

    void learn(const Score* scores, bool y, const double* kept, double weight) override {
        settle();
        nanobind::list list;
        for (std::size_t k = 0; kept != nullptr && k < count; ++k) list.append(kept[k]);
        calls.attr("learn")(given(scores), y ? 1 : 0, list, weight, position());
    }

    const nanobind::object calls;

  protected:
    double say(const Score* scores) override {
        return nanobind::cast<double>(calls.attr("predict")(given(scores), position()));
    }
    void absorb(const Score*, double, bool, double) override {}  // `learn` does it

  private:
    // A number, or a list if there are several models.
    nanobind::object given(const Score* scores) const {
        if (inputs() == 1) return nanobind::float_(scores->given);
        nanobind::list all;
        for (std::size_t k = 0; k < inputs(); ++k) all.append(scores[k].given);
        return all;
    }
    nanobind::object position() const {
        return row < 0 ? nanobind::none() : nanobind::object(nanobind::int_(row));
    }

    const std::size_t count;  // of notes
    std::int64_t row = -1;    // of a batch, to name it in errors
};

}  // namespace truecast::hints

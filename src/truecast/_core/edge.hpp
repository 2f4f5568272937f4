// What the bindings of ladders share at their edge with Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "sums.hpp"

namespace truecast {

[[noreturn]] inline void refuse(const char* message) {
    const nanobind::object type = nanobind::module_::import_("truecast.errors").attr("OrderError");
    PyErr_SetString(type.ptr(), message);
    throw nanobind::python_error();
}

// 0 or 1 at the cost of a pointer comparison (the interpreter has one object for each of 0, 1,
// False and True); every other object goes through the checks in Python.
inline std::uint8_t outcome(nanobind::handle y) {
    static PyObject* const zero = PyLong_FromLong(0);
    static PyObject* const one = PyLong_FromLong(1);
    if (y.ptr() == one || y.ptr() == Py_True) return 1;
    if (y.ptr() == zero || y.ptr() == Py_False) return 0;
    return nanobind::cast<std::uint8_t>(
        nanobind::module_::import_("truecast._check").attr("outcome")(y));
}

// A float from 0 to 1 at once; every other object goes through the checks in Python. A NaN fails
// both comparisons.
inline double probability(const char* name, nanobind::handle x) {
    if (PyFloat_CheckExact(x.ptr())) {
        const double value = PyFloat_AS_DOUBLE(x.ptr());
        if (value >= 0.0 && value <= 1.0) return value + 0.0;  // -0.0 is 0.0
    }
    return nanobind::cast<double>(
        nanobind::module_::import_("truecast._check").attr("probability")(name, x));
}

// A batch runs without the interpreter lock; until it ends nothing else may touch the state.
template <typename State>
State& at_rest(State& state) {
    if (state.busy)
        refuse(
            "in use by another thread (a batch runs on it in another thread): wait for it, or use "
            "an object for each thread");
    return state;
}

constexpr const char* no_forecast =
    "observe() needs a forecast to judge: call predict() before each observe()";

// The outcome, 0 or 1, of the forecast that is out.
template <typename State>
std::uint8_t awaited_outcome(State& state, nanobind::handle y) {
    const std::uint8_t bit = outcome(y);
    if (!at_rest(state).issued) refuse(no_forecast);
    return bit;
}

// Marks a state as busy while a batch runs, also if the batch ends by an exception (it can run out
// of memory). The mark is set, read and taken away under the interpreter lock: it need not be
// atomic.
template <typename State>
class Busy {
    State* state;

  public:
    explicit Busy(State& at_work) : state(&at_rest(at_work)) { state->busy = true; }
    Busy(Busy&& other) noexcept : state(other.state) { other.state = nullptr; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy() {
        if (state != nullptr) state->busy = false;
    }
};

// Plays rounds `from` to `to` for block after block without the interpreter lock, and lets signals
// in every 50 ms and at the end: what their handlers raise, such as KeyboardInterrupt, is thrown.
// The caller then restores the whole state, so that an interrupted batch has learned nothing. If it
// `runs_python`, the lock is kept.
template <typename Play>
void in_blocks(std::size_t rounds, std::size_t block, Play play, bool runs_python = false) {
    using Clock = std::chrono::steady_clock;
    std::optional<nanobind::gil_scoped_release> unlocked;
    if (!runs_python) unlocked.emplace();
    Clock::time_point last = Clock::now();
    for (std::size_t from = 0, to; from < rounds; from = to) {
        to = std::min(rounds, from + block);
        play(from, to);
        if (to < rounds && Clock::now() - last < std::chrono::milliseconds(50)) continue;
        const nanobind::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
        last = Clock::now();
    }
}

// A batch on one state: all of it or, if something is thrown, nothing.
template <typename State, typename Play>
void whole_batch(State& state, std::size_t rounds, std::size_t block, Play play) {
    State before = at_rest(state);
    const Busy working(state);
    try {
        in_blocks(rounds, block, play);
    } catch (...) {
        state = std::move(before);
        throw;
    }
}

// The same, a round for every outcome; writes what was said.
template <typename State>
void run_steps(State& state, Array<const std::uint8_t, 1> y, Array<double, 1> said) {
    require(y.shape(0) == said.shape(0), "said must have an entry for each outcome");
    whole_batch(state, y.shape(0), 4096, [&](std::size_t t, std::size_t end) {
        for (; t < end; ++t) said.data()[t] = state.step(y.data()[t] & 1);
    });
}

// A number from 0 to 1 of an array that was checked: another thread can have written to it since.
inline double checked(double x) { return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0; }

// A new NumPy array.
template <typename T>
nanobind::object copy(const T* values, std::size_t count) {
    return nanobind::cast(
        nanobind::ndarray<nanobind::numpy, const T, nanobind::ndim<1>>(values, {count}),
        nanobind::rv_policy::copy);
}

template <typename T>
nanobind::object copy(const std::vector<T>& values) {
    return copy(values.data(), values.size());
}

inline nanobind::object as_int(const Wide& x) {
    return (nanobind::int_(x.high) << nanobind::int_(64)) + nanobind::int_(x.low);
}

inline nanobind::tuple as_tuple(const Sums& s) {
    return nanobind::make_tuple(as_int(s.bias), as_int(s.left) + nanobind::int_(s.moved), s.rest,
                                s.count);
}

}  // namespace truecast

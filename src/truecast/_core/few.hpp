// A few rounds straight from two arrays of numpy's, and their tally, which Python need not make.
// What is not as plain as that goes through the checks in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "counting.hpp"

namespace truecast {

// numpy's array interface, as its documentation lists it.
struct ArrayInterface {
    int two, dimensions;
    char kind;
    int width, flags;
    Py_ssize_t *shape, *strides;
    void* data;
    PyObject* description;
};

// An array of numpy's own type, in one dimension, contiguous, aligned, in the machine's byte order;
// else it has no data.
class PlainArray {
  public:
    explicit PlainArray(nanobind::handle object) {
        static PyObject* const type =
            nanobind::object(nanobind::module_::import_("numpy").attr("ndarray")).release().ptr();
        static PyObject* const name = PyUnicode_InternFromString("__array_struct__");
        if (reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) != type) return;
        const nanobind::object capsule = nanobind::steal(PyObject_GetAttr(object.ptr(), name));
        if (!capsule.is_valid()) throw nanobind::python_error();
        const void* const found = PyCapsule_GetPointer(capsule.ptr(), nullptr);
        if (found == nullptr) throw nanobind::python_error();
        const ArrayInterface& of = *static_cast<const ArrayInterface*>(found);
        constexpr int contiguous = 0x1, aligned = 0x100, native = 0x200;
        constexpr int plain = contiguous | aligned | native;
        if (of.dimensions != 1 || (of.flags & plain) != plain) return;
        data_ = of.data;
        size_ = static_cast<std::size_t>(of.shape[0]);
        kind_ = of.kind;
        width_ = of.width;
    }

    std::size_t size() const { return size_; }

    // The entries if they are of this kind, else nothing.
    template <typename T>
    const T* of(char kind) const {
        return kind_ == kind && width_ == int{sizeof(T)} ? static_cast<const T*>(data_) : nullptr;
    }

  private:
    const void* data_ = nullptr;
    std::size_t size_ = 0;
    char kind_ = 0;
    int width_ = 0;
};

// Two such arrays, of outcomes and of as many forecasts; no round is checked yet.
class PlainRounds {
  public:
    static constexpr std::size_t few = 1 << 10;  // beyond, what Python takes does not matter

    PlainRounds(nanobind::handle y_true, nanobind::handle y_prob)
        : y_true_(y_true), y_prob_(y_prob), y_(y_true), p_(y_prob) {}

    std::size_t size() const { return p_.size(); }
    const double* p() const { return p_.of<double>('f'); }

    // What use(outcomes) returns; nothing, and it is not called, if these are not a few plain
    // rounds.
    template <typename Use>
    std::optional<bool> ask(Use use) const {
        if (p() == nullptr || size() == 0 || size() >= few || y_.size() != size()) return {};
        if (const auto* whole = y_.of<std::int64_t>('i')) return use(whole);
        if (const auto* real = y_.of<double>('f')) return use(real);
        if (const auto* byte = y_.of<std::uint8_t>('u')) return use(byte);
        if (const auto* flag = y_.of<std::uint8_t>('b')) return use(flag);
        return {};
    }

    // The same if it says whether all rounds are valid: Python says which one is not. Whether these
    // are a few plain rounds.
    template <typename Use>
    bool offer(Use use) const {
        const std::optional<bool> valid = ask(use);
        if (!valid) return false;
        if (*valid) return true;
        nanobind::module_::import_("truecast._check").attr("refuse_predictions")(y_true_, y_prob_);
        throw nanobind::value_error("some round is not valid");  // not reached
    }

  private:
    nanobind::handle y_true_, y_prob_;
    PlainArray y_, p_;
};

// The tally of a few rounds.
class FewRounds {
  public:
    template <typename Y>
    FewRounds(const double* p, const Y* y, std::size_t n, bool& valid)
        : total_(n), memory_(new std::byte[4 * n * sizeof(double)]) {
        const std::ptrdiff_t found = count(p, y, n, 1, memory_.get());
        valid = found >= 0;
        size_ = valid ? static_cast<std::size_t>(found) : 0;
        std::memcpy(column(3), column(0), size_ * sizeof(double));  // bits, to read as doubles
    }

    std::size_t total() const { return total_; }
    std::size_t size() const { return size_; }
    const double* p() const { return reinterpret_cast<const double*>(column(3)); }
    const std::int64_t* zeros() const { return reinterpret_cast<const std::int64_t*>(column(1)); }
    const std::int64_t* ones() const { return reinterpret_cast<const std::int64_t*>(column(2)); }

    // The three columns, one after the other, to memory for three times size() words.
    void write(void* memory) const { std::memcpy(memory, column(0), 3 * size_ * sizeof(double)); }

  private:
    std::byte* column(std::size_t k) const { return memory_.get() + k * size_ * sizeof(double); }

    std::size_t total_, size_ = 0;
    std::unique_ptr<std::byte[]> memory_;  // columns: bits of forecasts, zeros, ones, forecasts
};

}  // namespace truecast

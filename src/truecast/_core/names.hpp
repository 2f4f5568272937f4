// Names of groups, which are str and int objects, and their places in the order in which they came.
//
// A hash table in several parts: each grows on its own, so no single name takes long to add,
// however many there are.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "fetch.hpp"

namespace truecast {

class Names {
  public:
    static constexpr std::uint32_t unknown = 0xffffffff;

    // What a name is found by; the hash of a str is worked out once in its life.
    class Mark {
        friend class Names;
        std::size_t part;
        std::uint32_t home;

      public:
        Mark() = default;
        explicit Mark(nanobind::handle name) {
            const auto hash = static_cast<std::uint64_t>(PyObject_Hash(name.ptr()));
            const std::uint64_t mixed = hash * 0x9e3779b97f4a7c15;  // integers are their own hashes
            part = mixed >> 58;
            home = static_cast<std::uint32_t>(mixed >> 26);
        }
    };

    std::size_t size() const { return names.size(); }
    nanobind::handle operator[](std::size_t place) const { return names[place]; }

    std::uint32_t find(nanobind::handle name, const Mark& mark) const {
        const Part& part = parts[mark.part];
        if (part.empty()) return unknown;
        for (std::size_t i = mark.home;; ++i) {
            const Entry& entry = at(part, i);
            if (entry.name == nullptr) return unknown;
            if (entry.home == mark.home && equal(entry.name, name.ptr())) return entry.place;
        }
    }

    // Of a name that is not among them.
    void add(nanobind::handle name, const Mark& mark) {
        Part& part = parts[mark.part];
        if (2 * used[mark.part] >= part.size()) grow(part);
        names.push_back(nanobind::borrow(name));
        put(part, {name.ptr(), mark.home, static_cast<std::uint32_t>(names.size() - 1)});
        ++used[mark.part];
    }

    void drop_last() {
        const Mark mark(names.back());
        Part& part = parts[mark.part];
        std::size_t hole = mark.home;
        while (at(part, hole).name != names.back().ptr()) ++hole;
        // Invariant: all entries up to `i` would be found if the hole was filled. One fills it if
        // its home is not between the two.
        for (std::size_t i = hole + 1; at(part, i).name != nullptr; ++i)
            if (((i - at(part, i).home) & (part.size() - 1)) >= i - hole) {
                at(part, hole) = at(part, i);
                hole = i;
            }
        at(part, hole).name = nullptr;
        --used[mark.part];
        names.pop_back();
    }

    // Have what `find` needs fetched from memory: the entry and, once that is there, the name.
    void fetch_entry(const Mark& mark) const {
        if (!parts[mark.part].empty()) fetch(&at(parts[mark.part], mark.home), 1);
    }
    void fetch_name(const Mark& mark) const {
        if (!parts[mark.part].empty()) fetch(at(parts[mark.part], mark.home).name, 1);
    }

  private:
    struct Entry {
        PyObject* name = nullptr;  // one of `names`
        std::uint32_t home = 0;    // where it would be if nothing was there before
        std::uint32_t place = 0;
    };
    using Part = std::vector<Entry>;  // a power of two of them, at most half of them used

    static const Entry& at(const Part& part, std::size_t i) { return part[i & (part.size() - 1)]; }
    static Entry& at(Part& part, std::size_t i) { return part[i & (part.size() - 1)]; }

    static bool equal(PyObject* a, PyObject* b) {
        return a == b || (Py_TYPE(a) == Py_TYPE(b) && PyObject_RichCompareBool(a, b, Py_EQ) == 1);
    }

    static void put(Part& part, const Entry& entry) {
        std::size_t i = entry.home;
        while (at(part, i).name != nullptr) ++i;
        at(part, i) = entry;
    }

    static void grow(Part& part) {
        Part larger(part.empty() ? 8 : 2 * part.size());
        for (const Entry& entry : part)
            if (entry.name != nullptr) put(larger, entry);
        part.swap(larger);
    }

    std::deque<nanobind::object> names;
    std::array<Part, 64> parts;
    std::array<std::size_t, 64> used{};
};

}  // namespace truecast

// The lists of entries.hpp at the edge with Python: save, load and describe the numbers of a state.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "entries.hpp"

namespace truecast {

// Numbers, lists for rows that stay as long as they are, and arrays for all others.
nanobind::dict saved(const Entries& entries);

// Write what `saved` gave, or lists instead of arrays, to the places that the entries name. That it
// is in range, and fits together, is for the caller to check; here is what memory safety rests on.
void load(const Entries& entries, const nanobind::dict& numbers);

// (name, kind, length, least, most, meaning) of each entry. The kind is NumPy's, or "int" for
// integers of any size; the length is None for a single number, and -1 for a row of any length.
nanobind::list described(const Entries& entries);

// The same entries of many states, a column each. All of them are single numbers of 64 bits.
class Columns {
    std::vector<std::vector<std::int64_t>> columns;  // the bits of the numbers

  public:
    Columns() = default;
    Columns(const nanobind::dict& numbers, const Entries& names);

    void add(const Entries& state);
    void read(std::size_t row, const Entries& state) const;
    std::size_t rows() const { return columns.empty() ? 0 : columns[0].size(); }
    nanobind::dict dict(const Entries& names) const;
};

}  // namespace truecast

// The numbers of a state, each listed once: its name, where it lies, its range and its meaning.
//
// A state has a method `entries()` that gives this list. Saving, loading, the checks of ranges and
// the table of the format (docs/reference/state.md) come from it, so a new number is a new line
// there. What the numbers of a state must fulfil together is for its method `settle()`, or for
// Python, to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "wide.hpp"

namespace truecast {

// Numbers that stay as many as they are.
template <typename T>
struct Row {
    T* values;
    std::size_t count;
};

template <typename Numbers>
auto row(Numbers& all) {
    return Row<typename Numbers::value_type>{all.data(), all.size()};
}

struct Entry {
    using Place =
        std::variant<bool*, std::int64_t*, std::uint64_t*, double*, Wide*, Row<double>,
                     Row<std::int64_t>, std::vector<std::uint8_t>*, std::vector<std::uint16_t>*,
                     std::vector<std::int64_t>*, std::vector<std::uint64_t>*, std::vector<float>*,
                     std::vector<double>*>;

    const char* name;
    Place place;
    double least, most;  // of each number
    const char* meaning;

    template <typename T>
    Entry(const char* name_, T& number, double least_, double most_, const char* meaning_)
        : name(name_), place(&number), least(least_), most(most_), meaning(meaning_) {}
    template <typename T>
    Entry(const char* name_, Row<T> numbers, double least_, double most_, const char* meaning_)
        : name(name_), place(numbers), least(least_), most(most_), meaning(meaning_) {}
};

using Entries = std::vector<Entry>;

inline Entries joined(Entries all, const Entries& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

// Calls `use` with every number that is a float: those in rows too, one by one.
template <typename Use>
void each_float(const Entries& entries, Use use) {
    for (const Entry& entry : entries) {
        if (double* const* one = std::get_if<double*>(&entry.place)) use(**one, entry);
        if (const auto* row = std::get_if<Row<double>>(&entry.place))
            for (std::size_t k = 0; k < row->count; ++k) use(row->values[k], entry);
    }
}

// Whether all floats are in their ranges. One that is not a number is in none.
inline bool in_range(const Entries& entries) {
    bool all = true;
    each_float(entries,
               [&](double x, const Entry& of) { all = all && x >= of.least && x <= of.most; });
    return all;
}

// Whether columns are all of this length.
template <typename... Columns>
bool all_of_length(std::size_t count, const Columns&... columns) {
    return ((columns.size() == count) && ...);
}

constexpr double most_rounds = 0x1p53;  // counts are exact up to there, also as floats
constexpr double huge = 1e120;  // beyond what any number of rounds can lead to; products are finite
constexpr double largest = std::numeric_limits<double>::max();
constexpr double half_range =
    0x1p62;  // of the 64-bit integers: sums that are added to stay below it

}  // namespace truecast

// A guard's numbers for Python: those that a certificate is made of, and all of them, to be saved.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <vector>

#include "guard.hpp"

namespace truecast {

// Of a group: rounds, awaited, given up, squared error; the energy and the energy of the residuals'
// magnitudes; hidden over 2^40 and unknown over 2^32. And what the energies of all groups together
// cannot exceed. O(knots).
nanobind::tuple group_parts(const Guard& guard, std::size_t number);

// The entries of a saved guard; those that are tables as dicts of columns.
nanobind::dict saved(Guard& guard);

// Take over what `saved` gave, at once. That the numbers fit together is for the caller to check;
// here is what memory safety rests on.
void load(Guard& guard, const nanobind::dict& state);

// What a forecast was made from: the hint, and what the offsets of its groups said of it.
constexpr std::size_t aim_size = 1 + offsets::scales;
std::vector<double> aim_of(const Placed& made);

// A forecast that was made earlier; what it was made from matters only if it is of a group.
Placed placed(double said, Key key, std::int64_t worst, const double* aim);

}  // namespace truecast

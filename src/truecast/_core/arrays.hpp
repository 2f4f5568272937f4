// What the bindings share: arrays as the kernels take them, and the check of what memory safety
// rests on.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>

namespace truecast {

template <typename T, std::size_t Dimensions>
using Array =
    nanobind::ndarray<T, nanobind::ndim<Dimensions>, nanobind::c_contig, nanobind::device::cpu>;

inline void require(bool holds, const char* otherwise) {
    if (!holds) throw nanobind::value_error(otherwise);
}

void bind_arc(nanobind::module_& m);
void bind_delimited(nanobind::module_& m);
void bind_distance(nanobind::module_& m);
void bind_draws(nanobind::module_& m);
void bind_guard(nanobind::module_& m);
void bind_hints(nanobind::module_& m);
void bind_measures(nanobind::module_& m);
void bind_monitor(nanobind::module_& m);
void bind_recalibrate(nanobind::module_& m);
void bind_record(nanobind::module_& m);
void bind_classes(nanobind::module_& m);
void bind_split_ladder(nanobind::module_& m);

}  // namespace truecast

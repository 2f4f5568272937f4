// The kernels of tally and measures as Python sees them. Names and checks as in module.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "arc.hpp"
#include "arrays.hpp"
#include "bins.hpp"
#include "counting.hpp"
#include "curve.hpp"
#include "decision.hpp"
#include "few.hpp"
#include "heat.hpp"
#include "isotonic.hpp"
#include "laplace.hpp"
#include "line.hpp"
#include "logistic.hpp"
#include "lower.hpp"
#include "prices.hpp"
#include "scores.hpp"
#include "smooth.hpp"
#include "tally.hpp"
#include "threads.hpp"
#include "totals.hpp"
#include "weigh.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

using Doubles = Array<const double, 1>;
using AnyArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Outcomes come as bytes, integers or doubles.
template <typename Function>
auto with_outcomes(const AnyArray& y, Function function) {
    if (y.dtype() == nb::dtype<std::uint8_t>())
        return function(static_cast<const std::uint8_t*>(y.data()));
    if (y.dtype() == nb::dtype<std::int64_t>())
        return function(static_cast<const std::int64_t*>(y.data()));
    require(y.dtype() == nb::dtype<double>(), "outcomes must be uint8, int64 or float64");
    return function(static_cast<const double*>(y.data()));
}

// A frozen dataclass with these fields, in order: what its __init__ makes, which sets them one by
// one in Python.
nb::object made(nb::handle kind, nb::args fields) {
    static PyObject* const name = PyUnicode_InternFromString("__match_args__");
    require(PyType_Check(kind.ptr()), "there must be a class");
    const nb::object names = nb::steal(PyObject_GetAttr(kind.ptr(), name));
    if (!names.is_valid()) throw nb::python_error();
    require(PyTuple_Check(names.ptr()) && nb::len(names) == fields.size(),
            "there must be as many values as fields");
    nb::object one = nb::steal(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(kind.ptr()), 0));
    if (!one.is_valid()) throw nb::python_error();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        PyObject* const field = PyTuple_GetItem(names.ptr(), static_cast<Py_ssize_t>(i));
        if (PyObject_GenericSetAttr(one.ptr(), field, fields[i].ptr()) != 0)
            throw nb::python_error();
    }
    return one;
}

// Counts are integers, or doubles in a weighted tally.
template <typename Function>
auto with_counts(const Doubles& p, const AnyArray& zeros, const AnyArray& ones, Function function) {
    require(zeros.shape(0) == p.shape(0) && ones.shape(0) == p.shape(0),
            "there must be counts for each forecast");
    require(zeros.dtype() == ones.dtype(), "zeros and ones must be of one type");
    nb::gil_scoped_release unlocked;
    if (zeros.dtype() == nb::dtype<std::int64_t>())
        return function(static_cast<const std::int64_t*>(zeros.data()),
                        static_cast<const std::int64_t*>(ones.data()));
    require(zeros.dtype() == nb::dtype<double>(), "counts must be int64 or float64");
    return function(static_cast<const double*>(zeros.data()),
                    static_cast<const double*>(ones.data()));
}

inline nb::object as_object(double value) { return nb::float_(value); }
template <std::size_t N>
nb::object as_object(const std::array<double, N>& values) {
    return std::apply([](auto... each) { return nb::make_tuple(each...); }, values);
}
nb::object as_object(const std::vector<double>& values) {
    nb::list list;
    for (const double value : values) list.append(value);
    return list;
}

// An array, read-only, that owns its memory.
nb::object as_array(std::vector<double> values, std::initializer_list<std::size_t> shape) {
    auto* const memory = new std::vector<double>(std::move(values));
    const nb::capsule owner(memory, [](void* of) noexcept { delete static_cast<Column*>(of); });
    return nb::cast(nb::ndarray<nb::numpy, const double>(memory->data(), shape, owner));
}
nb::object as_object(PriceBounds found) {
    const std::size_t nodes = found.prices.size(), values = found.values.size();
    Column prices = std::move(found.prices.of_zero);
    prices.insert(prices.end(), found.prices.of_one.begin(), found.prices.of_one.end());
    return nb::make_tuple(found.lower, found.upper, as_array(std::move(found.prices.at), {nodes}),
                          as_array(std::move(prices), {2, nodes}),
                          as_array(std::move(found.values), {values}),
                          as_array(std::move(found.masses), {values}));
}

// Columns of numbers in memory of Python's, which numpy takes as it is, read-only.
class PackedColumns {
  public:
    explicit PackedColumns(std::size_t numbers)
        : bytes_(nb::steal(PyBytes_FromStringAndSize(
              nullptr, static_cast<Py_ssize_t>(numbers * sizeof(double))))) {
        if (!bytes_.is_valid()) throw nb::python_error();
    }

    double* data() { return reinterpret_cast<double*>(PyBytes_AsString(bytes_.ptr())); }
    const nb::object& bytes() const { return bytes_; }

  private:
    nb::object bytes_;
};

// What a kernel, of forecasts, zeros, ones and how many there are, finds in a few rounds.
template <typename Kernel>
nb::object of_few(const FewRounds& few, Kernel kernel) {
    return as_object(kernel(few.p(), few.zeros(), few.ones(), few.size()));
}

// The same of a tally's columns.
template <typename Kernel>
nb::object of_columns(const Doubles& p, const AnyArray& zeros, const AnyArray& ones,
                      Kernel kernel) {
    return as_object(with_counts(p, zeros, ones, [&](const auto* no, const auto* yes) {
        return kernel(p.data(), no, yes, p.shape(0));
    }));
}

// Binds a kernel three times: for a few rounds, for a tally, and for its columns.
template <typename... Options, typename Kernel, typename... Names>
void bind_kernel(nb::module_& m, const char* name, Kernel kernel, const Names&... names) {
    m.def(
        name,
        [kernel](const FewRounds& tally, Options... options) {
            return of_few(tally, [&](auto... of) { return kernel(of..., options...); });
        },
        "tally"_a, names...);
    m.def(
        name,
        [kernel](nb::handle tally, Options... options) {
            return of_columns(nb::cast<Doubles>(tally.attr("p")),
                              nb::cast<AnyArray>(tally.attr("zeros")),
                              nb::cast<AnyArray>(tally.attr("ones")),
                              [&](auto... of) { return kernel(of..., options...); });
        },
        "tally"_a, names...);
    m.def(
        name,
        [kernel](Doubles p, AnyArray zeros, AnyArray ones, Options... options) {
            return of_columns(p, zeros, ones,
                              [&](auto... of) { return kernel(of..., options...); });
        },
        "p"_a, "zeros"_a, "ones"_a, names...);
}

// The tally of a few rounds in plain arrays; None if they are not.
nb::object few_rounds(nb::handle y_true, nb::handle y_prob) {
    const PlainRounds rounds(y_true, y_prob);
    nb::object found = nb::none();
    rounds.offer([&](const auto* y) {
        bool valid = false;
        FewRounds few(rounds.p(), y, rounds.size(), valid);
        if (valid) found = nb::cast(std::move(few));
        return valid;
    });
    return found;
}

// Probabilities, and as many outcomes as bytes, of a few rounds in plain arrays; all others go
// through the checks in Python.
nb::object scored(nb::handle name, nb::handle values, nb::handle outcomes, nb::handle scale,
                  std::size_t models) {
    if (models == 1 && nb::cast<std::string_view>(scale) == "probability") {
        const PlainRounds rounds(outcomes, values);
        const nb::object bits =
            nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(rounds.size())));
        if (!bits.is_valid()) throw nb::python_error();
        char* const to = PyBytes_AsString(bits.ptr());
        const auto valid = rounds.ask([&](const auto* y) {
            bool bad = false;
            for (std::size_t t = 0; t < rounds.size(); ++t) {
                const Round round(rounds.p()[t], y[t]);
                bad |= round.invalid();
                to[t] = static_cast<char>(round.outcome & 1);
            }
            return !bad;
        });
        static PyObject* const numpy = nb::module_::import_("numpy").release().ptr();
        if (valid.value_or(false))
            return nb::make_tuple(values, nb::handle(numpy).attr("frombuffer")(bits, "B"));
    }
    return nb::module_::import_("truecast._check")
        .attr("scored")(name, values, outcomes, "scale"_a = scale, "models"_a = models);
}

std::size_t unpack_rounds(Array<std::uint64_t, 1> keys, Array<std::int64_t, 1> zeros,
                          Array<std::int64_t, 1> ones) {
    require(zeros.shape(0) == keys.shape(0) && ones.shape(0) == keys.shape(0),
            "arrays must be of one length");
    nb::gil_scoped_release unlocked;
    return unpack(keys.data(), keys.shape(0), keys.data(), zeros.data(), ones.data());
}

bool are_rounds(Doubles p, AnyArray y) {
    require(y.shape(0) == p.shape(0), "arrays must be of one length");
    return with_outcomes(y, [&](const auto* outcomes) {
        const nb::gil_scoped_release unlocked;
        return valid(p.data(), outcomes, p.shape(0));
    });
}

// How many distinct forecasts there are; -1 if some round is invalid. Columns of that length are at
// the beginning of the memory: forecasts, zeros, ones.
std::ptrdiff_t count_rounds(Doubles p, AnyArray y, std::size_t threads, Array<double, 1> memory) {
    const std::size_t n = p.shape(0);
    require(y.shape(0) == n && threads >= 1, "arrays must be of one length");
    require(memory.shape(0) == 3 * n, "there must be room for all rounds");
    return with_outcomes(y, [&](const auto* outcomes) {
        nb::gil_scoped_release unlocked;
        return count(p.data(), outcomes, n, threads, memory.data());
    });
}

template <typename W>
std::ptrdiff_t weigh_rounds(Doubles p, AnyArray y, Array<const W, 1> weights, std::size_t threads,
                            Array<double, 1> memory, Array<double, 1> room) {
    const std::size_t n = p.shape(0);
    require(y.shape(0) == n && weights.shape(0) == n && threads >= 1,
            "arrays must be of one length");
    require(memory.shape(0) == 3 * n && room.shape(0) * sizeof(double) == n * sizeof(Weighed<W>),
            "there must be room for all rounds");
    return with_outcomes(y, [&](const auto* outcomes) {
        nb::gil_scoped_release unlocked;
        return weigh(p.data(), outcomes, weights.data(), n, threads, memory.data(),
                     reinterpret_cast<Weighed<W>*>(room.data()));
    });
}

// How many distinct forecasts there are, if few; -1 if too many, -2 if some round is invalid.
template <typename W>
std::ptrdiff_t weigh_few(Doubles p, AnyArray y, Array<const W, 1> weights,
                         Array<double, 1> forecasts, Array<W, 1> zeros, Array<W, 1> ones) {
    const std::size_t n = p.shape(0), most = FewForecasts::most;
    require(y.shape(0) == n && weights.shape(0) == n, "arrays must be of one length");
    require(forecasts.shape(0) >= most && zeros.shape(0) >= most && ones.shape(0) >= most,
            "there must be room");
    return with_outcomes(y, [&](const auto* outcomes) -> std::ptrdiff_t {
        nb::gil_scoped_release unlocked;
        FewWeighed<W> few;
        const int done = few.add(p.data(), outcomes, weights.data(), n);
        if (done != 1) return done - 1;
        for (std::size_t k = 0; k < few.forecasts.size(); ++k) {
            forecasts.data()[k] = few.forecasts[k];
            zeros.data()[k] = few.sums[2 * k].rounded();
            ones.data()[k] = few.sums[2 * k + 1].rounded();
        }
        return static_cast<std::ptrdiff_t>(few.forecasts.size());
    });
}

template <typename W>
void bind_weighing(nb::module_& m) {
    m.def("weigh_rounds", &weigh_rounds<W>, "p"_a, "y"_a, "weights"_a.noconvert(), "threads"_a,
          "memory"_a, "room"_a);
    m.def("weigh_few", &weigh_few<W>, "p"_a, "y"_a, "weights"_a.noconvert(), "forecasts"_a,
          "zeros"_a, "ones"_a);
}

std::ptrdiff_t count_few(Doubles p, AnyArray y, Array<double, 1> forecasts,
                         Array<std::int64_t, 2> counts) {
    require(y.shape(0) == p.shape(0), "arrays must be of one length");
    require(forecasts.shape(0) >= FewForecasts::most, "there must be room for the forecasts");
    require(counts.shape(0) == 2 && counts.shape(1) == forecasts.shape(0),
            "counts must have shape (2, forecasts)");
    return with_outcomes(y, [&](const auto* outcomes) -> std::ptrdiff_t {
        nb::gil_scoped_release unlocked;
        FewForecasts few;
        const int done = few.count(p.data(), outcomes, p.shape(0));
        if (done != 1) return done - 1;  // -1: too many, -2: invalid
        std::size_t k = 0;
        for (std::size_t slot = 0; slot < FewForecasts::slots; ++slot) {
            if (few.forecasts[slot] == FewForecasts::none) continue;
            forecasts.data()[k] = forecast_of(few.forecasts[slot]);
            counts.data()[k] = few.counts[2 * slot];
            counts.data()[counts.shape(1) + k] = few.counts[2 * slot + 1];
            ++k;
        }
        return static_cast<std::ptrdiff_t>(k);
    });
}

template <typename Count>
std::size_t merge_tallies(Doubles p1, Array<const Count, 1> zeros1, Array<const Count, 1> ones1,
                          Doubles p2, Array<const Count, 1> zeros2, Array<const Count, 1> ones2,
                          Array<double, 1> p, Array<Count, 1> zeros, Array<Count, 1> ones,
                          std::size_t threads) {
    const std::size_t n1 = p1.shape(0), n2 = p2.shape(0), room = p.shape(0);
    require(threads >= 1 && threads <= std::max(n1, n2), "each thread must have a forecast");
    require(zeros1.shape(0) == n1 && ones1.shape(0) == n1,
            "there must be counts for each forecast");
    require(zeros2.shape(0) == n2 && ones2.shape(0) == n2,
            "there must be counts for each forecast");
    require(room >= n1 + n2 && zeros.shape(0) == room && ones.shape(0) == room,
            "there must be room for the result");
    nb::gil_scoped_release unlocked;
    return merge(p1.data(), zeros1.data(), ones1.data(), n1, p2.data(), zeros2.data(), ones2.data(),
                 n2, p.data(), zeros.data(), ones.data(), threads);
}

bool bin_all(Doubles p, AnyArray y, Doubles edges, Array<std::int64_t, 2> counts,
             Array<double, 2> means) {
    const std::size_t bins = counts.shape(1);
    require(y.shape(0) == p.shape(0), "arrays must be of one length");
    require(bins >= 1 && edges.shape(0) == bins + 1 && counts.shape(0) == 2 &&
                means.shape(0) == 2 && means.shape(1) == bins,
            "there must be two counts and two means for each bin");
    const BinColumns to{counts.data(), counts.data() + bins, means.data(), means.data() + bins};
    return with_outcomes(y, [&](const auto* outcomes) {
        nb::gil_scoped_release unlocked;
        return bin_rounds(p.data(), outcomes, p.shape(0), edges.data(), bins, to);
    });
}

Norm norm_of(int number) {
    require(number >= 0 && number <= 2, "there are three norms");
    return static_cast<Norm>(number);
}

double binned_error(Doubles forecast, AnyArray zeros, AnyArray ones, Doubles rate, int norm) {
    require(rate.shape(0) == forecast.shape(0), "arrays must be of one length");
    return with_counts(forecast, zeros, ones, [&](const auto* of_zero, const auto* of_one) {
        return gap_norm(of_zero, of_one, forecast.data(), rate.data(), rate.shape(0),
                        norm_of(norm));
    });
}

double debiased_error(Doubles forecast, Array<const std::int64_t, 1> zeros,
                      Array<const std::int64_t, 1> ones, Doubles rate, int norm) {
    const std::size_t bins = rate.shape(0);
    require(forecast.shape(0) == bins && zeros.shape(0) == bins && ones.shape(0) == bins,
            "arrays must be of one length");
    return debiased_norm(zeros.data(), ones.data(), forecast.data(), rate.data(), bins,
                         norm_of(norm));
}

// The same straight from rounds; NaN if some round is invalid.
double binned_error_of_rounds(AnyArray y, Doubles p, Doubles edges, int norm) {
    require(y.shape(0) == p.shape(0) && p.shape(0) > 0 && edges.shape(0) >= 2,
            "arrays must be of one length");
    const std::size_t bins = edges.shape(0) - 1;
    return with_outcomes(y, [&](const auto* outcomes) {
        nb::gil_scoped_release unlocked;
        std::vector<std::int64_t> zeros(bins), ones(bins);
        std::vector<double> forecast(bins), rate(bins);
        const BinColumns to{zeros.data(), ones.data(), forecast.data(), rate.data()};
        if (!bin_rounds(p.data(), outcomes, p.shape(0), edges.data(), bins, to))
            return std::nan("");
        return gap_norm(zeros.data(), ones.data(), forecast.data(), rate.data(), bins,
                        norm_of(norm));
    });
}

// Uniform bins of a few rounds in plain arrays; false if they are not.
class FewBins {
  public:
    explicit FewBins(std::size_t bins)
        : bins_(bins), edges_(bins + 1), counts_(2 * bins), means_(2 * bins) {
        for (std::size_t k = 0; k <= bins; ++k)
            edges_[k] = static_cast<double>(k) / static_cast<double>(bins);
    }

    bool add(const PlainRounds& rounds) {
        const BinColumns to{counts_.data(), counts_.data() + bins_, means_.data(),
                            means_.data() + bins_};
        return rounds.offer([&](const auto* y) {
            return bin_rounds(rounds.p(), y, rounds.size(), edges_.data(), bins_, to);
        });
    }

    double error(Norm norm) const {
        return gap_norm(counts_.data(), counts_.data() + bins_, means_.data(),
                        means_.data() + bins_, bins_, norm);
    }

    // Zeros, ones, mean forecasts and rates, one column after the other.
    void write(double* memory) const {
        std::memcpy(memory, counts_.data(), 2 * bins_ * sizeof(double));
        std::memcpy(memory + 2 * bins_, means_.data(), 2 * bins_ * sizeof(double));
    }

  private:
    std::size_t bins_;
    std::vector<double> edges_;
    std::vector<std::int64_t> counts_;
    std::vector<double> means_;
};

// The four columns of bins; None if these are not a few rounds in plain arrays.
nb::object bin_few(nb::handle y_true, nb::handle y_prob, std::size_t n_bins) {
    require(n_bins >= 1 && n_bins <= 1 << 24, "there must be from 1 to 2**24 bins");
    FewBins bins(n_bins);
    if (!bins.add(PlainRounds(y_true, y_prob))) return nb::none();
    PackedColumns columns(4 * n_bins);
    bins.write(columns.data());
    return columns.bytes();
}

nb::object binned_error_of_few(nb::handle y_true, nb::handle y_prob, std::size_t n_bins, int norm) {
    require(n_bins >= 1 && n_bins <= 1 << 24, "there must be from 1 to 2**24 bins");
    FewBins bins(n_bins);
    if (!bins.add(PlainRounds(y_true, y_prob))) return nb::none();
    return nb::float_(bins.error(norm_of(norm)));
}

nb::object quantile_edges_of(Doubles p, AnyArray zeros, AnyArray ones, double total,
                             std::int64_t bins) {
    require(bins >= 1 && bins <= 1 << 24, "there must be from 1 to 2**24 bins");
    std::vector<double> edges = with_counts(p, zeros, ones, [&](const auto* no, const auto* yes) {
        return quantile_edges(p.data(), no, yes, p.shape(0),
                              static_cast<std::decay_t<decltype(*no)>>(total), bins);
    });
    const std::size_t size = edges.size();
    return as_array(std::move(edges), {size});
}

// Bins of a tally: zeros, ones, mean forecasts and rates, one column after the other.
void bin_counts(Doubles p, Array<const std::int64_t, 1> zeros, Array<const std::int64_t, 1> ones,
                Doubles edges, Array<double, 1> memory) {
    require(zeros.shape(0) == p.shape(0) && ones.shape(0) == p.shape(0),
            "there must be counts for each forecast");
    require(edges.shape(0) >= 2 && memory.shape(0) == 4 * (edges.shape(0) - 1),
            "there must be room for four columns");
    const std::size_t bins = edges.shape(0) - 1;
    auto* const counts = reinterpret_cast<std::int64_t*>(memory.data());
    const BinColumns to{counts, counts + bins, memory.data() + 2 * bins, memory.data() + 3 * bins};
    nb::gil_scoped_release unlocked;
    bin_tally(p.data(), zeros.data(), ones.data(), p.shape(0), edges.data(), bins, to);
}

template <typename Count>
std::size_t isotonic_blocks(Array<const Count, 1> zeros, Array<const Count, 1> ones,
                            Array<std::int64_t, 1> starts, Array<Count, 1> block_zeros,
                            Array<Count, 1> block_ones) {
    const std::size_t n = zeros.shape(0);
    require(ones.shape(0) == n && starts.shape(0) == n && block_zeros.shape(0) == n &&
                block_ones.shape(0) == n,
            "arrays must be of one length");
    nb::gil_scoped_release unlocked;
    return isotonic(zeros.data(), ones.data(), n, starts.data(), block_zeros.data(),
                    block_ones.data());
}

nb::tuple as_tuple(const ScoresOfRates& of) {
    return nb::make_tuple(of.brier, of.log, of.brier_of_all, of.log_of_all);
}

nb::tuple scores_of_blocks(Doubles rates, AnyArray zeros, AnyArray ones) {
    return as_tuple(with_counts(rates, zeros, ones, [&](const auto* no, const auto* yes) {
        return scores_of_rates(no, yes, rates.shape(0));
    }));
}

// Of residuals, each divided by the total. The witness is room for it, or nothing.
template <typename Count>
double smooth_error(const double* p, const Count* zeros, const Count* ones, std::size_t n,
                    double total, double* witness) {
    const auto c = [&](std::size_t i) { return residual(p[i], zeros[i], ones[i]) / total; };
    SmoothError error(p, c, n, witness != nullptr);
    if (witness != nullptr) error.witness(witness);
    return error.value();
}

double smooth_error_of_tally(Doubles p, AnyArray zeros, AnyArray ones, double total,
                             Array<double, 1> witness) {
    const std::size_t n = p.shape(0);
    require(n >= 1 && n < 0xffffffff, "there must be from 1 to 2**32 - 2 forecasts");
    require(witness.shape(0) == n || witness.shape(0) == 0,
            "the witness must have an entry for each forecast");
    return with_counts(p, zeros, ones, [&](const auto* of_zero, const auto* of_one) {
        return smooth_error(p.data(), of_zero, of_one, n, total,
                            witness.shape(0) != 0 ? witness.data() : nullptr);
    });
}

double smooth_error_of_few(const FewRounds& few) {
    return smooth_error(few.p(), few.zeros(), few.ones(), few.size(),
                        static_cast<double>(few.total()), nullptr);
}

// The error; the forecasts, then the witness at each.
nb::tuple smooth_witness_of_few(const FewRounds& few) {
    const std::size_t n = few.size();
    PackedColumns columns(2 * n);
    std::copy(few.p(), few.p() + n, columns.data());
    const double error = smooth_error(few.p(), few.zeros(), few.ones(), n,
                                      static_cast<double>(few.total()), columns.data() + n);
    return nb::make_tuple(error, columns.bytes());
}

// The energy, the energy of the residuals' magnitudes, and the mean of the energy if the forecasts
// are right.
template <typename Count>
std::array<double, 3> energy_on_arc(const double* p, const Count* zeros, const Count* ones,
                                    std::size_t n, bool threads) {
    const ArcEnergy found = arc_energy(p, TallyResiduals<Count>{zeros, ones}, n, 0, threads);
    return {found.energy, found.gross, found.expected};
}

template <typename Count>
double decision_sum(const double* p, const Count* zeros, const Count* ones, std::size_t n) {
    require(n < 0xffffffff, "there must be fewer than 2**32 - 1 forecasts");
    return decision_loss(p, zeros, ones, n);
}

// Sums of several scores straight from rounds.
template <typename... Scores>
class RoundSums {
  public:
    // False if some round is invalid.
    template <typename Y>
    bool take(const double* p, const Y* y, std::size_t n) {
        std::size_t k = 0;
        return (score_rounds<Scores>(p, y, n, sums_[k++]) && ...);
    }
    void add(const RoundSums& other) {
        for (std::size_t k = 0; k < sums_.size(); ++k) sums_[k].add(other.sums_[k]);
    }

    // Nothing if the last one is so small that all must be taken over the tally.
    nb::object rounded() const {
        if (!is_precise(sums_.back())) return nb::none();
        return std::apply([](const auto&... each) { return object_of(each.rounded()...); }, sums_);
    }

  private:
    static nb::object object_of(double one) { return nb::float_(one); }
    static nb::object object_of(double one, double other) { return nb::make_tuple(one, other); }

    std::array<ExactSum, sizeof...(Scores)> sums_;
};

// None if they must be taken over the tally; False if some round is invalid.
template <typename... Scores>
nb::object sums_over_rounds(AnyArray y, Doubles p, std::size_t threads) {
    const std::size_t n = p.shape(0);
    require(y.shape(0) == n && threads >= 1, "arrays must be of one length");
    std::vector<RoundSums<Scores...>> sums(threads);
    std::vector<char> valid(threads);
    with_outcomes(y, [&](const auto* outcomes) {
        nb::gil_scoped_release unlocked;
        in_threads(threads, [&](std::size_t k) {
            const std::size_t from = n * k / threads, to = n * (k + 1) / threads;
            valid[k] = sums[k].take(p.data() + from, outcomes + from, to - from);
        });
    });
    for (std::size_t k = 1; k < threads; ++k) sums[0].add(sums[k]);
    if (std::find(valid.begin(), valid.end(), 0) != valid.end()) return nb::bool_(false);
    return sums[0].rounded();
}

// The same of a few rounds in plain arrays; None, too, if they are not.
template <typename... Scores>
nb::object sums_over_few(nb::handle y_true, nb::handle y_prob) {
    const PlainRounds rounds(y_true, y_prob);
    RoundSums<Scores...> sums;
    const bool known =
        rounds.offer([&](const auto* y) { return sums.take(rounds.p(), y, rounds.size()); });
    return known ? sums.rounded() : nb::none();
}

template <typename... Scores>
void bind_sums(nb::module_& m, const char* of_rounds, const char* of_few) {
    m.def(of_rounds, &sums_over_rounds<Scores...>, "y"_a, "p"_a, "threads"_a);
    m.def(of_few, &sums_over_few<Scores...>, "y_true"_a.none(), "y_prob"_a.none());
}

// Ones, and how many the forecasts expected.
template <typename Count>
std::array<double, 2> observed_expected(const double* p, const Count* zeros, const Count* ones,
                                        std::size_t n) {
    return {score_sum<Observed>(p, zeros, ones, n), score_sum<Expected>(p, zeros, ones, n)};
}

// The curve's own errors, and as many quantiles of them as there are shares.
template <typename... Shares>
nb::object curve_errors_of_few(const FewRounds& few, Shares... shares) {
    return of_few(few, [&](const double* p, auto* zeros, auto* ones, std::size_t n) {
        const Curve curve(zeros, ones, n);
        const std::array<double, sizeof...(shares)> asked{shares...};
        return curve_errors(
            p, zeros, ones, n, [&](std::size_t k) { return p[curve.starts[k]]; },
            [&](std::size_t k) { return rate_of(curve.zeros[k], curve.ones[k]); }, curve.blocks,
            asked.data(), asked.size());
    });
}

nb::object curve_errors_of_tally(Doubles p, AnyArray zeros, AnyArray ones, Doubles lower,
                                 Doubles rates, Doubles shares) {
    require(lower.shape(0) == rates.shape(0) && rates.shape(0) > 0 && p.shape(0) > 0 &&
                p.shape(0) < 0xffffffff,
            "there must be a rate for each block");
    return as_object(with_counts(p, zeros, ones, [&](const auto* no, const auto* yes) {
        return curve_errors(
            p.data(), no, yes, p.shape(0), [&](std::size_t k) { return lower.data()[k]; },
            [&](std::size_t k) { return rates.data()[k]; }, rates.shape(0), shares.data(),
            shares.shape(0));
    }));
}

// A score taken apart, by those of the recalibrated forecasts and of the mean outcome. What is
// never negative must not become so by rounding.
nb::tuple decomposed(double said, double recalibrated, double constant) {
    return nb::make_tuple(std::max(0.0, said), std::max(0.0, said - recalibrated),
                          std::max(0.0, constant - recalibrated), constant);
}

// The reliability curve of a few forecasts: how many blocks it has; their columns (least forecasts,
// greatest ones, rates, zeros, ones); and both scores, taken apart.
nb::tuple packed_curve(const double* p, const std::int64_t* zeros, const std::int64_t* ones,
                       std::size_t n, double total) {
    const Curve curve(zeros, ones, n);
    PackedColumns columns(5 * curve.blocks);
    double* const out = columns.data();
    for (std::size_t k = 0; k < curve.blocks; ++k) {
        out[k] = p[curve.starts[k]];
        out[curve.blocks + k] = p[curve.last(k, n)];
        out[2 * curve.blocks + k] = rate_of(curve.zeros[k], curve.ones[k]);
    }
    const std::size_t bytes = curve.blocks * sizeof(double);
    std::memcpy(out + 3 * curve.blocks, curve.zeros.get(), bytes);
    std::memcpy(out + 4 * curve.blocks, curve.ones.get(), bytes);
    const auto scores = scores_of_rates(curve.zeros.get(), curve.ones.get(), curve.blocks);
    const double brier = score_sum<SquaredError>(p, zeros, ones, n),
                 log = score_sum<LogLoss>(p, zeros, ones, n);
    return nb::make_tuple(curve.blocks, columns.bytes(),
                          decomposed(brier / total, scores.brier, scores.brier_of_all),
                          decomposed(log / total, scores.log, scores.log_of_all));
}

nb::tuple curve_of_few(const FewRounds& few) {
    return packed_curve(few.p(), few.zeros(), few.ones(), few.size(),
                        static_cast<double>(few.total()));
}

nb::tuple curve_of_columns(Doubles p, Array<const std::int64_t, 1> zeros,
                           Array<const std::int64_t, 1> ones, double total) {
    require(zeros.shape(0) == p.shape(0) && ones.shape(0) == p.shape(0) && p.shape(0) > 0,
            "there must be counts for each forecast");
    return packed_curve(p.data(), zeros.data(), ones.data(), p.shape(0), total);
}

// Of counts, or weights, each divided by the total.
double transport_cost(Doubles x, AnyArray from, Doubles v, Doubles to, double total) {
    require(to.shape(0) == v.shape(0), "arrays must be of one length");
    return with_counts(x, from, from, [&](const auto* counts, const auto*) {
        return transport(
            x.data(), [&](std::size_t i) { return static_cast<double>(counts[i]) / total; },
            x.shape(0), v.data(), to.data(), v.shape(0));
    });
}

void spread_residuals(Doubles p, AnyArray zeros, AnyArray ones, Doubles nodes,
                      Array<double, 1> out) {
    require(nodes.shape(0) >= 2 && out.shape(0) == nodes.shape(0),
            "out must have an entry for each node");
    with_counts(p, zeros, ones, [&](const auto* of_zero, const auto* of_one) {
        spread(
            p.data(), [&](std::size_t i) { return residual(p.data()[i], of_zero[i], of_one[i]); },
            p.shape(0), nodes.data(), nodes.shape(0), out.data());
        return 0;
    });
}

std::size_t solve_prices(Doubles nodes, Array<const double, 2> masses, double tolerance,
                         std::size_t most, Array<double, 2> prices, Array<double, 1> atoms) {
    const std::size_t n = nodes.shape(0);
    require(n >= 2, "there must be two nodes or more");
    require(masses.shape(0) == 2 && masses.shape(1) == n, "masses must have shape (2, nodes)");
    require(prices.shape(0) == 2 && prices.shape(1) == n, "prices must have shape (2, nodes)");
    require(atoms.shape(0) == n, "there must be an atom for each node");
    nb::gil_scoped_release unlocked;
    return Prices(nodes.data(), masses.data(), masses.data() + n, n, prices.data(), atoms.data())
        .solve(tolerance, most);
}

}  // namespace

void bind_measures(nb::module_& m) {
    m.def("made", &made, "kind"_a, "fields"_a);
    m.def("decomposed", &decomposed, "said"_a, "recalibrated"_a, "constant"_a);
    m.attr("FEW") = FewForecasts::most;
    nb::class_<FewRounds>(m, "FewRounds", "The tally of a few rounds, as kernels take it.")
        .def_prop_ro("total", &FewRounds::total, "Rounds.")
        .def("__len__", &FewRounds::size, "Distinct forecasts.")
        .def(
            "_columns",
            [](const FewRounds& of) {
                PackedColumns columns(3 * of.size());
                of.write(columns.data());
                return columns.bytes();
            },
            "Forecasts, zeros and ones, one column after the other.")
        .attr("weighted") = false;
    m.def("few_rounds", &few_rounds, "y_true"_a.none(), "y_prob"_a.none());
    m.def("scored", &scored, "name"_a, "values"_a.none(), "outcomes"_a.none(),
          "scale"_a = "probability", "models"_a = 1);
    m.def("are_rounds", &are_rounds, "p"_a, "y"_a,
          "Whether all forecasts are from 0 to 1, and all outcomes 0 or 1.");
    m.def("count_rounds", &count_rounds, "p"_a, "y"_a, "threads"_a, "memory"_a);
    m.def("unpack_rounds", &unpack_rounds, "keys"_a, "zeros"_a, "ones"_a);
    bind_weighing<std::int64_t>(m);
    bind_weighing<double>(m);
    m.def("count_few", &count_few, "p"_a, "y"_a, "forecasts"_a, "counts"_a);
    m.def("merge_tallies", &merge_tallies<std::int64_t>, "p1"_a, "zeros1"_a.noconvert(),
          "ones1"_a.noconvert(), "p2"_a, "zeros2"_a.noconvert(), "ones2"_a.noconvert(), "p"_a,
          "zeros"_a, "ones"_a, "threads"_a);
    m.def("merge_tallies", &merge_tallies<double>, "p1"_a, "zeros1"_a.noconvert(),
          "ones1"_a.noconvert(), "p2"_a, "zeros2"_a.noconvert(), "ones2"_a.noconvert(), "p"_a,
          "zeros"_a, "ones"_a, "threads"_a);
    m.def("bin_rounds", &bin_all, "p"_a, "y"_a, "edges"_a, "counts"_a, "means"_a);
    m.def("binned_error", &binned_error, "forecast"_a, "zeros"_a, "ones"_a, "rate"_a, "norm"_a);
    m.def("binned_error_of_rounds", &binned_error_of_rounds, "y"_a, "p"_a, "edges"_a, "norm"_a);
    m.def("bin_few", &bin_few, "y_true"_a.none(), "y_prob"_a.none(), "n_bins"_a);
    m.def("binned_error_of_few", &binned_error_of_few, "y_true"_a.none(), "y_prob"_a.none(),
          "n_bins"_a, "norm"_a);
    m.def("debiased_error", &debiased_error, "forecast"_a, "zeros"_a, "ones"_a, "rate"_a, "norm"_a);
    m.def("quantile_edges", &quantile_edges_of, "p"_a, "zeros"_a, "ones"_a, "total"_a, "n_bins"_a);
    m.def("bin_tally", &bin_counts, "p"_a, "zeros"_a, "ones"_a, "edges"_a, "memory"_a);
    m.def("isotonic", &isotonic_blocks<std::int64_t>, "zeros"_a.noconvert(), "ones"_a.noconvert(),
          "starts"_a, "block_zeros"_a, "block_ones"_a);
    m.def("isotonic", &isotonic_blocks<double>, "zeros"_a.noconvert(), "ones"_a.noconvert(),
          "starts"_a, "block_zeros"_a, "block_ones"_a);
    m.def("scores_of_blocks", &scores_of_blocks, "rates"_a, "zeros"_a, "ones"_a);
    m.def("smooth_error", &smooth_error_of_few, "tally"_a);
    m.def("smooth_witness", &smooth_witness_of_few, "tally"_a);
    m.def("smooth_error", &smooth_error_of_tally, "p"_a, "zeros"_a, "ones"_a, "total"_a,
          "witness"_a);
    bind_kernel<bool>(
        m, "arc_energy", [](auto... of) { return energy_on_arc(of...); }, "threads"_a = true);
    bind_kernel<double, bool>(
        m, "laplace_sum", [](auto... of) { return laplace(of...); }, "scale"_a, "threads"_a);
    bind_kernel<double>(m, "smooth_ece", [](auto... of) { return smooth_ece(of...); }, "total"_a);
    bind_kernel(m, "u_calibration_sum", [](auto... tally) { return u_calibration(tally...); });
    bind_kernel(m, "decision_sum", [](auto... tally) { return decision_sum(tally...); });
    bind_kernel(m, "residual_sum", [](auto... tally) { return absolute_residuals(tally...); });
    bind_kernel(m, "two_bin_sum", [](auto... tally) { return two_bin_squares(tally...); });
    bind_kernel(m, "brier_sum", [](auto... tally) { return score_sum<SquaredError>(tally...); });
    bind_kernel(m, "log_sum", [](auto... tally) { return score_sum<LogLoss>(tally...); });
    bind_sums<SquaredError>(m, "brier_rounds", "brier_few");
    bind_sums<LogLoss>(m, "log_rounds", "log_few");
    bind_sums<Observed, Expected>(m, "observed_expected_rounds", "observed_expected_few");
    m.def(
        "logistic_sums",
        [](Doubles z, Doubles zeros, Doubles ones, double a, double b) {
            require(zeros.shape(0) == z.shape(0) && ones.shape(0) == z.shape(0),
                    "there must be counts for each of the log-odds");
            const Graded<double> at{z.data(), zeros.data(), ones.data(), z.shape(0)};
            const auto [by_a, by_b, aa, ab, bb] = at.lined(a, b);
            return nb::make_tuple(at.loss(a, b), by_a, by_b, aa, ab, bb);
        },
        "z"_a, "zeros"_a, "ones"_a, "a"_a, "b"_a);
    bind_kernel(m, "logistic_line", [](auto... tally) { return line_of(tally...); });
    bind_kernel(m, "logistic_shift", [](auto... tally) { return shift_of(tally...); });
    bind_kernel(m, "observed_expected", [](auto... tally) { return observed_expected(tally...); });
    m.def("curve_errors", &curve_errors_of_few<>, "tally"_a);
    m.def("curve_errors", &curve_errors_of_few<double>, "tally"_a, "share"_a);
    m.def("curve_errors", &curve_errors_of_tally, "p"_a, "zeros"_a, "ones"_a, "lower"_a, "rates"_a,
          "shares"_a);
    m.def("curve_of_few", &curve_of_few, "tally"_a);
    m.def("curve_of_few", &curve_of_columns, "p"_a, "zeros"_a, "ones"_a, "total"_a);
    bind_kernel<double, double>(
        m, "price_bounds",
        [](const double* p, const auto* zeros, const auto* ones, std::size_t n, double total,
           double rtol) { return LowerDistance(p, zeros, ones, n, total).bounds(rtol); },
        "total"_a, "rtol"_a);
    m.def("transport_cost", &transport_cost, "x"_a, "from_"_a, "v"_a, "to"_a, "total"_a = 1.0);
    m.def("solve_prices", &solve_prices, "nodes"_a, "masses"_a, "tolerance"_a, "most"_a, "prices"_a,
          "atoms"_a);
    m.def("spread_residuals", &spread_residuals, "p"_a, "zeros"_a, "ones"_a, "nodes"_a, "out"_a);
}

}  // namespace truecast

// The kernels of delimited text as Python sees them. Names and checks as in module.cpp.
#include "delimited.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {
namespace {

Text text_of(const nb::bytes& block) { return {block.c_str(), block.c_str() + block.size()}; }

std::ptrdiff_t numbers_of(const nb::bytes& block, char separator, std::size_t fields,
                          Array<const std::int64_t, 1> columns, Array<double, 2> numbers) {
    require(numbers.shape(0) == columns.shape(0), "there must be numbers for each column");
    const Text text = text_of(block);
    nb::gil_scoped_release unlocked;
    return read_numbers(text, separator, fields, columns.data(), columns.shape(0), numbers.data(),
                        numbers.shape(1));
}

std::ptrdiff_t joined_lines(const nb::bytes& block, const nb::bytes& more, char separator,
                            Array<std::uint8_t, 1> joined) {
    require(joined.shape(0) >= block.size() + more.size() + 2, "there must be room for all of it");
    const Text text = text_of(block), ends = text_of(more);
    nb::gil_scoped_release unlocked;
    return join_lines(text, ends, separator, reinterpret_cast<char*>(joined.data()));
}

}  // namespace

void bind_delimited(nb::module_& m) {
    m.def("read_numbers", &numbers_of, "block"_a, "separator"_a, "fields"_a, "columns"_a,
          "numbers"_a,
          "The numbers in some columns of delimited text: how many rows; -1 if it is not that "
          "plain.");
    m.def("join_lines", &joined_lines, "block"_a, "more"_a, "separator"_a, "joined"_a,
          "Each line of a text with more at its end: how many bytes; -1 if lines are left over.");
}

}  // namespace truecast

#include "saving.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "edge.hpp"

namespace nb = nanobind;

namespace truecast {

namespace {

template <typename... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// NumPy's name of the type.
template <typename T>
const char* kind_of() {
    if (std::is_same_v<T, Wide>) return "int";
    if (std::is_same_v<T, bool>) return "bool";
    if (std::is_same_v<T, float>) return "<f4";
    if (std::is_floating_point_v<T>) return "<f8";
    if (sizeof(T) == 1) return "<u1";
    if (sizeof(T) == 2) return "<u2";
    return std::is_signed_v<T> ? "<i8" : "<u8";
}

template <typename T>
constexpr bool is_vector = false;
template <typename T>
constexpr bool is_vector<std::vector<T>> = true;

template <typename T>
void read(nb::handle from, T& to) {
    require(nb::try_cast(from, to), "a number must be of its type");
}

// Of an array, or a list.
template <typename T>
void read(nb::handle from, std::vector<T>& to) {
    const nb::object array = nb::module_::import_("numpy").attr("asarray")(from, kind_of<T>());
    const auto values = nb::cast<Array<const T, 1>>(array);
    to.assign(values.data(), values.data() + values.shape(0));
}

template <typename T>
void read(nb::handle from, Row<T> to) {
    std::vector<T> values;
    read(from, values);
    require(values.size() == to.count, "as many numbers must fit as there are");
    std::copy(values.begin(), values.end(), to.values);
}

}  // namespace

nb::dict saved(const Entries& entries) {
    nb::dict all;
    for (const Entry& entry : entries)
        all[entry.name] = std::visit(
            Overloaded{
                [](Wide* x) { return as_int(*x); },
                [](const auto& row) -> nb::object {
                    return copy(row.values, row.count).attr("tolist")();
                },
                [](auto* x) -> nb::object {
                    if constexpr (is_vector<
                                      std::remove_const_t<std::remove_pointer_t<decltype(x)>>>)
                        return copy(*x);
                    else
                        return nb::cast(*x);
                }},
            entry.place);
    return all;
}

void load(const Entries& entries, const nb::dict& numbers) {
    for (const Entry& entry : entries) {
        const nb::object from = numbers[entry.name];
        std::visit(
            Overloaded{[&](Wide* x) {
                           const nb::int_ whole(from), word(64);
                           read(whole >> word, x->high);
                           read(whole - ((whole >> word) << word), x->low);
                       },
                       [&](const auto& row) { read(from, row); }, [&](auto* x) { read(from, *x); }},
            entry.place);
    }
}

nb::list described(const Entries& entries) {
    nb::list all;
    for (const Entry& entry : entries) {
        const auto add = [&](auto number, const nb::object& length) {
            using T = decltype(number);
            const auto limit = [](double x) -> nb::object {
                if (std::is_floating_point_v<T>) return nb::float_(x);
                return nb::steal(PyLong_FromDouble(x));
            };
            all.append(nb::make_tuple(entry.name, kind_of<T>(), length, limit(entry.least),
                                      limit(entry.most), entry.meaning));
        };
        std::visit(Overloaded{[&](const auto& row) { add(*row.values, nb::int_(row.count)); },
                              [&](auto* x) {
                                  using T = std::remove_const_t<std::remove_pointer_t<decltype(x)>>;
                                  if constexpr (is_vector<T>)
                                      add(typename T::value_type{}, nb::int_(-1));
                                  else
                                      add(T{}, nb::none());
                              }},
                   entry.place);
    }
    return all;
}

namespace {

// Calls `use` with the place of a single number of 64 bits.
template <typename Use>
void with_word(const Entry& entry, Use use) {
    std::visit(
        [&](auto x) {
            using T = std::remove_pointer_t<decltype(x)>;
            if constexpr (std::is_arithmetic_v<T> && sizeof(T) == sizeof(std::int64_t))
                use(x);
            else
                throw std::logic_error("a column has single numbers of 64 bits");
        },
        entry.place);
}

}  // namespace

Columns::Columns(const nb::dict& numbers, const Entries& names) : columns(names.size()) {
    for (std::size_t k = 0; k < names.size(); ++k)
        with_word(names[k], [&](auto* x) {
            std::vector<std::remove_pointer_t<decltype(x)>> values;
            truecast::read(numbers[names[k].name], values);
            columns[k].resize(values.size());
            std::memcpy(columns[k].data(), values.data(), values.size() * sizeof *x);
            require(columns[k].size() == rows(), "columns must be of one length");
        });
}

void Columns::add(const Entries& state) {
    columns.resize(state.size());
    for (std::size_t k = 0; k < state.size(); ++k)
        with_word(state[k],
                  [&](auto* x) { std::memcpy(&columns[k].emplace_back(), x, sizeof *x); });
}

void Columns::read(std::size_t row, const Entries& state) const {
    for (std::size_t k = 0; k < state.size(); ++k)
        with_word(state[k], [&](auto* x) { std::memcpy(x, &columns[k][row], sizeof *x); });
}

nb::dict Columns::dict(const Entries& names) const {
    nb::dict all;
    for (std::size_t k = 0; k < names.size(); ++k)
        with_word(names[k], [&](auto* x) {
            const char* kind = kind_of<std::remove_pointer_t<decltype(x)>>();
            all[names[k].name] = copy(columns[k]).attr("view")(kind);
        });
    return all;
}

}  // namespace truecast

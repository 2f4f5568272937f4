#include "saving.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "edge.hpp"

namespace nb = nanobind;

namespace truecast {

namespace {

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
nb::object value(T* number) {
    return nb::cast(*number);
}
nb::object value(Wide* number) { return as_int(*number); }
template <typename T>
nb::object value(Row<T> row) {
    return copy(row.values, row.count).attr("tolist")();
}
template <typename T>
nb::object value(std::vector<T>* numbers) {
    return copy(*numbers);
}

template <typename T>
void read(nb::handle from, T* to) {
    require(nb::try_cast(from, *to), "a number must be of its type");
}
void read(nb::handle from, Wide* to) {
    const nb::int_ whole(from), word(64);
    read(whole >> word, &to->high);
    read(whole - ((whole >> word) << word), &to->low);
}
// Of an array, or a list.
template <typename T>
void read(nb::handle from, std::vector<T>* to) {
    const nb::object array = nb::module_::import_("numpy").attr("asarray")(from, kind_of<T>());
    const auto values = nb::cast<Array<const T, 1>>(array);
    to->assign(values.data(), values.data() + values.shape(0));
}
template <typename T>
void read(nb::handle from, Row<T> to) {
    std::vector<T> values;
    read(from, &values);
    require(values.size() == to.count, "as many numbers must fit as there are");
    std::copy(values.begin(), values.end(), to.values);
}

template <typename T>
nb::tuple description(const Entry& entry, const nb::object& length) {
    const auto limit = [](double x) -> nb::object {
        if (std::is_floating_point_v<T>) return nb::float_(x);
        return nb::steal(PyLong_FromDouble(x));
    };
    return nb::make_tuple(entry.name, kind_of<T>(), length, limit(entry.least), limit(entry.most),
                          entry.meaning);
}
template <typename T>
nb::tuple describe(const Entry& entry, T*) {
    return description<T>(entry, nb::none());
}
template <typename T>
nb::tuple describe(const Entry& entry, Row<T> row) {
    return description<T>(entry, nb::int_(row.count));
}
template <typename T>
nb::tuple describe(const Entry& entry, std::vector<T>*) {
    return description<T>(entry, nb::int_(-1));
}

}  // namespace

nb::dict saved(const Entries& entries) {
    nb::dict all;
    for (const Entry& entry : entries)
        all[entry.name] = std::visit([](auto place) { return value(place); }, entry.place);
    return all;
}

void load(const Entries& entries, const nb::dict& numbers) {
    for (const Entry& entry : entries)
        std::visit([&](auto place) { read(numbers[entry.name], place); }, entry.place);
}

nb::list described(const Entries& entries) {
    nb::list all;
    for (const Entry& entry : entries)
        all.append(std::visit([&](auto place) { return describe(entry, place); }, entry.place));
    return all;
}

namespace {

// Calls `use` with the place of a number, if it has 64 bits.
template <typename Use>
void with_word(const Entry& entry, Use use) {
    if (auto* const* whole = std::get_if<std::int64_t*>(&entry.place)) use(*whole);
    if (auto* const* natural = std::get_if<std::uint64_t*>(&entry.place)) use(*natural);
    if (auto* const* real = std::get_if<double*>(&entry.place)) use(*real);
}

}  // namespace

Columns::Columns(const nb::dict& numbers, const Entries& names) : columns(names.size()) {
    for (std::size_t k = 0; k < names.size(); ++k)
        with_word(names[k], [&](auto* number) {
            std::vector<std::remove_pointer_t<decltype(number)>> values;
            truecast::read(numbers[names[k].name], &values);
            columns[k].resize(values.size());
            std::memcpy(columns[k].data(), values.data(), values.size() * sizeof *number);
            require(columns[k].size() == rows(), "columns must be of one length");
        });
}

void Columns::add(const Entries& state) {
    columns.resize(state.size());
    for (std::size_t k = 0; k < state.size(); ++k)
        with_word(state[k], [&](auto* number) {
            std::memcpy(&columns[k].emplace_back(), number, sizeof *number);
        });
}

void Columns::read(std::size_t row, const Entries& state) const {
    for (std::size_t k = 0; k < state.size(); ++k)
        with_word(state[k],
                  [&](auto* number) { std::memcpy(number, &columns[k][row], sizeof *number); });
}

nb::dict Columns::dict(const Entries& names) const {
    nb::dict all;
    for (std::size_t k = 0; k < names.size(); ++k)
        with_word(names[k], [&](auto* number) {
            const char* kind = kind_of<std::remove_pointer_t<decltype(number)>>();
            all[names[k].name] = copy(columns[k]).attr("view")(kind);
        });
    return all;
}

}  // namespace truecast

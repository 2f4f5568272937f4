// The limit that the batch is measured against: the same load-add-store-compare chain on the uniform grid, and nothing
// else: no deviation, no score, no other grid. Compiled and called by forecast.py.
#include <cstddef>
#include <cstdint>

namespace {

template <bool writes>
std::int64_t run(const std::uint8_t* y, std::size_t count, std::int64_t* a, std::int64_t m, double* said) {
    std::int64_t i = m / 2;
    for (std::size_t t = 0; t < count; ++t) {
        if (writes) said[t] = static_cast<double>(i);
        const std::int64_t bit = y[t], j = i + bit;
        const std::int64_t v = a[j] + j - (m & -bit);
        a[j] = v;
        i = j - (v >= 1 - bit);
    }
    return i;
}

}  // namespace

extern "C" std::int64_t chain(const std::uint8_t* y, std::size_t count, std::int64_t* a, std::int64_t m, double* said) {
    return said ? run<true>(y, count, a, m, said) : run<false>(y, count, a, m, said);
}

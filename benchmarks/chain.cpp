// The limit that the batch is measured against: the same load-add-store-compare chain on the uniform grid, and nothing
// else: no forecasts written, no deviation, no score. Compiled and called by forecast.py.
#include <cstddef>
#include <cstdint>

extern "C" std::int64_t chain(const std::uint8_t* y, std::size_t count, std::int64_t* a, std::int64_t m) {
    std::int64_t i = m / 2;
    for (std::size_t t = 0; t < count; ++t) {
        const std::int64_t bit = y[t], j = i + bit;
        const std::int64_t v = a[j] + j - (m & -bit);
        a[j] = v;
        i = j - (v >= 1 - bit);
    }
    return i;
}

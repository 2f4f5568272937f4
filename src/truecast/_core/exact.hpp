// Sums of numbers from 0 to 1024 in integers: the order of the numbers does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tally.hpp"
#include "vectors.hpp"
#include "wide.hpp"

namespace truecast {

// A number x as large 2^-40 + (small - 2^51) 2^-92, to the nearest multiple of 2^-92. Adding 3/2
// 2^12 rounds x to a multiple of 2^-40, which is the unit of numbers from 2^12 to 2^13; so the bits
// of the sum, less those of 3/2 2^12, count these units. What is left, at most 2^-41 on either side,
// goes the same way to multiples of 2^-92.
struct Parts {
    static constexpr double coarse = 0x1.8p12, fine = 0x1.8p-40, unit = 0x1p-40;
    std::uint64_t large, small;

    explicit Parts(double x) {
        const double sum = x + coarse, rest = x - (sum - coarse);
        large = bits_of(sum) - bits_of(coarse);
        small = bits_of(rest + fine) - bits_of(unit);
    }
};

class ExactSum {
  public:
    static constexpr std::size_t block = 512;  // parts of 2^52 that fit in a word, and in a cache

    void add(double x, std::uint64_t times) {
        if (times == 0) return;
        if (!(x <= 1024.0)) infinite_ = true;
        if (infinite_) return;
        const Parts parts(x);
        large_.add(product(parts.large, times));
        small_.add(product(parts.small, times));
        count_ += times;
    }

    // At most a block of numbers, each once. The same as one by one, in loops that compilers can do
    // for several numbers at once.
    TRUECAST_INLINE void add_block(const double* numbers, std::size_t count) {
        double sums[block], rests[block];
        std::uint64_t large[block], small[block], larges = 0, smalls = 0, beyond = 0;
        for (std::size_t i = 0; i < count; ++i) sums[i] = numbers[i] + Parts::coarse;
        for (std::size_t i = 0; i < count; ++i)
            rests[i] = numbers[i] - (sums[i] - Parts::coarse) + Parts::fine;
        std::memcpy(large, sums, count * sizeof *large);
        std::memcpy(small, rests, count * sizeof *small);
        for (std::size_t i = 0; i < count; ++i) larges += large[i];
        for (std::size_t i = 0; i < count; ++i) smalls += small[i];
        for (std::size_t i = 0; i < count; ++i) beyond |= bits_of(Parts::coarse + 1024.0) - large[i];
        if (beyond >> 63 != 0) infinite_ = true;
        large_.add(larges - count * bits_of(Parts::coarse));
        small_.add(smalls - count * bits_of(Parts::unit));
        count_ += count;
    }

    void add(const ExactSum& other) {
        large_.add(other.large_);
        small_.add(other.small_);
        count_ += other.count_;
        infinite_ |= other.infinite_;
    }

    std::uint64_t count() const { return count_; }

    // Rounded once.
    double rounded() const {
        if (infinite_) return std::numeric_limits<double>::infinity();
        // large 2^52 + small - count 2^51, at 2^-92, in digits of 32 bits; below zero it is not
        Wide low = product(large_.low, std::uint64_t{1} << 52),
             high = product(large_.high, std::uint64_t{1} << 52);
        high.add(low.high);
        std::uint64_t words[3] = {low.low, high.low, high.high};
        const Wide less = product(count_, std::uint64_t{1} << 51);
        add_to(words, small_);
        subtract_from(words, less);
        std::uint64_t digits[6];
        for (std::size_t i = 0; i < 3; ++i) {
            digits[2 * i] = words[i] & 0xffffffff;
            digits[2 * i + 1] = words[i] >> 32;
        }
        return nearest(digits, 6, -92);
    }

  private:
    static void add_to(std::uint64_t* words, const Wide& x) {
        Wide low{words[0], words[1]};
        const Wide before = low;
        low.add(x);
        words[2] += !(before <= low);
        words[0] = low.low;
        words[1] = low.high;
    }
    static void subtract_from(std::uint64_t* words, const Wide& x) {
        Wide low{words[0], words[1]};
        words[2] -= !(x <= low);
        low.subtract(x.low);
        low.high -= x.high;
        words[0] = low.low;
        words[1] = low.high;
    }

    Wide large_, small_;
    std::uint64_t count_ = 0;
    bool infinite_ = false;
};

}  // namespace truecast

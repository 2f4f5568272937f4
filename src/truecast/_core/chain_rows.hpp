// The lengths of chains so far, row by row, and the loop that shortens them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "chain_points.hpp"

namespace truecast::chains {

// Lengths of the shortest chains to (i, j), for a range of j; `lo` to `hi` may be of use.
class Row {
  public:
    static constexpr Count bytes = sizeof(double) + sizeof(std::int32_t);  // of an entry
    Count lo = 0, hi = -1;

    bool idle() const { return lo > hi; }
    Count size() const { return size_; }
    bool has(Count j) const { return j >= base_ && j < base_ + size_; }
    bool has(Count from, Count to) const { return from >= base_ && to < base_ + size_; }

    double* length(Count j) const { return length_.get() + (j - base_); }
    // The name of the value of the last step.
    std::int32_t* by(Count j) const { return by_.get() + (j - base_); }

    void use(Count from, Count to) {
        lo = idle() ? from : std::min(lo, from);
        hi = std::max(hi, to);
    }

    // The first and last j to reserve for `from` to `to`: with spare room where it grows, at most
    // from 0 to `most`.
    std::pair<Count, Count> range_with(Count from, Count to, Count most) const {
        const Count first = size_ ? std::min(from, base_) : from;
        const Count last = size_ ? std::max(to, base_ + size_ - 1) : to;
        const Count spare = (last - first) / 2 + 8;
        return {!size_ || first < base_ ? std::max<Count>(0, first - spare) : first,
                !size_ || last >= base_ + size_ ? std::min(most, last + spare) : last};
    }

    void reserve(Count first, Count last) {
        const Count size = last - first + 1;
        std::unique_ptr<double[]> length(new double[index(size)]);
        std::unique_ptr<std::int32_t[]> by(new std::int32_t[index(size)]);
        std::fill_n(length.get(), size, unreached);
        std::fill_n(by.get(), size, 0);
        if (size_ > 0) {
            std::copy_n(length_.get(), size_, length.get() + (base_ - first));
            std::copy_n(by_.get(), size_, by.get() + (base_ - first));
        }
        length_ = std::move(length);
        by_ = std::move(by);
        base_ = first;
        size_ = size;
    }

  private:
    Count base_ = 0, size_ = 0;
    std::unique_ptr<double[]> length_;
    std::unique_ptr<std::int32_t[]> by_;
};

// The inner loop: candidates `from + shared + own`, kept where they are shorter.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
__attribute__((target_clones("avx2", "default")))
#endif
inline void
shorten(const double* __restrict from, const double* __restrict own, double shared,
        std::int32_t name, double* __restrict to, std::int32_t* __restrict by, Count n) {
    for (Count k = 0; k < n; ++k) {
        const double candidate = from[k] + (shared + own[k]), old = to[k];
        const bool shorter = candidate < old;
        to[k] = shorter ? candidate : old;
        by[k] = shorter ? name : by[k];
    }
}

}  // namespace truecast::chains

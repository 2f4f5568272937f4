// Loops over independent numbers, four at a time where the machine can: what they compute is the
// same. Functions that such a loop calls are inlined into it, so that they are compiled for it.
#pragma once

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && \
    !defined(__SANITIZE_ADDRESS__)
#define TRUECAST_INLINE __attribute__((always_inline)) inline
#define TRUECAST_FOUR_AT_A_TIME __attribute__((target("avx2")))
#define TRUECAST_HAS_FOUR __builtin_cpu_supports("avx2")
#else
#define TRUECAST_INLINE inline
#define TRUECAST_FOUR_AT_A_TIME
#define TRUECAST_HAS_FOUR false
#endif

// A function that is not inlined: what it says about its own pointers then holds for its loops.
#if defined(__GNUC__) || defined(__clang__)
#define TRUECAST_APART __attribute__((noinline))
#else
#define TRUECAST_APART
#endif

// Before a loop that is short and of a known length: no counting, and addresses are constants. GCC
// would else only do this where it optimises more, which slows down other loops.
#if defined(__GNUC__) && !defined(__clang__)
#define TRUECAST_UNROLL _Pragma("GCC unroll 16")
#else
#define TRUECAST_UNROLL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace truecast {

// Numbers that are computed with together, and their bits. They are handed over by reference: what
// a function takes them in depends on the machine that it is compiled for.
#ifdef __GNUC__
typedef double Block __attribute__((vector_size(32)));
typedef std::uint64_t BlockBits __attribute__((vector_size(32)));
#else
using Block = double;
using BlockBits = std::uint64_t;
#endif
constexpr std::size_t per_block = sizeof(Block) / sizeof(double);

TRUECAST_INLINE void read(Block& to, const double* from) { std::memcpy(&to, from, sizeof to); }
TRUECAST_INLINE void write(const Block& from, double* to) { std::memcpy(to, &from, sizeof from); }

// The same of numbers that were written one by one just now: a block of them cannot be read before
// all are in the cache.
TRUECAST_INLINE void gather(Block& to, const double* from) {
#ifdef __GNUC__
    to = Block{from[0], from[1], from[2], from[3]};
#else
    read(to, from);
#endif
}

// Two numbers that are computed with together.
#ifdef __GNUC__
typedef double Two __attribute__((vector_size(16)));
#else
struct Two {
    double at[2];

    double& operator[](int i) { return at[i]; }
    double operator[](int i) const { return at[i]; }
    Two operator+(const Two& more) const { return {at[0] + more.at[0], at[1] + more.at[1]}; }
    Two operator*(const Two& by) const { return {at[0] * by.at[0], at[1] * by.at[1]}; }
    Two& operator+=(const Two& more) { return *this = *this + more; }
};
#endif

}  // namespace truecast

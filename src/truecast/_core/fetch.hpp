// Memory that will be read soon: while it is on its way, other work goes on.
#pragma once

#include <cstddef>

namespace truecast {

// The empty statement is an effect that a compiler cannot rule out: GCC drops calls of functions
// that only prefetch.
inline void fetch([[maybe_unused]] const void* from, [[maybe_unused]] std::size_t bytes) {
#ifdef __GNUC__
    const char* const first = static_cast<const char*>(from);
    constexpr std::size_t cache_line = 64;
    for (std::size_t at = 0; at < bytes; at += cache_line) __builtin_prefetch(first + at);
    __asm__ volatile("");
#endif
}

}  // namespace truecast

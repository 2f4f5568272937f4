// Two halves of one piece of work, by a thread each where there are threads.
#pragma once

#if defined(__wasm__)  // a page in a browser has one thread, and the standard header refuses
namespace truecast {

template <typename First, typename Second>
void both(bool, First first, Second second) {
    first();
    second();
}

}  // namespace truecast
#else
#include <thread>

namespace truecast {

template <typename First, typename Second>
void both(bool threads, First first, Second second) {
    std::thread other;
    if (threads) other = std::thread(second);
    first();
    if (other.joinable())
        other.join();
    else
        second();
}

}  // namespace truecast
#endif

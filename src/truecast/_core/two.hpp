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
#include <system_error>
#include <thread>

namespace truecast {

template <typename First, typename Second>
void both(bool threads, First first, Second second) {
    std::thread other;
    try {
        if (threads) other = std::thread(second);
    } catch (const std::system_error&) {  // no thread to be had: do its share here
    }
    first();
    if (other.joinable())
        other.join();
    else
        second();
}

}  // namespace truecast
#endif

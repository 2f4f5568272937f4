// Work shared by several threads.
#pragma once

#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace truecast {

// Call share(0), ..., share(count - 1), each in a thread of its own but the last, which is done
// here. They must not throw.
template <typename Share>
void in_threads(std::size_t count, Share share) {
    std::vector<std::thread> pool;
    for (std::size_t k = 0; k + 1 < count; ++k) {
        try {
            pool.emplace_back(share, k);
        } catch (const std::system_error&) {  // no thread to be had: do its share here
            share(k);
        }
    }
    share(count - 1);
    for (std::thread& thread : pool) thread.join();
}

}  // namespace truecast

// What a batch can work out before it is its turn: some blocks of rounds ahead.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace truecast {

// Items that need nothing of what is done with them, block by block. Another thread makes those of
// the next blocks while one is in use, if there may be one: a few, so that neither thread waits for
// the other whenever a block takes longer than usual. They are made in order, each once.
template <typename Item>
class Ahead {
  public:
    using Items = std::vector<Item>;
    using Make = std::function<void(std::size_t from, std::size_t to, Items& items)>;

    // `make` adds the items of some rounds.
    Ahead(std::size_t rounds_, std::size_t block_, bool threads, Make make_)
        : rounds(rounds_), block(block_), make(std::move(make_)) {
        try {
            if (threads && rounds > block) other = std::thread([this] { make_all(); });
        } catch (const std::system_error&) {  // no thread to be had: blocks are made here
        }
    }
    Ahead(const Ahead&) = delete;
    Ahead& operator=(const Ahead&) = delete;

    // Nothing is made any more when it is gone.
    ~Ahead() {
        if (!other.joinable()) return;
        change([this] { left = true; });
        other.join();
    }

    // The items of the next block; those of the block before may be gone. Throws what making them
    // has thrown.
    const Items& next() {
        Items& items = places[taken % places.size()];
        if (!other.joinable()) {
            fill(items, taken++);
            return items;
        }
        if (taken > 0) change([this] { ++used; });
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [this] { return made > taken || failure; });
        if (made == taken) std::rethrow_exception(failure);
        ++taken;
        return items;
    }

  private:
    const std::size_t rounds, block;
    const Make make;
    std::array<Items, 4> places;  // of the block in use, and of those ahead
    std::size_t taken = 0;        // blocks that were asked for

    // Of both threads. Invariant: used <= made <= used + places.size().
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t made = 0, used = 0;  // blocks
    bool left = false;               // nobody will ask for more
    std::exception_ptr failure;
    std::thread other;  // the last: it begins when all else is there

    template <typename Change>
    void change(Change what) {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            what();
        }
        changed.notify_one();  // at most one waits: there are two
    }

    void fill(Items& items, std::size_t number) const {
        const std::size_t from = number * block, to = std::min(rounds, from + block);
        items.clear();
        items.reserve(to - from);
        make(from, to, items);
    }

    // Whether there is a place for the next block; waits for one.
    bool has_place() {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [this] { return left || made < used + places.size(); });
        return !left;
    }

    void make_all() {
        try {
            for (std::size_t k = 0; k * block < rounds && has_place(); ++k) {
                fill(places[k % places.size()], k);
                change([this] { ++made; });
            }
        } catch (...) {
            change([this] { failure = std::current_exception(); });
        }
    }
};

}  // namespace truecast

// What a batch can work out before it is its turn, a block of rounds ahead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "threads.hpp"

namespace truecast {

// Items that need nothing of what is done with them: those of the next block are made while this
// one is in use, by another thread if there may be one. They are made in order, each once.
template <typename Item>
class Ahead {
    std::size_t rounds, block;
    bool threads;
    std::vector<Item> now, next;

  public:
    Ahead(std::size_t rounds_, std::size_t block_, bool threads_)
        : rounds(rounds_), block(block_), threads(threads_) {}

    // Call `use(items)` with those of a block, of which the first begins at 0, and the next where
    // this one ends: at `to`. `make(from, to, items)` adds those of some rounds.
    template <typename Make, typename Use>
    void play(std::size_t from, std::size_t to, Make make, Use use) {
        if (from == 0) fill(now, 0, make);
        beside(threads && to < rounds, [&] { use(now); }, [&] { fill(next, to, make); });
        now.swap(next);
    }

  private:
    template <typename Make>
    void fill(std::vector<Item>& items, std::size_t from, Make& make) const {
        const std::size_t to = std::min(rounds, from + block);
        items.clear();
        items.reserve(to - from);
        make(from, to, items);
    }
};

}  // namespace truecast

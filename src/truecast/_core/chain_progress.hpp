// How far a search has come, and when it has to give up.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include "chain_points.hpp"

namespace truecast::chains {

// What chains cost at least, by how they stand at a value v (docs/distance.md, theorem 8 (c)).
struct Least {
    double paid = 0.0;     // f - over: before v, beyond points above v that were taken
    double between = 0.0;  // f - over + rem
    double whole = 0.0;    // f + rem: the whole chain

    // Both hold, for chains within the budget.
    void raise(const Least& other, double slop, double budget) {
        paid = std::max(paid, std::min(other.paid - slop, budget));
        between = std::max(between, std::min(other.between - slop, budget));
        whole = std::max(whole, std::min(other.whole - slop, budget));
    }
};

// When a search has to give up, and how far it has come: shared with the thread that waits for it.
class Limits {
  public:
    const Count memory;  // bytes
    const double seconds;

    Limits(Count memory_, double seconds_) : memory(memory_), seconds(seconds_) {}

    void stop() { stopped_.store(true, std::memory_order_relaxed); }
    bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

    // What is known at the value v. A reader may see a later v beside an earlier bound, which holds
    // there, too; never the other way round: hence the orders.
    void reached(double v, const Least& least) {
        value_.store(v, std::memory_order_relaxed);
        paid_.store(least.paid, std::memory_order_release);
        between_.store(least.between, std::memory_order_release);
        whole_.store(least.whole, std::memory_order_release);
    }
    std::pair<double, Least> progress() const {
        const Least least{paid_.load(std::memory_order_acquire),
                          between_.load(std::memory_order_acquire),
                          whole_.load(std::memory_order_acquire)};
        return {value_.load(std::memory_order_relaxed), least};
    }

  private:
    std::atomic<bool> stopped_{false};
    std::atomic<double> value_{0.0}, paid_{0.0}, between_{0.0}, whole_{0.0};
};

}  // namespace truecast::chains

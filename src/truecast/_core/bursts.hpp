// How much of an observation an outcome is, where many come together.
#pragma once
#include <cstdint>
namespace truecast {
struct Bursts {
    void issued() {}
    double weight(double, std::int64_t mates) { return mates > 0 ? 1.0 / static_cast<double>(mates) : 1.0; }
    double effect() const { return 1.0; }
};
}  // namespace truecast

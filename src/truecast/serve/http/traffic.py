"""Counts of requests, and how long they took."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

__all__ = ["BOUNDS", "Traffic"]

#: seconds: the upper ends of the histogram's buckets
BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Traffic:
    """How many requests of each route had which status, and how long those of a route took."""

    def __init__(self) -> None:
        self.statuses: dict[tuple[str, int], int] = defaultdict(int)
        self.buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self.seconds: dict[str, float] = defaultdict(float)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one."""
        self.statuses[route, status] += 1
        self.buckets[route][bisect_left(BOUNDS, seconds)] += 1
        self.seconds[route] += seconds

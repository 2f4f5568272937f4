"""The compiled core: kernels for the public edge to build on, which has checked what they are given."""

from truecast._core.kernels import Ladder, run_streams, sums_of_streams

__all__ = ["Ladder", "run_streams", "sums_of_streams"]
